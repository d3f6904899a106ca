package app

import (
	"context"

	"github.com/holdfast-memory/holdfast/internal/audit"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// Audit looks whether the database is as Holdfast promises. It only reads, so that the database may be a standby.
// Workspace is the id or the name of the one that is looked at, empty for all. Errors: postgres.ErrNoWorkspace; others
// say that nothing could be looked at.
func Audit(ctx context.Context, d Database, workspace string, opts audit.Options) (audit.Report, error) {
	d, err := d.Located()
	if err != nil {
		return audit.Report{}, err
	}
	if err := requireMigrated(ctx, d); err != nil {
		return audit.Report{}, err
	}
	db, err := openStore(ctx, d, postgres.Config{MaxConns: 1})
	if err != nil {
		return audit.Report{}, err
	}
	defer db.Close()
	if err := requireSight(ctx, db); err != nil {
		return audit.Report{}, err
	}
	if workspace != "" {
		w, err := db.Workspace(ctx, workspace)
		if err != nil {
			return audit.Report{}, err
		}
		opts.Workspace = &w.ID
	}
	auditor, err := audit.New(db, opts)
	if err != nil {
		return audit.Report{}, err
	}
	return auditor.Run(ctx)
}
