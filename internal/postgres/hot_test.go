package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// updates is how often rows of a table were changed, and how often no index heard of it.
type updates struct{ all, hot int64 }

// updated closes the world's store and answers what its connections have changed, table by table: a connection tells what it
// counted at the latest when it ends.
func (w *world) updated(tables ...string) map[string]updates {
	w.t.Helper()
	w.db.Close()
	w.sql.Reset()
	deadline := time.Now().Add(20 * time.Second)
	for one[int64](w, `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'`) > 1 {
		if time.Now().After(deadline) {
			w.t.Fatal("the store's connections stay")
		}
	}
	found := make(map[string]updates, len(tables))
	for _, table := range tables {
		found[table] = updates{
			one[int64](w, `SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = $1`, table),
			one[int64](w, `SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1`, table),
		}
	}
	return found
}

// TestHotUpdates holds what the life of a task costs in changes of rows. What says that a worker lives, what an account has
// and what a lane has given touch no index; a task's row is changed twice otherwise, once when it is claimed and once when it
// ends, and a third time where its vectors come later.
func TestHotUpdates(t *testing.T) {
	t.Parallel()
	const tasks, beats = 300, 2
	for name, c := range map[string]struct {
		later bool // the vectors come from a remote embedder
		want  map[string]updates
	}{
		"LocalEmbedder": {false, map[string]updates{
			"tasks":           {tasks * (2 + beats), tasks * beats},
			"task_runs":       {tasks, 0},
			"credit_accounts": {tasks * 2, tasks * 2},
			"lanes":           {tasks - 10, tasks - 10},
			"plans":           {0, 0},
			"workspaces":      {0, 0},
		}},
		"RemoteEmbedder": {true, map[string]updates{
			"tasks":           {tasks * (3 + beats), tasks * beats},
			"task_runs":       {tasks, 0},
			"credit_accounts": {tasks * 2, tasks * 2},
			"lanes":           {tasks - 10, tasks - 10},
			"plans":           {tasks, tasks},
			"workspaces":      {0, 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := privateWorld(t, postgres.Sealing{}) // what others have open on the server holds dead rows back
			w.caller = w.workspace(10 * tasks)
			ids, leases := make([]uuid.UUID, tasks), make([]worker.Lease, tasks)
			for i := range ids {
				add := say(fmt.Sprint("user", i%10), "I like green tea")
				add.Ordered = false
				ids[i] = w.accept(fmt.Sprint("k", i), add)
			}
			for i, id := range ids {
				leases[i] = w.mustClaim(id)
			}
			for range beats {
				for _, l := range leases {
					if _, err := w.db.Heartbeat(t.Context(), l, time.Minute, "stub"); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i, l := range leases {
				text := fmt.Sprint("likes tea number ", i)
				if c.later {
					wantDone(t, "commit", w.commit(l, text))
					wantDone(t, "settle", w.settle(l))
				} else {
					wantDone(t, "complete", w.complete(l, text))
				}
			}
			w.books()
			names := make([]string, 0, len(c.want))
			for table := range c.want {
				names = append(names, table)
			}
			for table, got := range w.updated(names...) {
				t.Logf("%s: %d of %d updates are HOT", table, got.hot, got.all)
				if got != c.want[table] {
					t.Errorf("%s: %+v, want %+v", table, got, c.want[table])
				}
			}
		})
	}
}
