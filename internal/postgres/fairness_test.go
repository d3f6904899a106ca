package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// backlog gives a workspace n due tasks, the oldest first: of so many scopes, each with its first task due, or without an
// order if it is 0.
func (w *world) backlog(workspace uuid.UUID, n, scopes int) {
	w.t.Helper()
	w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, lane_seq, head, priority, command, payload_format,
                   accepted_at, updated_at)
SELECT gen_random_uuid(), $1, 'memory_infer', 'pending', 'accepted', at, at, 'u' || scope, sha256(('u' || scope)::bytea),
       CASE WHEN $3 > 0 THEN n END, $3 > 0 AND n <= $3, 'interactive', 'x', 1, at, at
  FROM (SELECT n, CASE WHEN $3 > 0 THEN n % $3 ELSE n END AS scope, clock_timestamp() - interval '1 hour' + n * interval '1 millisecond' AS at
          FROM generate_series(1, $2) n) t`, workspace, n, scopes)
}

// neighbours makes two workspaces whose ids have the order of the names.
func (w *world) neighbours() (low, high uuid.UUID) {
	low, high = w.workspace(0).Workspace.ID, w.workspace(0).Workspace.ID
	if low.String() > high.String() {
		return high, low
	}
	return low, high
}

// serve hands out one free slot at a time, n times, and answers to whom. Quick tasks have ended before the next slot comes
// free, so that nobody has more leases than others.
func (w *world) serve(n int, quick bool) []uuid.UUID {
	w.t.Helper()
	who := claimant("w")
	who.Live = map[uuid.UUID]int{}
	var served []uuid.UUID
	for range n {
		ids, _, err := w.db.Due(w.t.Context(), who, 1)
		if err != nil || len(ids) != 1 {
			w.t.Fatalf("due: %d tasks, %v", len(ids), err)
		}
		c := w.db.Claim(w.t.Context(), who, []worker.ClaimAsk{{TaskID: ids[0], Token: uuid.New()}}, true)[0]
		if c.Err != nil || c.Lease == nil {
			w.t.Fatalf("claim: %+v", c)
		}
		served = append(served, c.Lease.WorkspaceID)
		if !quick {
			who.Live[c.Lease.WorkspaceID]++
		}
	}
	return served
}

func TestFairDrain(t *testing.T) {
	t.Parallel()
	for _, scopes := range []int{0, 1, 1000} {
		for _, first := range []bool{true, false} {
			for _, quick := range []bool{true, false} {
				t.Run("OneAmongTenThousand/"+fmt.Sprintf("Scopes=%d/CrowdFirst=%t/Quick=%t", scopes, first, quick), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, 0)
					crowd, one := w.neighbours()
					if !first {
						crowd, one = one, crowd
					}
					w.backlog(crowd, 10_000, scopes)
					if scopes != 1 { // a scope's second waits for its first
						w.serve(8, quick)
					}
					w.backlog(one, 1, 0)
					if served := w.serve(2, quick); served[0] != one && served[1] != one {
						t.Error("two slots came free and one had none")
					}
				})
			}
		}
	}

	t.Run("SlotsThatAreFreeAtOnceGoToThoseWithFewLeases", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		crowd, calm := w.neighbours()
		w.backlog(crowd, 100, 0)
		w.backlog(calm, 3, 0)
		who := claimant("w")
		who.Live = map[uuid.UUID]int{crowd: 3, calm: 1}
		ids, more, err := w.db.Due(t.Context(), who, 6)
		if err != nil || len(ids) != 6 || !more {
			t.Fatalf("%d, %t, %v", len(ids), more, err)
		}
		var order string
		for _, id := range ids {
			name := "A"
			if one[uuid.UUID](w, `SELECT workspace_id FROM tasks WHERE id = $1`, id) == calm {
				name = "b"
			}
			order += name
		}
		// With one lease, two more are as many as the crowd has; then they take turns.
		if order[:2] != "bb" || len(order) != 6 || countOf(order, 'b') != 3 {
			t.Errorf("served in the order %s", order)
		}
	})

	t.Run("EachOfManyHasItsTurn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		const workspaces = 230 // more than one look takes in
		w.exec(`
WITH ws AS (
  INSERT INTO workspaces (id, name, fingerprint_key) SELECT gen_random_uuid(), n::text, sha256('x') FROM generate_series(1, $1) n RETURNING id)
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command, payload_format, accepted_at, updated_at)
SELECT gen_random_uuid(), ws.id, 'memory_infer', 'pending', 'accepted', now(), now(), sha256('x'), 'interactive', 'x', 1, now(), now()
  FROM ws, generate_series(1, 3) n`, workspaces)
		served := map[uuid.UUID]int{}
		for _, workspace := range w.serve(workspaces, true) {
			served[workspace]++
		}
		if len(served) != workspaces {
			t.Errorf("%d of %d workspaces were served in a round", len(served), workspaces)
		}
	})

	t.Run("ThoseThatCannotRunHideNobody", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.exec(`
