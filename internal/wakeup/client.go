package wakeup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

const (
	dialTimeout    = 2 * time.Second        // NATS is near; a start with NATS down waits this long at most
	reconnectWait  = 250 * time.Millisecond // a restarted server is found at once; polling bridges the rest
	reconnectJit   = 500 * time.Millisecond // thirty processes must not come back in the same moment
	pingInterval   = 5 * time.Second        // with two unanswered pings a dead connection is noticed after 15 s
	pingsOut       = 2
	writeTimeout   = time.Second // how long a full socket may hold the connection's lock
	drainTimeout   = 2 * time.Second
	lookTimeout    = 2 * time.Second // an answer takes milliseconds; while a cluster elects a leader there is none
	createTimeout  = 5 * time.Second // a cluster places a stream on three servers first
	defaultAckWait = 75 * time.Second
)

// ErrDisconnected says that there is no connection to NATS at the moment. The client goes on trying.
var ErrDisconnected = errors.New("not connected to nats")

// Config says where NATS is. URL is required; it may hold a password and is never logged.
type Config struct {
	URL      string
	Name     string        // how the connection is called in the server's reports, e.g. "holdfast-worker"
	AckWait  time.Duration // of consumers that this process creates: the lease's TTL + 15 s; 0 is 75 s
	Replicas int           // of a stream that this process creates; 0 is 1, use 3 with a NATS cluster
	Link     Link          // how server and process know each other beyond what the URL says
	Log      zerolog.Logger
}

// Client is one process's connection to NATS. Its methods may be called from any goroutine.
type Client struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	cfg   Config
	log   zerolog.Logger
	slots chan struct{} // bounds the sends under way
	done  *notices

	topologyMu  sync.Mutex
	topologyErr error     // of the last look at stream and consumers; nil before the first
	streamMade  time.Time // of the stream at the last look; zero before the first

	reconnected chan struct{} // wakes Watch
	counts      counters

	seed    *seed // nil without an nkey
	trouble trouble
	refused refusals
}

type counters struct {
	published, publishFailed, duplicates, malformed, notices, reconnects atomic.Uint64
}

// Stats are counts since the process started.
type Stats struct {
	Published     uint64 // hints that the stream has stored or knew already
	PublishFailed uint64 // hints that it has not, or not said so in time
	Duplicates    uint64 // published hints whose id it knew already
	Malformed     uint64 // received messages that were no hint and were terminated
	Notices       uint64 // notices received
	Reconnects    uint64
}

// Connect returns a client even when NATS is down: it then connects in the background, for ever. The error is only about
// the configuration. The first attempt takes at most 2 s.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	if cfg.URL == "" {
		return nil, errors.New("connect to nats: URL is empty")
	}
	if cfg.AckWait == 0 {
		cfg.AckWait = defaultAckWait
	}
	if cfg.Replicas == 0 {
		cfg.Replicas = 1
	}
	if cfg.AckWait < time.Second || cfg.Replicas < 1 || cfg.Replicas > 5 {
		return nil, fmt.Errorf("connect to nats: AckWait %s is under 1 s, or Replicas %d is not 1 to 5", cfg.AckWait, cfg.Replicas)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	c := &Client{
		cfg: cfg, log: cfg.Log, slots: make(chan struct{}, maxSends), done: newNotices(),
		reconnected: make(chan struct{}, 1),
	}
	linked, err := c.linkOptions()
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	nc, err := nats.Connect(cfg.URL, append(c.options(), linked...)...)
	if err != nil {
		// Not wrapped: nats.go quotes the URL, which may hold a password.
		return nil, errors.New("connect to nats: the URL, or what it names for TLS or credentials, is not usable")
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(createTimeout))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	c.nc, c.js = nc, js
	c.seed.follow(nc)
	return c, nil
}

func (c *Client) options() []nats.Option {
	return []nats.Option{
		nats.Name(c.cfg.Name),
		nats.Timeout(dialTimeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials are sometimes changed on the server first
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJit, reconnectJit),
		nats.ReconnectBufSize(-1), // a hint from before an outage is of no use after it: fail at once
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsOut),
		nats.FlusherTimeout(writeTimeout),
		nats.DrainTimeout(drainTimeout),
		nats.ConnectHandler(func(*nats.Conn) { c.onConnect() }),
		nats.ReconnectHandler(func(*nats.Conn) {
			c.counts.reconnects.Add(1)
			c.onConnect()
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log.Warn().Str("error", err.Error()).Msg("nats connection lost")
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if !c.away(err) {
				c.trouble.clear() // the server is gone: what it said before is no longer why
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.onError(err) }),
	}
}

// onError tells apart what the server refuses this user, what keeps the client from connecting, and the rest.
func (c *Client) onError(err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		c.refused.refuse()
	case c.away(err):
		return
	}
	c.log.Warn().Str("error", err.Error()).Msg("nats reported an error")
}

// onConnect lets the watchdog look at once, and wakes who waits for a notice, because one may have passed meanwhile.
func (c *Client) onConnect() {
	c.trouble.clear()
	c.refused.forget()
	c.log.Info().Msg("nats connected")
	select {
	case c.reconnected <- struct{}{}:
	default:
	}
	c.done.wakeAll()
}

// Healthy is nil while there is a connection and the last look at stream and consumers found or created them. Otherwise
// it says which of the two is missing, without an address.
func (c *Client) Healthy() error {
	if !c.nc.IsConnected() {
		return c.disconnected()
	}
	c.topologyMu.Lock()
	defer c.topologyMu.Unlock()
	if c.topologyErr != nil {
		return fmt.Errorf("nats stream or consumers are missing: %w", c.topologyErr)
	}
	return nil
}

// Stats is a snapshot of the counts.
func (c *Client) Stats() Stats {
	return Stats{
		Published:     c.counts.published.Load(),
		PublishFailed: c.counts.publishFailed.Load(),
		Duplicates:    c.counts.duplicates.Load(),
		Malformed:     c.counts.malformed.Load(),
		Notices:       c.counts.notices.Load(),
		Reconnects:    c.counts.reconnects.Load(),
	}
}

// Stop sends what is still buffered, acks included, for as long as ctx allows but at most 2 s, and closes the
// connection. It may be called twice. Waiters of Subscribe are woken.
func (c *Client) Stop(ctx context.Context) error {
	if c.nc.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	var err error
	if c.nc.IsConnected() {
		if ferr := c.nc.FlushWithContext(ctx); ferr != nil {
			err = fmt.Errorf("stop nats client: flush: %w", ferr)
		}
	}
	c.nc.Close()
	c.done.wakeAll()
	return err
}
