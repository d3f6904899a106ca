package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// newBulk builds what retries and cancels many events.
func (c *core) newBulk() (*write.Bulk, error) { return bulkOver(c.db, c.wakeups) }

// messenger tells others what was committed.
type messenger interface {
	write.Publisher
	write.Notifier
}

// silent tells nobody: the workers look for due work by themselves, and who waits for an event looks again.
type silent struct{}

func (silent) Publish(context.Context, task.Hint)           {}
func (silent) Notify(context.Context, uuid.UUID, uuid.UUID) {}

// NewBulk builds what retries and cancels many events for a command beside the database. The workers find what it has
// retried when they look for due work.
func NewBulk(db *postgres.DB) (*write.Bulk, error) { return bulkOver(db, silent{}) }

func bulkOver(db *postgres.DB, tell messenger) (*write.Bulk, error) {
	prices := credit.DefaultPrices()
	retrier, err := write.NewRetrier(db, tell, prices)
	if err != nil {
		return nil, fmt.Errorf("build bulk: %w", err)
	}
	canceller, err := write.NewCanceller(db, tell, tell)
	if err != nil {
		return nil, fmt.Errorf("build bulk: %w", err)
	}
	return write.NewBulk(db, retrier, canceller, prices)
}

func (o operated) PauseWorkspace(ctx context.Context, idOrName string, paused bool) (operator.Workspace, error) {
	w, err := o.core.db.PauseWorkspace(ctx, idOrName, paused)
	return w, public(err)
}

func (o operated) PauseProvider(ctx context.Context, provider, reason string) error {
	return o.core.db.PauseProvider(ctx, provider, reason)
}

func (o operated) ResumeProvider(ctx context.Context, provider string) error {
	return o.core.db.ResumeProvider(ctx, provider)
}
