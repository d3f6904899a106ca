package main

import (
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type workspaceDelete struct {
	app.Database
	Workspace string        `arg:"" help:"Its id or name."`
	Yes       bool          `env:"-" help:"Yes, everything in it, for good."`
	Wait      time.Duration `env:"-" placeholder:"60s" help:"How long to wait for the end (not at all)."`
}

// deleteLook is how often the end of a deletion is looked for.
const deleteLook = 500 * time.Millisecond

func (c *workspaceDelete) Run(s *session) error {
	if !c.Yes {
		return exitf(app.ExitUsage, "this deletes every memory, event, key and webhook of %q for good; say --yes", c.Workspace)
	}
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, _, err := db.DeleteWorkspace(s.ctx, c.Workspace)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		name := w.Name
		if w, err = c.await(s, db, w); err != nil {
			return err
		}
		shown := map[string]any{"id": "ws_" + w.ID.String(), "name": name, "status": w.Status(), "event_id": "evt_" + w.Deletion.String()}
		words := "ws_%s  %s  %s: nothing of it can be used any more; the workers remove the rest (evt_%s)\n"
		if w.DeletedAt != nil {
			words = "ws_%s  %s  %s (evt_%s)\n"
		}
		if err := s.show(shown, words, w.ID, name, w.Status(), w.Deletion); err != nil {
			return err
		}
		if c.Wait > 0 && w.DeletedAt == nil {
			return exitf(exitPending, "the deletion had not ended after %s", c.Wait)
		}
		return nil
	})
}

// await looks for the end as long as it is to.
func (c *workspaceDelete) await(s *session, db *postgres.DB, w operator.Workspace) (operator.Workspace, error) {
	tick := time.NewTicker(deleteLook)
	defer tick.Stop()
	over := time.After(c.Wait)
	for c.Wait > 0 && w.DeletedAt == nil {
		select {
		case <-s.ctx.Done():
			return w, s.ctx.Err()
		case <-over:
			return w, nil
		case <-tick.C:
		}
		var err error
		if w, err = db.Workspace(s.ctx, w.ID.String()); err != nil {
			return w, err
		}
	}
	return w, nil
}
