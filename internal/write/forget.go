package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Forget says which items of an account are to be erased: those with the ids, those of a session, or all.
type Forget struct {
	IDs     []string
	Session string
	All     bool
}

// ForgetAsk asks to erase one piece: the items with the keys or, without keys, at most Limit items of the session or,
// without a session, of the account.
type ForgetAsk struct {
	WorkspaceID uuid.UUID
	Account     string
	Keys        []command.ItemKey
	Session     string
	Limit       int
}

// Forgot tells what one piece did: items erased and queued revisions cancelled.
type Forgot struct {
	Items     int
	Cancelled int
	More      bool
	Ended     []uuid.UUID
	Hints     []task.Hint
}

// Forgotten is the answer to a forget. Queue is nil if not everything could be cleared in time: the call is to be
// repeated.
type Forgotten struct {
	Events int
	Queue  *int
}

const (
	// forgetPiece is how many items one transaction erases: few enough that it holds its lanes for milliseconds.
	forgetPiece = 100
	// forgetBound is how long one call goes on; what is left then is told by the answer.
	forgetBound = 12 * time.Second
)

// Forget erases items with their records, the text of their history and their queued input, in pieces. A repeat counts
// zero. An error means that nothing was erased; after the first piece a failure is told by Queue.
func (s *Items) Forget(ctx context.Context, caller access.Caller, account string, what Forget) (Forgotten, error) {
	if err := caller.Writable(); err != nil {
		return Forgotten{}, err
	}
	if err := errAccount(account); err != nil {
		return Forgotten{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetBound)
	defer cancel()
	var done Forgotten
	queue := 0
	asks := forgetAsks(caller.Workspace.ID, account, what)
	for i := 0; i < len(asks); {
		forgot, err := s.forgetPiece(ctx, asks[i])
		if err != nil && done.Events == 0 && i == 0 {
			return Forgotten{}, err
		}
		if err != nil {
			return done, nil //nolint:nilerr // what was erased is told, and that not all of it was
		}
		s.announce(ctx, caller.Workspace.ID, forgot.Ended, forgot.Hints)
		done.Events += forgot.Items
		queue += forgot.Cancelled
		if !forgot.More {
			i++
		}
	}
	done.Queue = &queue
	return done, nil
}

// forgetPiece runs one piece, and again when the answer to its COMMIT was lost: what it erased is counted by one run.
func (s *Items) forgetPiece(ctx context.Context, ask ForgetAsk) (Forgot, error) {
	forgot, err := s.store.ForgetItems(ctx, ask)
	if errors.Is(err, fault.ErrCommitUnknown) {
		again, failed := s.store.ForgetItems(ctx, ask)
		if failed != nil {
			return Forgot{}, fault.Wrap(fault.AcceptanceUnknown, failed)
		}
		if again.Items == 0 { // the lost answer was a yes
			forgot.More = again.More
			return forgot, nil
		}
		return again, nil
	}
	return forgot, err
}

func forgetAsks(workspace uuid.UUID, account string, what Forget) []ForgetAsk {
	if len(what.IDs) == 0 {
		return []ForgetAsk{{WorkspaceID: workspace, Account: account, Session: what.Session, Limit: forgetPiece}}
	}
	var asks []ForgetAsk
	for begin := 0; begin < len(what.IDs); begin += forgetPiece {
		ask := ForgetAsk{WorkspaceID: workspace, Account: account}
		for _, id := range what.IDs[begin:min(begin+forgetPiece, len(what.IDs))] {
			ask.Keys = append(ask.Keys, command.ItemKeyOf(account, id))
		}
		asks = append(asks, ask)
	}
	return asks
}

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
