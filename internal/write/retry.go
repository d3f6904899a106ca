package write

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// RetryAsk is a manual retry to commit. Exactly one of Generation (the one the caller saw fail) and Claim is
// set. Prices decides the new hold by the task's kind.
type RetryAsk struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	Metered     bool
	Generation  *int
	Claim       *Claim
	Prices      credit.Prices
}

// RetryStore opens a new generation of a failed task. It answers a hint when it did, nil when the task is
// already beyond the generation, whether the key was used for this retry before, and faults EVENT_NOT_FOUND, NOT_RETRYABLE, INPUT_EXPIRED,
// INSUFFICIENT_CREDITS, IDEMPOTENCY_CONFLICT or those of AcceptStore.
type RetryStore interface {
	Retry(ctx context.Context, ask RetryAsk) (hint *task.Hint, replayed bool, err error)
}

// Retrier authorises new runs of failed tasks.
type Retrier struct {
	store     RetryStore
	publisher Publisher
	prices    credit.Prices
}

// NewRetrier returns a Retrier.
func NewRetrier(store RetryStore, publisher Publisher, prices credit.Prices) (*Retrier, error) {
	if store == nil || publisher == nil {
		return nil, errors.New("retrier: store and publisher are required")
	}
	if err := prices.Validate(); err != nil {
		return nil, fmt.Errorf("retrier: %w", err)
	}
	return &Retrier{store: store, publisher: publisher, prices: prices}, nil
}

// Retry opens a new run of the failed event, once for each key or seen generation, however often it is asked. It
// answers true for a key that was used for this before.
func (r *Retrier) Retry(ctx context.Context, caller access.Caller, event uuid.UUID, generation *int, key *command.Key) (replayed bool, err error) {
	ask := RetryAsk{
		TaskID: event, WorkspaceID: caller.Workspace.ID, Metered: caller.Workspace.Metered, Generation: generation,
		Prices: r.prices,
	}
	switch {
	case key != nil:
		claim := newClaim(caller.Workspace, *key, command.RetryFingerprint(event))
		ask.Claim, ask.Generation = &claim, nil
	case generation == nil:
		return false, fault.At(fault.InvalidRequest, "/generation", "generation or Idempotency-Key required")
	default:
		if err := caller.Writable(); err != nil {
			return false, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	var hint *task.Hint
	answer := resolve(func() Accepted {
		hint, replayed, err = r.store.Retry(ctx, ask)
		return Accepted{Refused: err, Replayed: replayed}
	})
	if answer.Refused != nil {
		return false, answer.Refused
	}
	if hint != nil {
		r.publisher.Publish(ctx, *hint)
	}
	return answer.Replayed, nil
}
