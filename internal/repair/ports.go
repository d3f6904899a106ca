package repair

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// Cursor is a place in a scan: the last row that was looked at. The zero value is the beginning. Each scan uses the
// fields of its own order and hands them back.
type Cursor struct {
	Workspace uuid.UUID
	At        time.Time
	ID        uuid.UUID
}

// Swept is what one step of a scan came to. What was found and neither fixed nor failed was taken or changed by
// somebody else meanwhile. More tells that rows may follow behind Next.
type Swept struct {
	Found  int
	Fixed  int
	Failed int
	Next   Cursor
	More   bool
}

// Leases moves tasks on that nobody works on. Each row is a transaction of its own; the error joins those of the
// rows that failed, and what was moved is in the answer even then.
type Leases interface {
	// RescueAfter moves up to limit expired leases behind a place on: back to pending, or to failed when their crashes
	// are exhausted.
	RescueAfter(ctx context.Context, maxAttempts int, after Cursor, limit int) ([]worker.Rescued, Swept, error)
	// ExhaustAfter looks at up to limit waiting tasks behind a place and fails those whose crashes are exhausted.
	ExhaustAfter(ctx context.Context, maxAttempts int, after Cursor, limit int) ([]worker.Rescued, Swept, error)
}

// Rehint asks for new hints of due tasks.
type Rehint struct {
	// MaxAttempts leaves out tasks whose crashes are exhausted.
	MaxAttempts int
	// Age is how old the last hint must be; zero is any age. A delayed retry has had none and is hinted once it is due.
	Age time.Duration
	// Limit is the most hints that are made.
	Limit int
}

// Hints makes new hints.
type Hints interface {
	// Rehint raises the hint's number of due tasks, fair over workspaces, and answers the hints to be published. found
	// also counts those that somebody else took first.
	Rehint(ctx context.Context, ask Rehint) (found int, raised []task.Hint, err error)
}

// Retention removes what has been kept long enough, by the time since its task ended.
type Retention interface {
	// ExpireInput removes the input of failed tasks, which can be retried no more.
	ExpireInput(ctx context.Context, older time.Duration, after Cursor, limit int) (Swept, error)
	// ArchiveEnded moves ended tasks that have no input out of the hot table.
	ArchiveEnded(ctx context.Context, older time.Duration, after Cursor, limit int) (Swept, error)
	// RetireArchived forgets archived tasks with their keys, results, attempts and plans. The journal stays.
	RetireArchived(ctx context.Context, older time.Duration, after Cursor, limit int) (Swept, error)
	// ForgetExports removes up to limit definitions of exports of memories that nobody can read any more.
	ForgetExports(ctx context.Context, limit int) (Swept, error)
	// RetireDataKeys removes up to limit keys of payloads that nothing refers to any more.
	RetireDataKeys(ctx context.Context, limit int) (Swept, error)
	// ForgetActs removes up to limit entries of the log of acts that are older.
	ForgetActs(ctx context.Context, older time.Duration, limit int) (Swept, error)
	// ForgetConsole removes up to limit each of sessions that are over, and of minutes that are older.
	ForgetConsole(ctx context.Context, older time.Duration, limit int) (Swept, error)
}

// Books reads the books. Every answer is of one snapshot, which ends with the call.
type Books interface {
	// Ledgers answers up to limit workspaces behind after, in the order of their ids, whose books were not found in
	// order within the last fresh.
	Ledgers(ctx context.Context, after uuid.UUID, fresh time.Duration, limit int) ([]uuid.UUID, error)
	// SumBooks adds up the movements of a workspace since its checkpoint, or with full all of them.
	SumBooks(ctx context.Context, workspace uuid.UUID, full bool) (Sums, error)
	// SaveCheckpoint keeps how far the books have been added up, unless another process has done so meanwhile.
	SaveCheckpoint(ctx context.Context, workspace uuid.UUID, checkpoint Checkpoint) (saved bool, err error)
	// CheckWorkspace compares up to look rows of each kind of a workspace: the newest, and some from a random place.
	CheckWorkspace(ctx context.Context, workspace uuid.UUID, look int) ([]Finding, error)
	// CheckRecent compares up to look tasks of all workspaces that run, or ended within the window.
	CheckRecent(ctx context.Context, window time.Duration, look int) ([]Finding, error)
}

// Topology creates the NATS stream and consumers that are missing, and tells whether hints are lost: something was
// missing, or the stream was made anew since the call before. That holds beside an error too.
type Topology interface {
	EnsureTopology(ctx context.Context) (lost bool, err error)
}

// Backlog tells how many hints of a priority class wait for a worker. Those out for work don't count: they may be as
// many as there are slots, and say nothing of hints that got lost.
type Backlog interface {
	Waiting(ctx context.Context, priority string) (uint64, error)
}

// Deps is what a repairer needs. Topology and Backlog may be nil: without NATS there is nothing to look at. Webhooks may
// be nil: they are left to the workers.
type Deps struct {
	Leases    Leases
	Hints     Hints
	Retention Retention
	Books     Books
	Topology  Topology
	Backlog   Backlog
	Webhooks  Webhooks
	Publisher worker.Publisher
	Notifier  worker.Notifier
}
