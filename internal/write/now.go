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

// Written is one verbatim add to commit. Vectors are set when the embedder is local: then the task is born
// succeeded. DedupeExact drops exact repeats of the lane's live records; it is set for adds without a key.
type Written struct {
	TaskID       uuid.UUID
	WorkspaceID  uuid.UUID
	Claim        Claim
	Scope        memory.Scope
	Plan         memory.Plan
	Price        credit.Amount
	Policy       []byte
	VectorModel  string
	Vectors      []model.Vector
	DedupeExact  bool
	BornComplete bool
}

// Stored is the answer to a verbatim add.
type Stored struct {
	EventID  uuid.UUID
	Results  []memory.Result
	Replayed bool
}

// NowStore commits a verbatim add with its records in one transaction, or answers the results of the command
// that has the key. Its errors are those of AcceptStore.
type NowStore interface {
	WriteNow(ctx context.Context, w Written) (Stored, *task.Hint, error)
}

// Writer stores messages as they are, at once.
type Writer struct {
	store     NowStore
	publisher Publisher
	embedder  model.Embedder
	prices    credit.Prices
}

// NewWriter returns a Writer.
func NewWriter(store NowStore, publisher Publisher, embedder model.Embedder, prices credit.Prices) (*Writer, error) {
	if store == nil || publisher == nil || embedder == nil {
		return nil, errors.New("writer: store, publisher and embedder are required")
	}
	if err := prices.Validate(); err != nil {
		return nil, fmt.Errorf("writer: %w", err)
	}
	return &Writer{store: store, publisher: publisher, embedder: embedder, prices: prices}, nil
}

// Write stores one record for each message, byte for byte, and answers what it did. Without a key (nil) the
// call is its own command, and a message that repeats a live record of its lane exactly answers NONE.
func (w *Writer) Write(ctx context.Context, caller access.Caller, key *command.Key, add command.Add) (Stored, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Stored{}, fmt.Errorf("make event id: %w", err)
	}
	written := Written{
		TaskID: id, WorkspaceID: caller.Workspace.ID, Scope: add.Scope, DedupeExact: key == nil,
		Price: w.prices.Of(task.Add, caller.Workspace.Metered), Policy: []byte("{}"),
	}
	if key == nil {
		random := command.RandomKey()
		key = &random
	}
	if written.Claim, err = claimOf(caller.Workspace, *key, add); err != nil {
		return Stored{}, err
	}
	if written.Plan, err = verbatim(add); err != nil {
		return Stored{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	if w.embedder.Local() {
		texts := make([]string, len(written.Plan.Records))
		for i, r := range written.Plan.Records {
			texts[i] = r.Text
		}
		embedding, err := w.embedder.Embed(ctx, texts)
		if err != nil {
			return Stored{}, fmt.Errorf("embed locally: %w", err)
		}
		written.Vectors, written.VectorModel, written.BornComplete = embedding.Vectors, w.embedder.Model(), true
	}
	return w.commit(ctx, written)
}

func (w *Writer) commit(ctx context.Context, written Written) (Stored, error) {
	var stored Stored
	var hint *task.Hint
	accepted := resolve(func() Accepted {
		var err error
		stored, hint, err = w.store.WriteNow(ctx, written)
		return Accepted{Refused: err}
	})
	if accepted.Refused != nil {
		return Stored{}, accepted.Refused
	}
	if hint != nil {
		w.publisher.Publish(ctx, *hint)
	}
	stored.Replayed = stored.Replayed && stored.EventID != written.TaskID
	return stored, nil
}

// verbatim plans one record for each message.
func verbatim(add command.Add) (memory.Plan, error) {
	plan := memory.Plan{Records: make([]memory.Planned, 0, len(add.Messages))}
	for _, m := range add.Messages {
		id, err := uuid.NewV7()
		if err != nil {
			return memory.Plan{}, fmt.Errorf("make record id: %w", err)
		}
		plan.Records = append(plan.Records, memory.Planned{
			ID: id, Text: m.Content, Role: m.Role, EventDate: add.EventDate, ExpiresAt: add.ExpiresAt,
			Metadata: add.Metadata, Verbatim: true,
		})
	}
	return plan, nil
}
