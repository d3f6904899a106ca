package write

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Correction retracts a record of an account. With a Record it stores that in the old one's place. Vectors are set
// when the embedder is local, or when there is nothing to embed: then the task is born succeeded.
type Correction struct {
	TaskID       uuid.UUID
	WorkspaceID  uuid.UUID
	Account      string
	Claim        Claim
	Retracts     uuid.UUID
	Record       *memory.Planned
	VectorModel  string
	Vectors      []model.Vector
	BornComplete bool
}

// Corrected is the answer to a correction; Record is nil without a text.
type Corrected struct {
	EventID uuid.UUID
	Record  *uuid.UUID
}

// Correct retracts a record of the account and, with a text, stores the correction as it is. An unknown, foreign or
// already retracted record is MEMORY_NOT_FOUND.
func (s *Items) Correct(ctx context.Context, caller access.Caller, account string, record uuid.UUID, text *string) (Corrected, error) {
	if err := caller.Writable(); err != nil {
		return Corrected{}, err
	}
	if err := errAccount(account); err != nil {
		return Corrected{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Corrected{}, fmt.Errorf("make event id: %w", err)
	}
	c := Correction{
		TaskID: id, WorkspaceID: caller.Workspace.ID, Account: account, Retracts: record, BornComplete: true,
		Claim: newClaim(caller.Workspace, command.RandomKey(), command.RetryFingerprint(record)),
	}
	done := Corrected{EventID: id}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	if text != nil {
		if err := s.place(ctx, &c, *text); err != nil {
			return Corrected{}, err
		}
		done.Record = &c.Record.ID
	}
	var hint *task.Hint
	answer := resolve(func() Accepted {
		var err error
		hint, err = s.store.Correct(ctx, c)
		return Accepted{Refused: err}
	})
	if answer.Refused != nil {
		return Corrected{}, answer.Refused
	}
	if hint != nil {
		s.publisher.Publish(ctx, *hint)
	}
	return done, nil
}

// place makes the record that takes the retracted one's place, with its vector if that costs no network call.
func (s *Items) place(ctx context.Context, c *Correction, text string) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make record id: %w", err)
	}
	c.Record = &memory.Planned{ID: id, Text: text, Verbatim: true}
	c.BornComplete = s.embedder.Local()
	if !c.BornComplete {
		return nil
	}
	embedding, err := s.embedder.Embed(ctx, []string{text})
	if err != nil {
		return fmt.Errorf("embed locally: %w", err)
	}
	c.Vectors, c.VectorModel = embedding.Vectors, s.embedder.Model()
	return nil
}
