package app

import (
	"context"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/repair"
)

// Reindex makes the terms and vectors of all memories anew with the embedder that the settings name, or goes on with
// a rebuild of its model that was not finished, and tells progress after each page.
func Reindex(ctx context.Context, d Database, m Models, progress func(repair.Reindex)) (repair.Reindex, error) {
	embedder, err := m.embedder()
	if err != nil {
		return repair.Reindex{}, fmt.Errorf("settings: %w", err)
	}
	if d, err = d.Located(); err != nil {
		return repair.Reindex{}, err
	}
	if err := requireMigrated(ctx, d); err != nil {
		return repair.Reindex{}, err
	}
	db, err := OpenDB(ctx, d)
	if err != nil {
		return repair.Reindex{}, err
	}
	defer db.Close()
	x, err := repair.NewReindexer(db, embedder, nil)
	if err != nil {
		return repair.Reindex{}, err
	}
	return x.Run(ctx, progress)
}

// NewEmbedder builds the embedder that the settings name. It opens no connection.
func NewEmbedder(m Models) (model.Embedder, error) { return m.embedder() }
