package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// course is what has become of a call so far.
type course struct {
	call     *call
	attempts int
	doubt    bool  // an attempt may have been carried out, and no later one has told
	last     error // of the last attempt
}

// do sends a call until it has a 2xx, another attempt would do harm or no good, or a bound is met.
func (c *Client) do(ctx context.Context, r call) (*reply, error) {
	started := c.clock.now()
	at := &course{call: &r}
	for {
		if err := ctx.Err(); err != nil {
			return nil, at.end(err)
		}
		at.attempts++
		got, failed := c.attempt(ctx, &r)
		if failed == nil {
			return got, nil
		}
		at.note(failed)
		if !failed.again {
			return nil, at.end(nil)
		}
		if err := ctx.Err(); err != nil {
			return nil, at.end(err)
		}
		if !r.repeat || r.once && failed.doubt || at.attempts > c.maxRetries {
			return nil, at.end(nil)
		}
		pause := c.pause(at.attempts, failed.floor)
		if c.clock.now().Sub(started)+pause > c.budget {
			return nil, at.end(nil)
		}
		if deadline, ok := ctx.Deadline(); ok && c.clock.now().Add(pause).After(deadline) {
			return nil, at.end(fmt.Errorf("no time for another attempt: %w", context.DeadlineExceeded))
		}
		if err := c.clock.sleep(ctx, pause); err != nil {
			return nil, at.end(err)
		}
	}
}

// answer sends a call and decodes its 2xx.
func answer[T any](ctx context.Context, c *Client, r call) (*T, error) {
	into, _, err := send[T](ctx, c, r)
	return into, err
}

// send is answer, and returns the head of the 2xx too.
func send[T any](ctx context.Context, c *Client, r call) (*T, *reply, error) {
	into := new(T)
	r.into = into
	got, err := c.do(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return into, got, nil
}

// pause is how long to wait after so many attempts: a step that doubles, half of it jitter. After a floor all of the step
// is jitter, so that callers who were told the same time don't come back at the same time.
func (c *Client) pause(attempts int, floor time.Duration) time.Duration {
	step := c.backoffMin
	for i := 1; i < attempts && step < c.backoffMax; i++ {
		step *= 2
	}
	step = min(step, c.backoffMax)
	if floor > 0 {
		return floor + rand.N(step)
	}
	return step/2 + rand.N(step/2+1)
}

// note takes in how an attempt failed.
func (at *course) note(failed *failure) {
	at.last = failed.err
	var refused *Error
	switch {
	case failed.doubt:
		at.doubt = true
	case at.call.key != "" && errors.As(failed.err, &refused) && settles(refused):
		at.doubt = false
	}
}

// end makes the error of a call that has no 2xx; stopped is why it isn't repeated, nil unless it is the context.
func (at *course) end(stopped error) error {
	r, cause := at.call, at.last
	var refused *Error
	answered := errors.As(at.last, &refused)
	if answered {
		refused.Key, refused.Attempts = r.key, at.attempts
	}
	switch {
	case cause == nil:
		cause = stopped
	case stopped != nil && !errors.Is(cause, stopped):
		cause = fmt.Errorf("%w (%w)", cause, stopped)
	}
	switch {
	case r.write && at.doubt:
		return &UnknownError{Op: r.op, Key: r.key, Attempts: at.attempts, Err: cause}
	case answered:
		return cause
	}
	return &NoAnswerError{Op: r.op, Key: r.key, Attempts: at.attempts, Err: cause}
}
