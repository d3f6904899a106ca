package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func postgresLimits(leases int) postgres.Limits { return postgres.Limits{LeaseCap: &leases} }

func claimSQL() string { return postgres.ClaimSQL() }

func claimArgs(id uuid.UUID) pgx.NamedArgs {
	who := claimant("w")
	return pgx.NamedArgs{
		"now": nil, "task": id, "token": uuid.New(), "ttl": 60.0, "worker": "w", "kinds": []string{"memory_infer"},
		"payload_format": 1, "max_attempts": who.MaxAttempts, "extractor": who.Extractor, "embedder": who.Embedder, "restart": 0.0,
	}
}

func dueArgs(after uuid.UUID, workspaces int) pgx.NamedArgs {
	who := claimant("w")
	return pgx.NamedArgs{
		"now": nil, "after": after, "none": uuid.UUID{}, "workspaces": workspaces, "look": 500, "each": 2, "limit": 2,
		"kinds": []string{"memory_infer"}, "payload_format": 1, "max_attempts": who.MaxAttempts, "extractor": who.Extractor,
		"embedder": who.Embedder, "restart": 0.0, "live_of": []uuid.UUID{}, "live": []int{},
	}
}

func collect[T any](w *world, sql string, args ...any) ([]T, error) {
	rows, err := w.sql.Query(w.t.Context(), sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// TestHeldSnapshot lets thousands of tasks pass while somebody holds a snapshot open, so that nothing dead can be removed:
// a claim by hint reads as few pages as before.
func TestHeldSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	const passing = 3000
	ready := w.accept("before", say("before", "a"))
	w.backlog(w.workspace(0).Workspace.ID, passing, 0)
	ids, err := collect[uuid.UUID](w, `SELECT id FROM tasks WHERE id <> $1`, ready)
	if err != nil || len(ids) != passing {
		t.Fatalf("%d tasks: %v", len(ids), err)
	}
	w.exec(`ANALYZE`)
	before := buffers(t, w.plan(claimSQL(), claimArgs(ready)))

	holder, err := w.sql.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), `SELECT count(*) FROM tasks`); err != nil {
		t.Fatal(err)
	}
	together(8, func(i int) {
		for n := i; n < passing; n += 8 {
			c := w.db.Claim(context.Background(), claimant("w"), []worker.ClaimAsk{{TaskID: ids[n], Token: uuid.New()}}, false)[0]
			if c.Err != nil || c.Lease == nil {
				t.Errorf("claim: %+v", c)
				return
			}
			if _, err := w.db.Heartbeat(context.Background(), *c.Lease, claimant("w").TTL, ""); err != nil {
				t.Error(err)
			}
		}
	})
	w.exec(`
UPDATE tasks SET status = 'succeeded', stage = 'projected', outcome = 'NO_MEMORY', command = NULL, lease_token = NULL, lease_until = NULL,
       completed_at = clock_timestamp() WHERE status = 'running' AND id <> $1`, ready)
	late := w.accept("after", say("after", "a"))
	w.exec(`VACUUM ANALYZE tasks`) // removes nothing: that is the point
	if dead := one[int64](w, `SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'tasks'`); dead < passing {
		t.Fatalf("only %d dead rows are left", dead)
	}
	plan := w.plan(claimSQL(), claimArgs(late))
	if read := foundBy(t, plan); read > 12 || buffers(t, plan) > before+4 {
		t.Errorf("a claim reads %d pages and touches %d, %d before the snapshot was held:\n%s", read, buffers(t, plan), before, plan)
	}
	// What scans reads past the dead, a tenth of a page for each; the drain, and the count of leases at its own pace.
	due := w.plan(postgres.DueSQL(worker.Steady), dueArgs(ready, 20))
	if n := buffers(t, due); n > passing/5 {
		t.Errorf("a look for due tasks touches %d pages beside %d dead rows:\n%s", n, passing, due)
	}
}

// foundBy is how many pages a claim reads beside those that it writes: those of the row, found by its id, and of what may
// forbid it.
func foundBy(t *testing.T, plan string) int {
	t.Helper()
	_, update, ok := strings.Cut(plan, "->  Update on tasks")
	if !ok {
		t.Fatalf("no update in\n%s", plan)
	}
	_, below, _ := strings.Cut(update, "Nested Loop")
	return buffers(t, plan) - (buffers(t, update) - buffers(t, below))
}

// TestDrainPlan holds what a freed slot costs: the workspaces whose turn it is are found by skipping through the index,
// and of each the first rows.
func TestDrainPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	crowd, one := w.neighbours()
	w.backlog(crowd, 20_000, 1000)
	w.backlog(one, 1, 0)
	w.exec(`ANALYZE`)
	for _, after := range []uuid.UUID{{}, crowd, one} {
		plan := w.plan(postgres.DueSQL(worker.Steady), dueArgs(after, 20))
		if n := buffers(t, plan); n > 60 || strings.Contains(plan, "Seq Scan on tasks") {
			t.Errorf("a look touches %d pages:\n%s", n, plan)
		}
	}
	w.exec(`
UPDATE tasks SET status = 'running', lease_token = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 minute', worker_incarnation = 'w'
 WHERE id IN (SELECT id FROM tasks WHERE head ORDER BY id LIMIT 200)`)
	plan := w.plan(postgres.LeasesSQL, pgx.NamedArgs{"now": nil, "worker": "other"})
	if n := buffers(t, plan); n > 450 || !strings.Contains(plan, "tasks_leased") || strings.Contains(plan, "Seq Scan on tasks") {
		t.Errorf("a count of 200 leases touches %d pages:\n%s", n, plan)
	}
}

