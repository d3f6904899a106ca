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
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Changing is one change of a record to commit. With Embedded set the embedder is local and Vector is that of the
// new content, nil if it refuses the text; otherwise a new content waits for a worker to project it.
type Changing struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	Claim       Claim
	Change      command.Change
	Price       credit.Amount
	Embedded    bool
	VectorModel string
	Vector      model.Vector
}

// Changed is the answer to a change: what it made of the record, and the version that the record has by it. The
// text is the one that this command gave it or left, nil for an end and once it has been erased.
type Changed struct {
	EventID  uuid.UUID
	Result   memory.Result
	Version  int
	Replayed bool
}

// ChangeStore commits a change in one transaction, or answers the first result of the command that has the key.
// Faults, beside those of AcceptStore: MEMORY_NOT_FOUND and VERSION_CONFLICT, both decided after the key and under
// the record's lock, so that a repeat is a replay and one of two writers with the same expectation wins.
type ChangeStore interface {
	Change(ctx context.Context, c Changing) (Changed, *task.Hint, error)
}

// Changer changes and ends single records at once.
type Changer struct {
	store     ChangeStore
	publisher Publisher
	embedder  model.Embedder
	prices    credit.Prices
}

// NewChanger returns a Changer.
func NewChanger(store ChangeStore, publisher Publisher, embedder model.Embedder, prices credit.Prices) (*Changer, error) {
	if store == nil || publisher == nil || embedder == nil {
		return nil, errors.New("changer: store, publisher and embedder are required")
	}
	if err := prices.Validate(); err != nil {
		return nil, fmt.Errorf("changer: %w", err)
	}
	return &Changer{store: store, publisher: publisher, embedder: embedder, prices: prices}, nil
}

// Change commits the change of one record, or its end. The same change under the same key answers the first
// result; without a key (nil) the call is its own command.
func (c *Changer) Change(ctx context.Context, caller access.Caller, key *command.Key, change command.Change) (Changed, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Changed{}, fmt.Errorf("make event id: %w", err)
	}
	print, err := change.Fingerprint()
	if err != nil {
		return Changed{}, err
	}
	kind := task.Update
	if change.Delete {
		kind = task.Delete
	}
	changing := Changing{
		TaskID: id, WorkspaceID: caller.Workspace.ID, Claim: newClaim(caller.Workspace, keyOr(key), print), Change: change,
		Price: c.prices.Of(kind, caller.Workspace.Metered),
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	if change.Content != nil && c.embedder.Local() {
		embedding, err := c.embedder.Embed(ctx, []string{*change.Content})
		if err != nil {
			return Changed{}, fmt.Errorf("embed locally: %w", err)
		}
		changing.Vector, changing.VectorModel, changing.Embedded = embedding.Vectors[0], c.embedder.Model(), true
	}
	return c.commit(ctx, changing)
}

// keyOr returns the caller's key, or one that nobody can guess.
func keyOr(key *command.Key) command.Key {
	if key == nil {
		return command.RandomKey()
	}
	return *key
}

func (c *Changer) commit(ctx context.Context, changing Changing) (Changed, error) {
	var changed Changed
	var hint *task.Hint
	accepted := resolve(func() Accepted {
		var err error
		changed, hint, err = c.store.Change(ctx, changing)
		return Accepted{Refused: err}
	})
	if accepted.Refused != nil {
		return Changed{}, accepted.Refused
	}
	if hint != nil {
		c.publisher.Publish(ctx, *hint)
	}
	changed.Replayed = changed.Replayed && changed.EventID != changing.TaskID
	return changed, nil
}
