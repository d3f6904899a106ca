package worker

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Lease is a claimed task. Token proves the claim and is checked by every write; Crashes counts the claims that
// ended without a word, this one included until it ends. Troubled counts the provider's failures in a row.
type Lease struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	Token       uuid.UUID
	Worker      string
	Kind        task.Kind
	Stage       task.Stage
	Generation  int
	Claim       int
	Crashes     int
	Spent       task.Spent
	Scope       memory.Scope
	Lane        memory.Lane
	Ordered     bool
	Payload     []byte
	Closed      error // why the payload can't be opened, a seal.ErrUnreadable; nil for one that is there
	Format      int
	Policy      []byte
	Cursor      int64 // how far work in chunks is
	ItemKey     []byte
	ItemRev     int // the item revision that the task lands
	AcceptedAt  time.Time
	ClaimedAt   time.Time
	Origin      task.Origin // where in a trace its command came from, zero for none
	Troubled    int
}

// ClaimAsk asks for the lease of one task. WorkspaceID holds the claim to a workspace's tasks; the zero value is any.
type ClaimAsk struct {
	TaskID      uuid.UUID
	Token       uuid.UUID
	WorkspaceID uuid.UUID
}

// Claimant is what all claims of a worker have in common.
type Claimant struct {
	Worker      string // incarnation: unique to this start of the process
	TTL         time.Duration
	Kinds       []task.Kind
	Format      int // newest payload format that can be read
	MaxAttempts int
	Extractor   string // provider of extractions, for pauses
	Embedder    string // provider of embeddings, for pauses
	Among       Among  // which tasks are asked for
	// Live are the leases of each workspace, as far as they are known: Due begins with those that have the fewest.
	Live map[uuid.UUID]int
	// Restart in [0,1) is how far into the time after a provider's pause this asks: claims come back spread.
	Restart float64
}

// Claimed is the answer to one ask: a lease, or nil when the task is not to be had now (taken, ended, not due,
// paused, waiting in its lane, of an unknown kind, not among those asked for). Err is about the database only.
type Claimed struct {
	Lease *Lease
	Err   error
}

// Work is what a claim has used of the model, for its attempt row.
type Work struct {
	ModelTime time.Duration
	Usage     model.Usage
}

// Commit asks for the canonical commit of a plan. With Complete set the embedder is local: vectors are given
// (one for each planned record, nil for a text it refuses) and the task succeeds in the same transaction.
type Commit struct {
	Lease       Lease
	Plan        memory.Plan
	Work        Work
	Complete    bool
	VectorModel string
	Vectors     []model.Vector
}

// Settle asks for the end of a committed task: vectors of its live records, outcome, settle, scrub.
type Settle struct {
	Lease       Lease
	Work        Work
	VectorModel string
	Projected   []Projection
}

// Projection is the vector of one record at one version; a nil vector marks a text that the embedder refuses.
type Projection struct {
	RecordID uuid.UUID
	Version  int
	// Key is the content key of the text that was embedded, nil to go by the version alone.
	Key    *memory.ContentKey
	Vector model.Vector
}

// LiveRecord is a record of the task that still needs a vector.
type LiveRecord struct {
	ID      uuid.UUID
	Version int
	Text    string
}

// Fail asks for the end of a run before its canonical commit, with its hold released.
type Fail struct {
	Lease Lease
	Class task.Class
	Code  task.ErrorCode
	Work  Work
}

// Later asks to give the lease up for Delay, with a recorded failure (Class set) or without (a give-back, which
// spends nothing).
type Later struct {
	Lease Lease
	Class task.Class
	Code  task.ErrorCode
	Delay time.Duration
	Work  Work
}

// Done is what a step did. Err is nil, fault.ErrLeaseLost (nothing was written), fault.ErrCommitUnknown (repeat
// the step) or a database error (the transaction didn't happen). Ended tells that the task has ended, Cancelled that
// it did so without success: an erase covers it. Head is the lane's new head to be hinted, Heads are those of several
// lanes; Hint is the task's own next wakeup.
type Done struct {
	Ended     bool
	Cancelled bool
	Cursor    int64 // after a chunk: where the next one begins
	Head      *task.Hint
	Heads     []task.Hint
	Hint      *task.Hint
	Err       error
}

