package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

func TestWebhookFairness(t *testing.T) {
	t.Parallel()
	t.Run("AWorkspaceThatCannotBeServedKeepsNoOther", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		db, err := postgres.Open(t.Context(), postgres.Config{URL: w.url, Now: w.clock.Load, LockTimeout: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for range 5 {
			w.hook(wanted(endpoint.Succeeded))
		}
		w.succeed("a")
		gate, err := w.sql.Begin(t.Context()) // an erase that waits for a transaction of a frozen process
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gate.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock(('x' || encode(substr(uuid_send($1), 9, 8), 'hex'))::bit(64)::bigint)`,
			w.caller.Workspace.ID); err != nil {
			t.Fatal(err)
		}
		w.caller = w.workspace(1000)
		w.hook(wanted(endpoint.Succeeded))
		w.succeed("b")
		made, waited := 0, 0
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(feedPatience); made == 0 && time.Now().Before(deadline); <-tick.C {
			m, _, err := db.Dispatch(t.Context())
			if made += m; err == nil {
				continue // the feed is held back
			}
			if waited = strings.Count(err.Error(), "webhook "); waited != 1 {
				t.Fatalf("%d webhooks of one workspace were waited for: %v", waited, err)
			}
		}
		if made != 1 || waited != 1 {
			t.Fatalf("%d made, %d waited for", made, waited)
		}
	})
	t.Run("AWorkspaceOfSlowReceiversTakesNoOthersTurn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		crowd := w.caller
		var slow []endpoint.Endpoint
		for range 6 {
			slow = append(slow, w.hook(wanted(endpoint.Succeeded)))
		}
		for i := range 5 {
			w.succeed(keyName(i))
		}
		w.dispatched(30)
		for _, e := range slow[:2] { // the others have none under way, and older deliveries than anybody
			w.carry(w.deliveries(e.ID)[0].TaskID)
		}
		w.caller = w.workspace(1000)
		quick := w.hook(wanted(endpoint.Succeeded))
		w.succeed("quick")
		w.dispatched(1)
		next := w.deliveries(quick.ID)[0].TaskID
		for range 20 { // wherever a look starts
			ids, more, err := w.db.DueDeliveries(t.Context(), courier("c"), 1, 4)
			if err != nil || !more || len(ids) != 1 || ids[0] != next {
				t.Fatalf("%v is next, want %s: %v %v", ids, next, more, err)
			}
		}
		ids, more, err := w.db.DueDeliveries(t.Context(), courier("c"), 100, 4)
		if err != nil || more || len(ids) != 4*4+2*3+1 || ids[0] != next {
			t.Fatalf("%d due, %v, %v", len(ids), more, err)
		}
		w.exec(`UPDATE workspaces SET suspended_at = now() WHERE id = $1`, crowd.Workspace.ID)
		if ids, _, err := w.db.DueDeliveries(t.Context(), courier("c"), 100, 4); err != nil || len(ids) != 1 || ids[0] != next {
			t.Fatalf("beside a suspended workspace %v is due: %v", ids, err)
		}
	})
}
