package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
)

const (
	// dialBound leaves time for the rest of a call when one of several addresses is dead.
	dialBound = 5 * time.Second
	// callBound is what Standard Webhooks lets a receiver take. A receiver that works longer should answer first.
	callBound = 15 * time.Second
	// maxBody is how much of an answer is read, so that the connection can be used again; nothing of it is kept.
	maxBody = 64 << 10
	// maxHead bounds the head of an answer.
	maxHead = 16 << 10
	// maxRetryAfter is above the longest wait of the schedule; a receiver can't put messages off for ever.
	maxRetryAfter = 24 * time.Hour
	// idleConns and idleFor bound connections that wait for the next message to the same receiver.
	idleConns = 2
	idleFor   = 30 * time.Second
)

// Config says how receivers are called.
type Config struct {
	Rules Rules
	// Agent is the User-Agent, by default Holdfast-Webhooks/1.
	Agent string
	// Resolver looks names up, by default the system's.
	Resolver *net.Resolver
	// TLS is the basis of TLS connections, by default the system's roots.
	TLS *tls.Config
	// Timeout is how long a whole call may take, by default 15 s.
	Timeout time.Duration
}

// Client calls receivers. It is safe for concurrent use.
type Client struct {
	rules   Rules
	agent   string
	timeout time.Duration
	http    *http.Client
}

// New returns a Client.
func New(cfg Config) *Client {
	if cfg.Agent == "" {
		cfg.Agent = "Holdfast-Webhooks/1"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = callBound
	}
	guard := cfg.Rules.guard()
	dialer := &net.Dialer{
		Timeout: dialBound, Resolver: cfg.Resolver,
		// Every address is judged right before it is dialled, after its name was looked up: a name that leads elsewhere
		// than a moment ago gains nothing.
		Control: func(network, address string, c syscall.RawConn) error { return guard.Safe(network, address, c) },
	}
	return &Client{rules: cfg.Rules, agent: cfg.Agent, timeout: cfg.Timeout, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSClientConfig: cfg.TLS, TLSHandshakeTimeout: dialBound,
			ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHead, MaxIdleConnsPerHost: idleConns,
			MaxIdleConns: 64 * idleConns, IdleConnTimeout: idleFor, DisableCompression: true,
		},
	}}
}

// Deliver sends one message and says how that ended. Every answer but 2xx is a failure, and so is none in time. The
// time of the attempt is the parcel's, or this process's for one without.
func (c *Client) Deliver(ctx context.Context, p endpoint.Parcel) endpoint.Receipt {
	now := p.At
	if now.IsZero() {
		now = time.Now()
	}
	receipt := endpoint.Receipt{At: now}
	if c.rules.broken(p.URL) != "" { // the operator's rules may have changed since it was taken
		receipt.Error = endpoint.URLRefused
		return receipt
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		receipt.Error = endpoint.URLRefused
		return receipt
	}
	id := endpoint.MessageID(p.Message)
	// Lower case, as the specification writes them; HTTP/1 receivers see them so.
	request.Header["webhook-id"] = []string{id}
	request.Header["webhook-timestamp"] = []string{strconv.FormatInt(now.Unix(), 10)}
	request.Header["webhook-signature"] = []string{signature(p.Secrets, id, now, p.Body)}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", c.agent)
	response, err := c.http.Do(request)
	if err != nil {
		receipt.Error = reasonOf(ctx, err)
		return receipt
	}
	defer response.Body.Close()
	receipt.Status = response.StatusCode
	_, _ = io.CopyN(io.Discard, response.Body, maxBody) // what the answer says doesn't matter, and its end neither
	switch {
	case receipt.Status >= 200 && receipt.Status < 300:
	case receipt.Status >= 300 && receipt.Status < 400:
		receipt.Error = endpoint.Redirected
	default:
		receipt.Error = endpoint.Refused
	}
	if receipt.Status == http.StatusTooManyRequests || receipt.Status == http.StatusServiceUnavailable {
		receipt.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now)
	}
	return receipt
}

// retryAfter reads seconds or a date, within what a receiver may ask for.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter) // #nosec G115 -- 32 bits
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// reasonOf names why there was no answer. The error's own text holds the receiver's address and stays here.
func reasonOf(ctx context.Context, err error) endpoint.Error {
	var lookup *net.DNSError
	var op *net.OpError
	var timed net.Error
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork), errors.Is(err, ssrf.ErrInvalidHostPort):
		return endpoint.AddressRefused
	case errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert):
		return endpoint.TLSFailed
	case ctx.Err() != nil, errors.As(err, &timed) && timed.Timeout():
		return endpoint.TimedOut
	case errors.As(err, &lookup):
		return endpoint.NotResolved
	case errors.As(err, &op) && op.Op == "dial":
		return endpoint.NotConnected
	case errors.As(err, &op) && op.Op == "remote error":
		return endpoint.TLSFailed
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return endpoint.NotConnected
	}
	return endpoint.BadAnswer
}
