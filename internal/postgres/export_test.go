package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// Statements whose plans the tests look at.
const (
	EventsSQL       = eventsSQL
	MemoriesSQL     = memoriesSQL + " AND m.user_id = @user_id" + newestSQL
	EntriesSQL      = entriesSQL
	EntriesAfterSQL = entriesAfterSQL
	FactsSQL        = factsSQL
)

// Exhaust is the move of whoever found a task exhausted a moment ago.
func (db *DB) Exhaust(ctx context.Context, id uuid.UUID, maxAttempts int) (*worker.Rescued, error) {
	return db.exhaust(ctx, id, maxAttempts)
}
