package holdfast

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Option changes how a client calls.
type Option func(*settings)

// WithHTTPClient calls through another http.Client, for its transport and time-out. It is copied; its rule for redirects
// is replaced by none.
func WithHTTPClient(client *http.Client) Option { return func(s *settings) { s.given = client } }

// WithUserAgent names the application in every request.
func WithUserAgent(name string) Option { return func(s *settings) { s.agent = name } }

// WithMaxRetries bounds how often a call is repeated; 0 never repeats. The default is 4.
func WithMaxRetries(n int) Option { return func(s *settings) { s.maxRetries = n } }

// WithRetryBudget bounds the time from the start of a call to the start of its last attempt. The default is one minute.
func WithRetryBudget(d time.Duration) Option { return func(s *settings) { s.budget = d } }

// WithBackoff bounds the pauses between attempts: they double from least to most, with jitter. A Retry-After of the
// service is waited for even when it is longer than most. The defaults are 250 ms and 8 s.
func WithBackoff(least, most time.Duration) Option {
	return func(s *settings) { s.backoffMin, s.backoffMax = least, most }
}

// WithAttemptTimeout bounds one attempt, the time that it asks the service to wait left out. The default is 30 s.
func WithAttemptTimeout(d time.Duration) Option { return func(s *settings) { s.attemptTime = d } }

type settings struct {
	given       *http.Client
	agent       string
	maxRetries  int
	budget      time.Duration
	backoffMin  time.Duration
	backoffMax  time.Duration
	attemptTime time.Duration
	clock       clock
}

// clock is replaced by tests, so that they don't sleep.
type clock struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

func defaults() settings {
	return settings{
		agent:       "holdfast-go",
		maxRetries:  4,           // outlasts a restart of the service
		budget:      time.Minute, // whoever waits longer wants to know
		backoffMin:  250 * time.Millisecond,
		backoffMax:  8 * time.Second,
		attemptTime: 30 * time.Second, // the service decides within 20 s
		clock:       clock{now: time.Now, sleep: sleep},
	}
}

func (s settings) validate() error {
	switch {
	case s.maxRetries < 0:
		return errors.New("holdfast: the number of retries must not be negative")
	case s.budget <= 0 || s.attemptTime <= 0:
		return errors.New("holdfast: retry budget and attempt time-out must be positive")
	case !oneLine(s.agent):
		return errors.New("holdfast: a user agent has no control characters")
	case s.backoffMin <= 0 || s.backoffMax < s.backoffMin:
		return errors.New("holdfast: the shortest pause must be positive and not longer than the longest")
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// CallOption changes one write.
type CallOption func(*call)

// WithKey sends a write under an Idempotency-Key of the caller's: 1 to 200 visible ASCII characters. The same request
// under the same key is the same write, another request under it is refused.
func WithKey(key string) CallOption { return func(c *call) { c.key, c.keyed = key, true } }
