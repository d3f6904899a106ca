package write

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
)

// FeedbackStore keeps one feedback for each live record. Its errors are those of AcceptStore, and a fault
// MEMORY_NOT_FOUND for a record that isn't live. The time is nil for one that was taken back.
type FeedbackStore interface {
	GiveFeedback(ctx context.Context, workspace uuid.UUID, feedback command.Feedback) (*time.Time, error)
}

// Feedbacks keeps what readers say of memories.
type Feedbacks struct{ store FeedbackStore }

// NewFeedbacks returns the use case.
func NewFeedbacks(store FeedbackStore) (*Feedbacks, error) {
	if store == nil {
		return nil, errors.New("feedbacks: a store is required")
	}
	return &Feedbacks{store}, nil
}

// Give commits the feedback in place of an earlier one, or takes that back, and answers when. Doing it twice is doing
// it once. The feedback goes with its record.
func (f *Feedbacks) Give(ctx context.Context, caller access.Caller, feedback command.Feedback) (*time.Time, error) {
	if err := caller.Writable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	var at *time.Time
	answer := resolve(func() Accepted {
		var err error
		at, err = f.store.GiveFeedback(ctx, caller.Workspace.ID, feedback)
		return Accepted{Refused: err}
	})
	return at, answer.Refused
}
