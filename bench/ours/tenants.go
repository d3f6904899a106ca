package ours

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// Thousand is how many workspaces share the load where no hot one is meant.
const Thousand = 1000

// riches are the largest grant there is; no measurement spends it.
const riches credit.Amount = 1_000_000_000_000

// makers make workspaces at once: the commits of as many connections as a pool has share their flushes.
const makers = 16

// Tenant is one workspace with a key to everything in it.
type Tenant struct {
	ID  uuid.UUID
	Key string
}

// Tenants makes n workspaces with credits.
func Tenants(ctx context.Context, databaseURL string, n int) ([]Tenant, error) {
	db, err := postgres.Open(ctx, postgres.Config{URL: databaseURL})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	made := make([]Tenant, n)
	failed := make([]error, makers)
	var all sync.WaitGroup
	for m := range makers {
		all.Go(func() {
			for i := m; i < n && failed[m] == nil; i += makers {
				made[i], failed[m] = newTenant(ctx, db, fmt.Sprintf("tenant-%d", i))
			}
		})
	}
	all.Wait()
	return made, errors.Join(failed...)
}

func newTenant(ctx context.Context, db *postgres.DB, name string) (Tenant, error) {
	workspace, err := db.CreateWorkspace(ctx, name, true)
	if err != nil {
		return Tenant{}, err
	}
	key, err := db.CreateKey(ctx, workspace.ID, "bench", access.Permissions(), nil)
	if err != nil {
		return Tenant{}, err
	}
	_, err = db.Grant(ctx, workspace.ID, "start", riches)
	return Tenant{ID: workspace.ID, Key: key.Reveal()}, err
}