WITH ws AS (
  INSERT INTO workspaces (id, name, fingerprint_key, suspended_at)
  SELECT gen_random_uuid(), n::text, sha256('x'), CASE WHEN n > 1 THEN now() END FROM generate_series(1, 180) n RETURNING id)
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command, payload_format, accepted_at, updated_at)
SELECT gen_random_uuid(), ws.id, 'memory_infer', 'pending', 'accepted', now(), now(), sha256('x'), 'interactive', 'x', 1, now(), now()
  FROM ws, generate_series(1, 3) n`)
		w.serve(3, true)
	})
}

func countOf(s string, c byte) (n int) {
	for i := range len(s) {
		if s[i] == c {
			n++
		}
	}
	return n
}

// TestLeases holds what a cap is decided by: a count of the leases that live, and nothing that is kept.
func TestLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	workspace := w.caller.Workspace.ID
	leases := func(name string) worker.Load {
		t.Helper()
		found, err := w.db.Leases(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return found[workspace]
	}
	if leases("me") != (worker.Load{}) {
		t.Fatalf("an idle workspace has %+v", leases("me"))
	}
	// Twenty workers hold a lease each, and die.
	ids := make([]uuid.UUID, 20)
	for i := range ids {
		ids[i] = w.accept(keyName(i), say(fmt.Sprint("u", i), "a"))
		if w.claim(ids[i], keyName(i)) == nil {
			t.Fatal("not claimed")
		}
	}
	most := 7
	if _, err := w.db.LimitWorkspace(t.Context(), workspace.String(), postgresLimits(most)); err != nil {
		t.Fatal(err)
	}
	if got := leases("me"); got != (worker.Load{Leases: 20, Cap: most}) {
		t.Errorf("counted %+v", got)
	}
	if got := leases(keyName(3)); got != (worker.Load{Leases: 19, Cap: most}) {
		t.Errorf("one of them counts %+v beside its own", got)
	}
	w.exec(`UPDATE tasks SET kind = 'webhook_delivery' WHERE id = $1`, ids[19])
	if got := leases("me"); got.Leases != 19 {
		t.Errorf("a delivery counts: %+v", got)
	}
	w.exec(`UPDATE tasks SET kind = 'memory_infer' WHERE id = $1`, ids[19])
	w.advance(time.Minute + time.Second) // one lease time
	if got := leases("me"); got.Leases != 0 {
		t.Errorf("the dead hold %+v after their leases' time", got)
	}
	if rescued, err := w.db.Rescue(t.Context(), 5, 100); err != nil || len(rescued) != 20 {
		t.Fatalf("%d were moved on: %v", len(rescued), err)
	}
	for _, id := range ids {
		w.mustClaim(id)
	}
	if got := leases("me"); got.Leases != 20 {
		t.Errorf("the heir holds %+v", got)
	}
}

// TestClaimsDoNotWaitForEachOther holds a claim open in its transaction: those of the same workspace and of two hundred
// others lock no row that it holds.
func TestClaimsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	first, second := w.accept("k1", say("u1", "a")), w.accept("k2", say("u2", "a"))
	w.exec(`
WITH ws AS (
  INSERT INTO workspaces (id, name, fingerprint_key, lease_cap) SELECT gen_random_uuid(), n::text, sha256('x'), 1 FROM generate_series(1, 200) n RETURNING id)
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command, payload_format, accepted_at, updated_at)
SELECT gen_random_uuid(), ws.id, 'memory_infer', 'pending', 'accepted', now(), now(), sha256('x'), 'interactive', 'x', 1, now(), now()
  FROM ws`)
	tx, err := w.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if tag, err := tx.Exec(t.Context(), claimSQL(), claimArgs(first)); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("the claim that stays open: %s, %v", tag, err)
	}
	// The store's own bound on waiting for a lock is far below the test's: a claim that waited would fail.
	w.mustClaim(second)
	ids, err := collect[uuid.UUID](w, `SELECT id FROM tasks WHERE workspace_id <> $1`, w.caller.Workspace.ID)
	if err != nil || len(ids) != 200 {
		t.Fatalf("%d tasks: %v", len(ids), err)
	}
	together(8, func(i int) {
		for n := i; n < len(ids); n += 8 {
			if c := w.db.Claim(context.Background(), claimant("w"), []worker.ClaimAsk{{TaskID: ids[n], Token: uuid.New()}}, false)[0]; c.Err != nil || c.Lease == nil {
				t.Errorf("claim: %+v", c)
				return
			}
		}
	})
	if waited := one[int64](w, `SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); waited != 0 {
		t.Errorf("%d wait for a lock", waited)
	}
}
