package write

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Batcher accepts changes of many records, which a worker applies in pieces.
type Batcher struct {
	store     AcceptStore
	publisher Publisher
	prices    credit.Prices
}

// NewBatcher returns a Batcher.
func NewBatcher(store AcceptStore, publisher Publisher, prices credit.Prices) (*Batcher, error) {
	if store == nil || publisher == nil {
		return nil, errors.New("batcher: store and publisher are required")
	}
	if err := prices.Validate(); err != nil {
		return nil, fmt.Errorf("batcher: %w", err)
	}
	return &Batcher{store: store, publisher: publisher, prices: prices}, nil
}

// Accept commits the batch and answers its receipt; the same batch under the same key answers the same receipt.
// Without a key (nil) the call is its own command. Faults are those of Accepter.
func (b *Batcher) Accept(ctx context.Context, caller access.Caller, key *command.Key, batch command.Batch) (Receipt, error) {
	print, err := batch.Fingerprint()
	if err != nil {
		return Receipt{}, err
	}
	payload, err := batch.Encode()
	if err != nil {
		return Receipt{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Receipt{}, fmt.Errorf("make event id: %w", err)
	}
	kind := task.BatchUpdate
	if batch.Delete {
		kind = task.BatchDelete
	}
	// A batch has no scope of its own: it waits in no lane, and its pieces take the lanes of their records.
	item := Acceptance{
		TaskID: id, WorkspaceID: caller.Workspace.ID, Kind: kind, Claim: newClaim(caller.Workspace, keyOr(key), print),
		Scope: memory.Scope{}, Payload: payload, Format: command.Format, Policy: []byte("{}"),
		Price: b.prices.Of(kind, caller.Workspace.Metered), Priority: task.Bulk,
	}
	item.Origin = task.OriginOf(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	accepted := resolve(func() Accepted { return b.store.Accept(ctx, []Acceptance{item})[0] })
	if accepted.Refused != nil {
		return Receipt{}, accepted.Refused
	}
	if accepted.Hint != nil {
		b.publisher.Publish(ctx, *accepted.Hint)
	}
	return Receipt{EventID: accepted.TaskID, Status: accepted.Status, Replayed: accepted.Replayed && accepted.TaskID != id}, nil
}
