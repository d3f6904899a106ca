package recall

import (
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Event is one durable command as its caller sees it. It never holds input, prompt, provider text, key,
// fingerprint, token or worker name.
type Event struct {
	ID            uuid.UUID
	Kind          task.Kind
	Status        task.EventStatus
	Scope         *memory.Scope // nil once erased
	Erased        bool
	Outcome       task.Outcome // empty until it succeeds
	Results       []memory.Result
	Attempts      int
	MaxAttempts   int
	Generation    int
	ErrorClass    task.Class     // empty without an error
	ErrorCode     task.ErrorCode // empty without an error
	InputGone     bool           // a failed event whose input has been removed: no retry
	Progress      *Progress      // nil but for work in pieces that has begun
	Usage         Usage
	AcceptedAt    time.Time
	UpdatedAt     time.Time
	StartedAt     *time.Time
	CommittedAt   *time.Time
	CompletedAt   *time.Time
	NextAttemptAt *time.Time
}

// Progress is how far work in pieces is. Line, if not zero, is the first line of an import that was wrong.
type Progress struct {
	Done  int64
	Total int64
	Line  int64
}

// Usage is what the current generation cost so far.
type Usage struct {
	Reserved      int64
	Settled       int64
	Released      int64
	ProviderCalls int
	TokensIn      int64
	TokensOut     int64
}

// EventQuery selects events of one workspace, newest first. Kinds is never empty.
type EventQuery struct {
	Kinds  []task.Kind
	Status task.EventStatus // empty: all
	After  *Place
	Limit  int
}

// Place is a position in a list that is ordered by a time and then an id, newest first.
type Place struct {
	At time.Time
	ID uuid.UUID
}

// EventPage is one page; Next is nil at the end.
type EventPage struct {
	Events []Event
	Next   *Place
}