// TestRestart holds that work comes back spread after a provider's pause: whoever drew a late place in the restart waits,
// for a claim and for a look alike, and none for longer than half of the pause.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	id := w.accept("k", say("u", "a"))
	claimed := func(since string, length string, restart float64) bool {
		t.Helper()
		w.exec(`DELETE FROM provider_pauses`)
		w.exec(`INSERT INTO provider_pauses (provider, paused_until, class, updated_at)
			VALUES ('stub', now() - $1::interval, 'provider_rate_limited', now() - $1::interval - $2::interval)`, since, length)
		who := claimant("w")
		who.Restart = restart
		ids, _, err := w.db.Due(t.Context(), who, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := w.db.Claim(t.Context(), who, []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
		if c.Err != nil || (c.Lease != nil) != (len(ids) == 1) {
			t.Fatalf("due %d, claim %+v", len(ids), c)
		}
		if c.Lease != nil {
			wantDone(t, "give back", w.later(*c.Lease, "", 0))
		}
		return c.Lease != nil
	}
	for _, c := range []struct {
		since, length string
		restart       float64
		claimed       bool
	}{
		{"0 s", "20 s", 0, true},
		{"4 s", "20 s", 0.5, false},
		{"6 s", "20 s", 0.5, true},
		{"9 s", "20 s", 0.99, false},
		{"10 s", "20 s", 0.99, true},
		{"29 s", "2 hours", 0.99, false},
		{"30 s", "2 hours", 0.99, true},
		{"-1 s", "20 s", 0, false},
	} {
		if got := claimed(c.since, c.length, c.restart); got != c.claimed {
			t.Errorf("%s after a pause of %s, at %g of the restart: claimed %t", c.since, c.length, c.restart, got)
		}
	}
}

// TestManyLeases has a hundred thousand tasks leased and as many dead rows: a claim by id reads as little as ever, and so
// does a look for what is due.
func TestManyLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command, payload_format, accepted_at, updated_at,
                   lease_token, lease_until, worker_incarnation)
SELECT gen_random_uuid(), $1, 'memory_infer', 'running', 'accepted', now(), now(), sha256('x'), 'interactive', 'x', 1, now(), now(),
       gen_random_uuid(), now() + interval '1 hour', 'w'
  FROM generate_series(1, 100000) n`, w.caller.Workspace.ID)
	w.exec(`UPDATE tasks SET lease_until = lease_until + interval '1 minute'`) // a heartbeat each leaves a dead row each
	id := w.accept("k", say("u", "a"))
	w.exec(`ANALYZE tasks`)
	due := w.plan(postgres.DueSQL(worker.Steady), dueArgs(uuid.UUID{}, 20))
	if n := buffers(t, due); n > 50 {
		t.Errorf("a look for due tasks touches %d pages:\n%s", n, due)
	}
	claim := w.plan(claimSQL(), claimArgs(id))
	if n := foundBy(t, claim); n >= 20 || buffers(t, claim) > 50 {
		t.Errorf("a claim reads %d pages and touches %d:\n%s", n, buffers(t, claim), claim)
	}
}

// TestMigrateUnderLoad migrates a database that is there already, again and again, while four clients accept and claim and
// one holds rows of every hot table: nobody waits for anybody.
func TestMigrateUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1_000_000) // as many as the loops may spend until the migrations are done
	first := w.accept("held", say("held", "a"))
	tx, err := w.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM tasks t, task_runs r, lanes l, workspaces w WHERE t.id = $1 AND r.task_id = t.id FOR UPDATE`, first); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		together(4, func(i int) {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				k := fmt.Sprintf("k%d-%d", i, n)
				r, err := w.accepter(w.db).Accept(context.Background(), w.caller, key(t, k), say(k, "a"))
				if err != nil {
					t.Errorf("accept: %v", err)
					return
				}
				c := w.db.Claim(context.Background(), claimant("w"), []worker.ClaimAsk{{TaskID: r.EventID, Token: uuid.New()}}, false)[0]
				if c.Err != nil || c.Lease == nil {
					t.Errorf("claim: %+v", c)
					return
				}
			}
		})
	}()
	for range 20 {
		if applied, err := postgres.Migrate(t.Context(), testkit.Direct(w.url)); err != nil || len(applied) != 0 {
			t.Errorf("%v, %v", applied, err)
		}
	}
	close(done)
	<-finished
	if one[int64](w, `SELECT count(*) FROM tasks WHERE status = 'running'`) == 0 {
		t.Error("nobody claimed meanwhile")
	}
}