// wakeups lists every hint that the step asks for.
func (d Done) wakeups() []task.Hint {
	hints := slices.Clone(d.Heads)
	for _, hint := range []*task.Hint{d.Head, d.Hint} {
		if hint != nil {
			hints = append(hints, *hint)
		}
	}
	return hints
}

// Chunk is one piece of a task that works in pieces: the texts that must be embedded before it is applied, and
// what its job wants to remember between reading and applying it.
type Chunk struct {
	Texts []string
	State any
}

// Job is the work of one kind of task in pieces, each its own transaction. The first sets the stage to committed,
// the last ends the task; each is fenced by the lease and by where the piece begins (lease.Cursor), and moves it.
type Job interface {
	// Next reads the piece that begins at the lease's cursor, without a lock.
	Next(ctx context.Context, lease Lease) (Chunk, error)
	// Apply commits it with its vectors (one for each text, nil for one that the embedder refuses).
	Apply(ctx context.Context, lease Lease, chunk Chunk, vectorModel string, vectors []model.Vector, work Work) Done
}

// KnownRecord is a live record of a task's lane that a new fact may supersede.
type KnownRecord struct {
	ID      uuid.UUID
	Version int
	Text    string
	SaidAt  time.Time
}

// Known reads what the lane knows already: the live records that share most terms with the conversation and the
// newest ones, at most limit, in the order in which they were said.
type Known interface {
	Known(ctx context.Context, lease Lease, terms []string, limit int) ([]KnownRecord, error)
}

// Beat is the answer to a heartbeat: how long, by the database's clock, the task's provider is still paused (zero
// when it isn't).
type Beat struct {
	PausedFor time.Duration
}

// Claims is the intake side of the store.
type Claims interface {
	// Claim answers one Claimed for each ask. A lost answer is repeated with the same token and counts nothing.
	Claim(ctx context.Context, who Claimant, asks []ClaimAsk, skipLocked bool) []Claimed
	// Due answers up to limit due tasks, fair over workspaces, and whether more may be waiting. What it hands out next
	// goes to the workspace with the fewest leases, and to each in turn among equals.
	Due(ctx context.Context, who Claimant, limit int) (ids []uuid.UUID, more bool, err error)
	// Heartbeat extends the lease by ttl, or answers fault.ErrLeaseLost. It also tells whether provider is paused.
	Heartbeat(ctx context.Context, lease Lease, ttl time.Duration, provider string) (Beat, error)
	// Rescue moves up to limit expired leases on: back to pending, or to failed when their crashes are exhausted.
	Rescue(ctx context.Context, maxAttempts, limit int) ([]Rescued, error)
	// Leases counts the live leases that others than this worker hold, of each workspace that has any, its own included.
	Leases(ctx context.Context, worker string) (map[uuid.UUID]Load, error)
}

// Rescued is one expired lease that was moved on. Hint wakes the task, or the next of its lane.
type Rescued struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	Failed      bool
	Hints       []task.Hint
}

// Steps is the fenced side of the store: each call is one transaction for each item.
type Steps interface {
	Commit(ctx context.Context, items []Commit) []Done
	Settle(ctx context.Context, items []Settle) []Done
	Fail(ctx context.Context, items []Fail) []Done
	Later(ctx context.Context, items []Later) []Done
	// Unprojected answers the live records of a committed task that have no vector of their version yet.
	Unprojected(ctx context.Context, lease Lease, vectorModel string) ([]LiveRecord, error)
}

// Providers keeps what is known of providers over all workers.
type Providers interface {
	// Pause leaves the provider alone for at least d from now.
	Pause(ctx context.Context, provider string, class task.Class, d time.Duration) error
	// Outage counts one more failure in a row and answers how many there are.
	Outage(ctx context.Context, provider string, class task.Class) (inARow int, err error)
	// Healthy ends the row of failures.
	Healthy(ctx context.Context, provider string) error
}
