package chaos

import (
	"context"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

const plenty = 10_000_000 // credits that no run spends

// workspaces makes the tenants. The last one is poor: its callers are refused for want of credits.
func (w *world) workspaces(ctx context.Context) error {
	db, err := postgres.Open(ctx, postgres.Config{URL: w.pg.URL()})
	if err != nil {
		return err
	}
	defer db.Close()
	token, err := db.CreateOperator(ctx, "chaos")
	if err != nil {
		return err
	}
	w.token = token.Reveal()
	w.secrets = append(w.secrets, w.token)
	for i := range spaceCount {
		made, err := db.CreateWorkspace(ctx, fmt.Sprintf("space-%d", i), true)
		if err != nil {
			return err
		}
		key, err := db.CreateKey(ctx, made.ID, "chaos", access.Permissions(), nil)
		if err != nil {
			return err
		}
		s := &space{id: made.ID, name: made.Name, key: key.Reveal(), granted: plenty}
		if i == spaceCount-1 {
			s.granted = int64(max(10, w.cfg.Commands/20))
		}
		if _, err := db.Grant(ctx, s.id, "start", s.granted); err != nil {
			return err
		}
		w.spaces, w.secrets = append(w.spaces, s), append(w.secrets, s.key)
	}
	return nil
}
