package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
)

// EntryPage is one page of the journal; Next is nil at the end.
type EntryPage struct {
	Entries []credit.Entry
	Next    *EntryPlace
}

// EntryPlace is a position in the journal, newest first: a task can have several entries at one time.
type EntryPlace struct {
	Place
	Type       credit.EntryType
	Generation int
}

// CreditStore reads a workspace's account and journal.
type CreditStore interface {
	Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error)
	Entries(ctx context.Context, workspace uuid.UUID, after *EntryPlace, limit int) (EntryPage, error)
}

// Credits reads accounts.
type Credits struct{ store CreditStore }

// NewCredits returns a reader of accounts.
func NewCredits(store CreditStore) (*Credits, error) {
	if store == nil {
		return nil, errors.New("credits: a store is required")
	}
	return &Credits{store: store}, nil
}

// Balance answers what the workspace has.
func (c *Credits) Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error) {
	balance, err := c.store.Balance(ctx, workspace)
	if err != nil {
		return credit.Balance{}, fmt.Errorf("read balance: %w", err)
	}
	return balance, nil
}

// Entries answers one page of the journal, newest first.
func (c *Credits) Entries(ctx context.Context, workspace uuid.UUID, after *EntryPlace, limit int) (EntryPage, error) {
	page, err := c.store.Entries(ctx, workspace, after, limit)
	if err != nil {
		return EntryPage{}, fmt.Errorf("read journal: %w", err)
	}
	return page, nil
}
