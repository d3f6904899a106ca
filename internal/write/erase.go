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
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Erasing is one erase to accept.
type Erasing struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	Claim       Claim
	Scope       memory.Scope
}

// Erased is what an erase has done so far, and whether that is all. Deleted counts records, Cancelled the commands
// that were ended before they stored anything.
type Erased struct {
	EventID   uuid.UUID
	Deleted   int64
	Cancelled int64
	Finished  bool
	Replayed  bool
}

// EraseStore accepts erases. BeginErase commits command, task and fence in one transaction that no other one of the
// workspace runs beside, or answers how far the command that has the key is; its errors are those of AcceptStore.
type EraseStore interface {
	BeginErase(ctx context.Context, e Erasing) (Erased, *task.Hint, error)
	ErasedSoFar(ctx context.Context, workspace, event uuid.UUID) (Erased, error)
}

// Runner runs one task of the workspace in the caller's own time, for at most that long, and leaves what remains to the workers. Its
// error says why it is left to them.
type Runner interface {
	Run(ctx context.Context, workspace, event uuid.UUID, within time.Duration) error
}

const (
	// eraseInline is how long a caller waits for an erase (API.md).
	eraseInline = 5 * time.Second
	// eraseLook is how often the end of an erase is looked for that a worker has taken.
	eraseLook = 100 * time.Millisecond
	// eraseBound is how long a call may take: its acceptance, the time it waits and the last piece under way.
	eraseBound = acceptBound + eraseInline + 10*time.Second
)

// Eraser removes everything of a scope.
type Eraser struct {
	store     EraseStore
	runner    Runner
	publisher Publisher
}

// NewEraser returns an Eraser.
func NewEraser(store EraseStore, runner Runner, publisher Publisher) (*Eraser, error) {
	if store == nil || runner == nil || publisher == nil {
		return nil, errors.New("eraser: store, runner and publisher are required")
	}
	return &Eraser{store: store, runner: runner, publisher: publisher}, nil
}

// Erase removes everything of the scope that was accepted before this call: records, history, what is derived from
// them, and the input of commands. It answers after five seconds at most; an erase that is not finished then goes on
// by itself and cannot be stopped. The same erase under the same key is the same erase: what came after the first
// call stays. Faults: SCOPE_REQUIRED, and those of Accepter.
func (e *Eraser) Erase(ctx context.Context, caller access.Caller, key *command.Key, scope memory.Scope) (Erased, error) {
	if scope.Empty() {
		return Erased{}, fault.New(fault.ScopeRequired)
	}
	print, err := command.Erase{Scope: scope}.Fingerprint()
	if err != nil {
		return Erased{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Erased{}, fmt.Errorf("make event id: %w", err)
	}
	item := Erasing{
		TaskID: id, WorkspaceID: caller.Workspace.ID, Claim: newClaim(caller.Workspace, keyOr(key), print), Scope: scope,
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseBound)
	defer cancel()
	begun, hint, err := e.begin(ctx, item)
	if err != nil {
		return Erased{}, err
	}
	begun.Replayed = begun.Replayed && begun.EventID != id
	if begun.Finished {
		return begun, nil
	}
	return e.finish(ctx, caller.Workspace.ID, begun, hint), nil
}

func (e *Eraser) begin(ctx context.Context, item Erasing) (Erased, *task.Hint, error) {
	ctx, cancel := context.WithTimeout(ctx, acceptBound)
	defer cancel()
	var begun Erased
	var hint *task.Hint
	accepted := resolve(func() Accepted {
		var err error
		begun, hint, err = e.store.BeginErase(ctx, item)
		return Accepted{Refused: err}
	})
	return begun, hint, accepted.Refused
}

// finish runs the erase and answers how far it is. Nothing that goes wrong here is the caller's matter: the erase is
// accepted and goes on without this call.
func (e *Eraser) finish(ctx context.Context, workspace uuid.UUID, begun Erased, hint *task.Hint) Erased {
	until := time.Now().Add(eraseInline)
	if err := e.runner.Run(ctx, workspace, begun.EventID, eraseInline); err != nil && hint != nil {
		e.publisher.Publish(ctx, *hint)
	}
	tick := time.NewTicker(eraseLook)
	defer tick.Stop()
	for {
		now, err := e.store.ErasedSoFar(ctx, workspace, begun.EventID)
		if err == nil {
			begun.Deleted, begun.Cancelled, begun.Finished = now.Deleted, now.Cancelled, now.Finished
		}
		if begun.Finished || !time.Now().Before(until) {
			return begun
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return begun
		}
	}
}
