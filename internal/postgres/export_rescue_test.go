package postgres

import (
	"context"
	"time"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// RescueSeen is the move of whoever saw a lease expired a moment ago.
func (db *DB) RescueSeen(ctx context.Context, l worker.Lease, until time.Time, maxAttempts int) (*worker.Rescued, error) {
	return db.rescue(ctx, expiredLease{id: l.TaskID, workspace: l.WorkspaceID, token: l.Token, until: until}, maxAttempts)
}
