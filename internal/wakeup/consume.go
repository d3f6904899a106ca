package wakeup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	defaultMaxWait = 5 * time.Second // how long an idle worker's pull stays at the server
	// noWaitBound is for an answer that is ready: nats.go gives up a pull without waiting after a second itself.
	noWaitBound = 2 * time.Second
	// errorPause is the least time that a failed Fetch takes, so that a plain loop around it can't spin.
	errorPause = 250 * time.Millisecond
	// maxFetch is far more than a process has slots for.
	maxFetch = 1024
)

// ConsumerConfig says what to consume.
type ConsumerConfig struct {
	Classes []string      // default both
	MaxWait time.Duration // how long Fetch waits for a first hint; default 5 s
}

// Consumer pulls hints. Several processes share the hints of a class.
type Consumer struct {
	client  *Client
	maxWait time.Duration

	mu      sync.Mutex
	handles map[string]jetstream.Consumer // nil until first used, and again after an error
}

// NewConsumer makes no call to NATS: the stream may be missing, or NATS down.
func NewConsumer(client *Client, cfg ConsumerConfig) (*Consumer, error) {
	if len(cfg.Classes) == 0 {
		cfg.Classes = []string{Interactive, Bulk}
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = defaultMaxWait
	}
	if client == nil || cfg.MaxWait < 10*time.Millisecond || cfg.MaxWait > time.Minute {
		return nil, errors.New("new consumer: a client and a MaxWait from 10 ms to 1 min are needed")
	}
	c := &Consumer{client: client, maxWait: cfg.MaxWait, handles: map[string]jetstream.Consumer{}}
	for _, class := range cfg.Classes {
		if !isClass(class) {
			return nil, fmt.Errorf("new consumer: unknown class %q", class)
		}
		c.handles[class] = nil
	}
	return c, nil
}

// Fetch returns 1 to n hints of a class as soon as there are any, or none after MaxWait or when ctx ends. What it returns
// is out for work: ack it, or it comes again after AckWait. Ask for no more than can be started at once. Messages that
// are no hints are terminated, counted and left out. An error (no connection, stream or consumer missing) comes no
// sooner than after 250 ms and needs nothing but another Fetch: the watchdog creates what is missing.
func (c *Consumer) Fetch(ctx context.Context, class string, n int) ([]Delivery, error) {
	began := time.Now()
	if n < 1 || n > maxFetch {
		return nil, fmt.Errorf("fetch hints: %d is not 1 to %d", n, maxFetch)
	}
	hints, err := c.fetch(ctx, class, n)
	if len(hints) > 0 || ctx.Err() != nil {
		return hints, nil
	}
	if err == nil {
		return nil, nil
	}
	c.forget(class)
	pause := time.NewTimer(errorPause - time.Since(began))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("fetch hints: %w", err)
}

// fetch asks for what is there, and else waits for a single hint: a pull for more would stay at the server after the
// first hint has come, and would then take hints that nobody here waits for.
func (c *Consumer) fetch(ctx context.Context, class string, n int) ([]Delivery, error) {
	if !c.client.nc.IsConnected() {
		return nil, ErrDisconnected
	}
	handle, err := c.handle(ctx, class)
	if err != nil {
		return nil, err
	}
	hints, err := c.ready(handle, n)
	if err != nil || len(hints) > 0 {
		return hints, err
	}
	waitCtx, cancel := context.WithTimeout(ctx, c.maxWait)
	defer cancel()
	first, err := c.collect(handle.Fetch(1, jetstream.FetchContext(waitCtx)))
	if err != nil || len(first) == 0 || n == 1 {
		return first, err
	}
	more, _ := c.ready(handle, n-1) // its error will come again at the next Fetch
	return append(first, more...), nil
}

// ready takes what is there. It doesn't listen to the caller's context, because what the server has sent must not be
// lost; the server answers at once.
func (c *Consumer) ready(handle jetstream.Consumer, n int) ([]Delivery, error) {
	return c.collect(handle.FetchNoWait(n))
}

func (c *Consumer) collect(batch jetstream.MessageBatch, err error) ([]Delivery, error) {
	if err != nil {
		return nil, err
	}
	bound := time.NewTimer(c.maxWait + noWaitBound)
	defer bound.Stop()
	var out []Delivery
	for {
		select {
		case msg, open := <-batch.Messages():
			if !open {
				err := batch.Error()
				if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					err = nil
				}
				return out, err
			}
			if d, ok := c.accept(msg); ok {
				out = append(out, d)
			}
		case <-bound.C:
			return out, context.DeadlineExceeded
		}
	}
}

// accept decodes a message, and terminates it if it is none of ours.
func (c *Consumer) accept(msg jetstream.Msg) (Delivery, bool) {
	hint, err := decodeHint(msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		c.client.counts.malformed.Add(1)
		c.client.log.Warn().Str("subject", msg.Subject()).Int("bytes", len(msg.Data())).Msg("message that is no hint was terminated")
		if err := msg.TermWithReason("not a hint"); err != nil {
			c.client.log.Warn().Str("error", err.Error()).Msg("message that is no hint could not be terminated")
		}
		return Delivery{}, false
	}
	d := Delivery{Hint: hint, NumDelivered: 1, msg: msg}
	if meta, err := msg.Metadata(); err == nil {
		d.NumDelivered = meta.NumDelivered
	}
	return d, true
}

func (c *Consumer) handle(ctx context.Context, class string) (jetstream.Consumer, error) {
	c.mu.Lock()
	handle, known := c.handles[class]
	c.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("class %q is not one of this consumer's", class)
	}
	if handle != nil {
		return handle, nil
	}
	err := c.client.look(ctx, func(ctx context.Context) (err error) {
		handle, err = c.client.js.Consumer(ctx, streamName, class)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handles[class] = handle
	return handle, nil
}

func (c *Consumer) forget(class string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.handles[class]; known {
		c.handles[class] = nil
	}
}

// Delivery is a hint that is out for work. Its answers go to NATS without a confirmation, and are no fence: a lease
// token is. An answer after the first is ignored, and answers are lost while there is no connection; the hint then comes
// again.
type Delivery struct {
	Hint         Hint
	NumDelivered uint64 // 1 for the first time
	msg          jetstream.Msg
}

// Ack ends the hint.
func (d Delivery) Ack() error { return answer("ack", d.msg.Ack()) }

// Nak gives the hint back for another delivery after delay. It is for when PostgreSQL is down; a task that has to wait
// says so in its row.
func (d Delivery) Nak(delay time.Duration) error { return answer("nak", d.msg.NakWithDelay(delay)) }

// InProgress begins AckWait again.
func (d Delivery) InProgress() error { return answer("progress", d.msg.InProgress()) }

// Term ends the hint as one that nobody can work on. The reason is shown to NATS operators.
func (d Delivery) Term(reason string) error { return answer("term", d.msg.TermWithReason(reason)) }

func answer(what string, err error) error {
	switch {
	case err == nil, errors.Is(err, jetstream.ErrMsgAlreadyAckd):
		return nil
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("%s hint: %w", what, ErrDisconnected)
	default:
		return fmt.Errorf("%s hint: %w", what, err)
	}
}
