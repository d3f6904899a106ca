package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// hold locks rows in a transaction of its own until the test ends, as a frozen process does.
func (w *world) hold(sql string, args ...any) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func TestFrozenTransaction(t *testing.T) {
	t.Parallel()
	t.Run("HoldsUpNoRescueOfOthers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		var ids []uuid.UUID
		for i := range 4 {
			ids = append(ids, w.accept(keyName(i), say(keyName(i), "a")))
			w.mustClaim(ids[i])
		}
		w.exec(`UPDATE tasks SET crashes = 5 WHERE id = ANY($1)`, ids[2:])
		w.hold(`SELECT 1 FROM tasks WHERE id = ANY($1) FOR UPDATE`, []uuid.UUID{ids[0], ids[2]})
		w.advance(2 * time.Minute)
		began := time.Now()
		rescued, err := w.db.Rescue(t.Context(), 5, 100)
		if err != nil || len(rescued) != 2 {
			t.Fatalf("rescued %+v: %v", rescued, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the frozen rows held the rescue up for %s", took)
		}
	})
	t.Run("WithALanesRowHoldsUpNoExhaustedTaskOfOthers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first, second := w.accept("k1", say("u1", "a")), w.accept("k2", say("u2", "a"))
		w.mustClaim(first)
		w.mustClaim(second)
		w.exec(`UPDATE tasks SET crashes = 5`)
		w.hold(`SELECT 1 FROM lanes l JOIN tasks t ON t.lane = l.lane WHERE t.id = $1 FOR UPDATE OF l`, first)
		w.advance(2 * time.Minute)
		rescued, err := w.db.Rescue(t.Context(), 5, 100)
		if err != nil || len(rescued) != 1 || rescued[0].TaskID != second {
			t.Fatalf("rescued %+v: %v", rescued, err)
		}
	})
	t.Run("OfEitherKindHasAnEnd", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		for name, in := range map[string]func(context.Context, uuid.UUID, func(context.Context, *postgres.Tx) error) error{
			"shared gate": w.db.InTx, "gate alone": w.db.InTxAlone,
		} {
			err := in(t.Context(), w.caller.Workspace.ID, func(ctx context.Context, tx *postgres.Tx) error {
				got, err := postgres.Setting(ctx, tx, "idle_in_transaction_session_timeout")
				if got != "10s" {
					t.Errorf("%s: a silent transaction lives for %q", name, got)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("OfOursIsEndedByTheServer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		inside, thawed := make(chan struct{}), make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- w.db.InTx(context.Background(), w.caller.Workspace.ID, func(ctx context.Context, tx *postgres.Tx) error {
				if err := postgres.LockLane(ctx, tx, w.caller.Workspace.ID, say("u", "a").Scope.Lane()); err != nil {
					return err
				}
				close(inside)
				<-thawed
				return nil
			})
		}()
		<-inside
		freed := w.accept("k", say("other", "a")) // another lane goes on
		if w.status(freed) != "pending/accepted" {
			t.Fatal("not accepted")
		}
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(30 * time.Second)
		for one[int64](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`) > 0 {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatal("the server lets a silent transaction live")
			}
		}
		close(thawed)
		if err := <-ended; err == nil {
			t.Error("the frozen transaction believes that it committed")
		}
	})
}
