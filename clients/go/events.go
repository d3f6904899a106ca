package holdfast

import (
	"context"
	"iter"
	"net/http"
)

// Events tells what becomes of writes.
type Events struct{ c *Client }

// EventFilter says which events.
type EventFilter struct {
	// Status is one status, empty for all.
	Status EventStatus
	// Type is one type, such as memory_update; empty for inferred adds.
	Type string
}

// Get reads an event as it is now.
func (e *Events) Get(ctx context.Context, id string) (*Event, error) {
	at, err := segment("get event", id)
	if err != nil {
		return nil, err
	}
	return answer[Event](ctx, e.c, read("get event", "/v1/events/"+at, nil))
}

// List reads one page of events, newest first.
func (e *Events) List(ctx context.Context, filter EventFilter, page PageOptions) (*Page[Event], error) {
	query := page.query()
	if filter.Status != "" {
		query.Set("status", string(filter.Status))
	}
	if filter.Type != "" {
		query.Set("type", filter.Type)
	}
	return list[Event](ctx, e.c, "list events", "/v1/events", query)
}

// All goes through events, newest first. It ends after an error.
func (e *Events) All(ctx context.Context, filter EventFilter) iter.Seq2[Event, error] {
	return each(func(at PageOptions) (*Page[Event], error) { return e.List(ctx, filter, at) })
}

// ByKey answers what became of the write under a key, of whatever type. False proves nothing, the write may still be on
// its way: send the same request under the same key.
func (e *Events) ByKey(ctx context.Context, key string) (*Event, bool, error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	r := read("event by key", "/v1/events", nil)
	r.key, r.header = key, map[string]string{"Idempotency-Key": headerKey(key)}
	page, err := answer[Page[Event]](ctx, e.c, r)
	if err != nil {
		return nil, false, err
	}
	if len(page.Results) == 0 {
		return nil, false, nil
	}
	page.Results[0].Key = key
	return &page.Results[0], true, nil
}

// Retry authorises a new run of a failed event, which is held for at today's price. The generation is the one that was
// seen to fail; an event that is beyond it, or has not ended, is answered as it is and nothing is held. With generation 0
// the retry goes out under a key, as with [WithKey]: each key is one retry.
func (e *Events) Retry(ctx context.Context, id string, generation int, opts ...CallOption) (*Event, error) {
	at, err := segment("retry event", id)
	if err != nil {
		return nil, err
	}
	path := "/v1/events/" + at + "/retry"
	r := call{op: "retry event", method: http.MethodPost, path: path, write: true, repeat: true}
	if generation == 0 || len(opts) > 0 {
		r, err = keyedWrite("retry event", http.MethodPost, path, nil, opts)
	} else {
		r.body, err = encode(r.op, map[string]int{"generation": generation})
	}
	if err != nil {
		return nil, err
	}
	event, err := answer[Event](ctx, e.c, r)
	if err != nil {
		return nil, err
	}
	event.Key = r.key
	return event, nil
}

// Cancel ends an event before it commits its memories; afterwards it is refused with NOT_CANCELLABLE. Cancelling a
// cancelled event answers it again.
func (e *Events) Cancel(ctx context.Context, id string) (*Event, error) {
	at, err := segment("cancel event", id)
	if err != nil {
		return nil, err
	}
	path := "/v1/events/" + at + "/cancel"
	return answer[Event](ctx, e.c, call{op: "cancel event", method: http.MethodPost, path: path, write: true, repeat: true})
}
