package postgres

import (
	"time"

	"github.com/google/uuid"
)

// CountPendingSQL counts what a workspace has waiting.
const CountPendingSQL = countPendingSQL

// Backlog is what one process knows of how much waits.
type Backlog struct{ *backlog }

// NewBacklog returns one that knows nothing.
func NewBacklog() Backlog { return Backlog{newBacklog(0)} }

// Admit is the question before an acceptance.
func (b Backlog) Admit(workspace uuid.UUID, tasks int, now time.Time) (bool, error) {
	return b.admit(workspace, tasks, now)
}

// Counted is what a count has found.
func (b Backlog) Counted(workspace uuid.UUID, tasks, most, waiting int, now time.Time) error {
	return b.counted(workspace, tasks, most, waiting, now)
}

// Known is how many workspaces something is known of.
func (b Backlog) Known() int { return len(b.known) }

// Queued is how many callers wait for a connection.
func (db *DB) Queued() int { return len(db.queue.places) }
