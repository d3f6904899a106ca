package recall

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// EventStore reads events.
type EventStore interface {
	// Event answers an event of the workspace or a fault EVENT_NOT_FOUND.
	Event(ctx context.Context, workspace, id uuid.UUID) (Event, error)
	Events(ctx context.Context, workspace uuid.UUID, query EventQuery) (EventPage, error)
	// EventByKey answers the event of an idempotency key; false if the key is unknown.
	EventByKey(ctx context.Context, workspace uuid.UUID, keyHash [sha256.Size]byte) (Event, bool, error)
}

// Notices tells of ended tasks, of any of the workspace with uuid.Nil. The channel gets a value at least once after the task ended, as far as the
// notice isn't lost; whoever waits also reads again by itself.
type Notices interface {
	Subscribe(workspace, task uuid.UUID) (signal <-chan struct{}, cancel func())
}

// rereadEvery bounds how late a long-poll learns of an end whose notice was lost.
const rereadEvery = 2 * time.Second

// Events reads events and waits for them.
type Events struct {
	store   EventStore
	notices Notices
}

// NewEvents returns a reader of events.
func NewEvents(store EventStore, notices Notices) (*Events, error) {
	if store == nil || notices == nil {
		return nil, errors.New("events: store and notices are required")
	}
	return &Events{store: store, notices: notices}, nil
}

// Get answers one event, a fault EVENT_NOT_FOUND for any other id.
func (e *Events) Get(ctx context.Context, workspace, id uuid.UUID) (Event, error) {
	event, err := e.store.Event(ctx, workspace, id)
	if err != nil {
		return Event{}, fmt.Errorf("get event: %w", err)
	}
	return event, nil
}

// List answers one page of events.
func (e *Events) List(ctx context.Context, workspace uuid.UUID, query EventQuery) (EventPage, error) {
	page, err := e.store.Events(ctx, workspace, query)
	if err != nil {
		return EventPage{}, fmt.Errorf("list events: %w", err)
	}
	return page, nil
}

// ByKey answers the event of an idempotency key; false if the key is unknown.
func (e *Events) ByKey(ctx context.Context, workspace uuid.UUID, keyHash [sha256.Size]byte) (Event, bool, error) {
	event, found, err := e.store.EventByKey(ctx, workspace, keyHash)
	if err != nil {
		return Event{}, false, fmt.Errorf("find event by key: %w", err)
	}
	return event, found, nil
}

// Wait answers the event as soon as enough holds for it, or as it is when wait has passed or ctx ends. It holds
// no database connection while it waits.
func (e *Events) Wait(ctx context.Context, workspace, id uuid.UUID, wait time.Duration, enough func(Event) bool) (Event, error) {
	signal, cancel := e.notices.Subscribe(workspace, id)
	defer cancel()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	reread := time.NewTicker(rereadEvery)
	defer reread.Stop()
	for {
		event, err := e.store.Event(ctx, workspace, id)
		if err != nil {
			return Event{}, fmt.Errorf("wait for event: %w", err)
		}
		if event.Status.Terminal() || enough(event) {
			return event, nil
		}
		select {
		case <-signal:
		case <-reread.C:
		case <-deadline.C:
			return event, nil
		case <-ctx.Done():
			return event, nil
		}
	}
}
