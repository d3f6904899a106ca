package holdfast

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

const (
	// pollStep is how long one long-poll asks the service to wait; proxies often cut at 30 s.
	pollStep = 25 * time.Second
	// pollPause is the shortest time from one poll to the next, should something between answer at once.
	pollPause = time.Second
)

// Wait returns an event once it has succeeded. One that has failed is returned with an [*EventFailedError]. When the
// context ends first, or the service can't be asked, it returns the event as it was last seen, nil if it never was, with a
// [*WaitError]: give the context a deadline, there is no other bound.
func (e *Events) Wait(ctx context.Context, id string) (*Event, error) {
	return e.wait(ctx, id, "")
}

func (e *Events) wait(ctx context.Context, id, key string) (*Event, error) {
	at, err := segment("wait for event", id)
	if err != nil {
		return nil, err
	}
	var last *Event
	for {
		started := e.c.clock.now()
		step := e.c.step(ctx)
		poll := read("wait for event", "/v1/events/"+at, url.Values{"wait": {seconds(step)}})
		poll.wait = step
		event, got, err := send[Event](ctx, e.c, poll)
		if err != nil {
			return last, &WaitError{EventID: id, Event: last, Key: key, Err: err}
		}
		event.Key, last = key, event
		switch event.Status {
		case Succeeded:
			return event, nil
		case Failed:
			return event, failedError(event)
		case Pending, Running, Retrying: // and what a later service may add
		}
		took, pause := e.c.clock.now().Sub(started), pollPause
		if took < step/2 { // the service doesn't keep this one waiting, and says when to ask again
			pause = max(pause, retryAfter(got.header, e.c.clock.now()))
		}
		if pause > took {
			err = e.c.clock.sleep(ctx, pause-took)
		}
		if err != nil {
			return last, &WaitError{EventID: id, Event: last, Key: key, Err: err}
		}
	}
}

func seconds(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }

// step is how long the next poll asks to wait: to the context's deadline at most, and well within a time-out of the given
// http.Client.
func (c *Client) step(ctx context.Context) time.Duration {
	step := pollStep
	if deadline, ok := ctx.Deadline(); ok {
		step = min(step, max(0, deadline.Sub(c.clock.now())))
	}
	if c.http.Timeout > 0 {
		step = min(step, c.http.Timeout/2)
	}
	return step
}

func failedError(event *Event) error {
	failed := &EventFailedError{Event: event, Key: event.Key}
	if e := event.Error; e != nil {
		failed.Code, failed.Class, failed.Message, failed.Action, failed.Retryable = e.Code, e.Class, e.Message, e.Action, e.Retryable
	}
	return failed
}
