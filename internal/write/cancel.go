package write

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Ended says what ending a task set off: its own notice, and the hint of the lane's new head if there is one.
type Ended struct {
	Hint *task.Hint
}

// CancelStore ends a task that has not committed, or asks one in pieces to end as it is. Faults: EVENT_NOT_FOUND, NOT_CANCELLABLE, UNAVAILABLE. A
// task that was cancelled before is no error.
type CancelStore interface {
	Cancel(ctx context.Context, workspace, event uuid.UUID) (Ended, error)
}

// Notifier wakes those who wait for an event. It bounds itself and never fails the caller.
type Notifier interface {
	Notify(ctx context.Context, workspace, event uuid.UUID)
}

// Canceller ends events on their caller's wish.
type Canceller struct {
	store     CancelStore
	publisher Publisher
	notifier  Notifier
}

// NewCanceller returns a Canceller.
func NewCanceller(store CancelStore, publisher Publisher, notifier Notifier) (*Canceller, error) {
	if store == nil || publisher == nil || notifier == nil {
		return nil, errors.New("canceller: store, publisher and notifier are required")
	}
	return &Canceller{store: store, publisher: publisher, notifier: notifier}, nil
}

// Cancel ends the event before its canonical commit: failed, its hold released. Work in pieces that has begun to
// commit ends before its next piece: succeeded, with what is applied. Repeating it changes nothing.
func (c *Canceller) Cancel(ctx context.Context, caller access.Caller, event uuid.UUID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	var ended Ended
	answer := resolve(func() Accepted {
		var err error
		ended, err = c.store.Cancel(ctx, caller.Workspace.ID, event)
		return Accepted{Refused: err}
	})
	if answer.Refused != nil {
		return answer.Refused
	}
	c.notifier.Notify(ctx, caller.Workspace.ID, event)
	if ended.Hint != nil {
		c.publisher.Publish(ctx, *ended.Hint)
	}
	return nil
}
