package write

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Parts hands the parts of a snapshot to yield, from the first one each time it is called.
type Parts func(yield func(part []byte) error) error

// ImportStore accepts imports. AcceptImport commits the task with the parts of its snapshot, while no other transaction
// of the workspace is open, or answers the task that has the key. It refuses with a fault WORKSPACE_NOT_EMPTY; its other
// answers are those of AcceptStore.
type ImportStore interface {
	AcceptImport(ctx context.Context, item Acceptance, parts Parts) Accepted
}

// importBound is how long an acceptance may take: the greatest snapshot is written within seconds.
const importBound = time.Minute

// Mover accepts exports and imports of whole workspaces. Both are free.
type Mover struct {
	store     AcceptStore
	imports   ImportStore
	publisher Publisher
}

// NewMover returns a Mover.
func NewMover(store AcceptStore, imports ImportStore, publisher Publisher) (*Mover, error) {
	if store == nil || imports == nil || publisher == nil {
		return nil, errors.New("mover: stores and publisher are required")
	}
	return &Mover{store: store, imports: imports, publisher: publisher}, nil
}

// Export commits the wish for a snapshot and answers its receipt; the same wish under the same key answers the same
// receipt. Without a key (nil) each call is a snapshot of its own. Faults are those of Accepter.
func (m *Mover) Export(ctx context.Context, caller access.Caller, key *command.Key) (Receipt, error) {
	return m.accept(ctx, caller, key, task.Export, command.Fingerprint(sha256.Sum256([]byte("export/1"))), acceptBound,
		func(ctx context.Context, item Acceptance) Accepted { return m.store.Accept(ctx, []Acceptance{item})[0] })
}

// Import commits a snapshot to be read into the caller's empty workspace and answers its receipt; the same bytes under
// the same key answer the same receipt. Nothing but the length of lines is checked yet. Faults: those of Accepter,
// INVALID_BODY and WORKSPACE_NOT_EMPTY.
func (m *Mover) Import(ctx context.Context, caller access.Caller, key *command.Key, snapshot io.ReadSeeker) (Receipt, error) {
	sum := sha256.New()
	sum.Write([]byte("import/1"))
	parts := func(yield func([]byte) error) error {
		if _, err := snapshot.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("rewind snapshot: %w", err)
		}
		return command.SplitSnapshot(snapshot, yield)
	}
	if err := parts(func(part []byte) error { sum.Write(part); return nil }); err != nil {
		return Receipt{}, err
	}
	return m.accept(ctx, caller, key, task.Import, command.Fingerprint(sum.Sum(nil)), importBound,
		func(ctx context.Context, item Acceptance) Accepted { return m.imports.AcceptImport(ctx, item, parts) })
}

func (m *Mover) accept(ctx context.Context, caller access.Caller, key *command.Key, kind task.Kind, print command.Fingerprint,
	bound time.Duration, commit func(context.Context, Acceptance) Accepted,
) (Receipt, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Receipt{}, fmt.Errorf("make event id: %w", err)
	}
	item := Acceptance{
		TaskID: id, WorkspaceID: caller.Workspace.ID, Kind: kind, Claim: newClaim(caller.Workspace, keyOr(key), print),
		Payload: []byte("{}"), Format: command.Format, Policy: []byte("{}"), Priority: task.Bulk,
	}
	item.Origin = task.OriginOf(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	accepted := resolve(func() Accepted { return commit(ctx, item) })
	if accepted.Refused != nil {
		return Receipt{}, accepted.Refused
	}
	if accepted.Hint != nil {
		m.publisher.Publish(ctx, *accepted.Hint)
	}
	return Receipt{EventID: accepted.TaskID, Status: accepted.Status, Replayed: accepted.Replayed && accepted.TaskID != id}, nil
}
