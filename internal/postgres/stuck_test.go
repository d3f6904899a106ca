package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// TestStuck holds that nothing stays in the hands of somebody who is gone, and that nothing is taken from somebody who
// is not.
func TestStuck(t *testing.T) {
	t.Parallel()

	t.Run("OfACompletionAndARescueOneWins", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		const rounds = 40
		completed, rescued := 0, 0
		for i := range rounds {
			id := w.accept(keyName(i), say(keyName(i), "a"))
			l := w.mustClaim(id)
			w.exec(`UPDATE tasks SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1`, id)
			var done worker.Done
			together(2, func(who int) {
				if who == 0 {
					done = w.complete(l, "fact of "+keyName(i))
					return
				}
				if _, err := w.db.Rescue(context.Background(), 5, 100); err != nil {
					t.Errorf("rescue: %v", err)
				}
			})
			status := w.status(id)
			switch {
			case done.Err == nil && status == "succeeded/projected":
				completed++
			case done.Err != nil && status == "pending/accepted":
				wantLost(t, "complete", done)
				rescued++
				wantDone(t, "complete after the rescue", w.complete(w.mustClaim(id), "fact of "+keyName(i)))
			default:
				t.Fatalf("round %d: %s, and the worker was told %v", i, status, done.Err)
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM memories`); n != rounds {
			t.Errorf("%d records of %d tasks; %d completed, %d rescued first", n, rounds, completed, rescued)
		}
		wantBalance(t, w, 1000-2*rounds, 0)
	})

	t.Run("KindsAndFormatsThatNobodyKnowsAreRescuedToo", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		var ids []uuid.UUID
		for i := range 6 {
			ids = append(ids, w.accept(keyName(i), say(keyName(i), "a")))
			w.mustClaim(ids[i])
		}
		w.exec(`UPDATE tasks SET kind = 'of_another_build' WHERE id = ANY($1)`, ids[:2])
		w.exec(`UPDATE tasks SET payload_format = 99 WHERE id = ANY($1)`, ids[2:4])
		w.exec(`UPDATE tasks SET lease_until = clock_timestamp() - interval '60 days'`)
		for range 2 {
			if _, err := w.db.Rescue(t.Context(), 5, 3); err != nil {
				t.Fatal(err)
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks WHERE status <> 'pending'`); n != 0 {
			t.Errorf("%d tasks are still running", n)
		}
		for _, id := range ids[:4] {
			w.mustClaimNot(id) // and nobody runs what he can't read
		}
	})

	t.Run("LiveLeasesInFrontHideNoExpiredOne", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		const page = 5
		var last uuid.UUID
		for i := range 2*page + 1 {
			last = w.accept(keyName(i), say(keyName(i), "a"))
			w.mustClaim(last)
		}
		// The scan goes by id: the one that has expired comes last.
		last = one[uuid.UUID](w, `SELECT id FROM tasks ORDER BY id DESC LIMIT 1`)
		w.exec(`UPDATE tasks SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1`, last)
		rescued, err := w.db.Rescue(t.Context(), 5, page)
		if err != nil || len(rescued) != 1 || rescued[0].TaskID != last {
			t.Errorf("rescued %+v: %v", rescued, err)
		}
	})

	t.Run("RunningWithoutALeaseCannotBeWritten", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		for _, sql := range []string{
			`UPDATE tasks SET status = 'running' WHERE id = $1`,
			`UPDATE tasks SET status = 'running', lease_token = gen_random_uuid() WHERE id = $1`,
			`UPDATE tasks SET status = 'running', lease_until = clock_timestamp() WHERE id = $1`,
			`UPDATE tasks SET lease_token = gen_random_uuid(), lease_until = clock_timestamp() WHERE id = $1`,
		} {
			if _, err := w.sql.Exec(t.Context(), sql, id); err == nil {
				t.Errorf("written: %s", sql)
			}
		}
		w.mustClaim(id)
		if _, err := w.sql.Exec(t.Context(), `UPDATE tasks SET lease_token = NULL, lease_until = NULL WHERE id = $1`, id); err == nil {
			t.Error("a running task lost its lease and runs on")
		}
	})

	t.Run("AgeAloneTakesNoTaskFromALivingWorker", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		for range 5 { // each a TTL of a minute, with a heartbeat at two thirds of it
			w.advance(40 * time.Second)
			if _, err := w.db.Heartbeat(t.Context(), l, time.Minute, ""); err != nil {
				t.Fatal(err)
			}
			if rescued, err := w.db.Rescue(t.Context(), 5, 100); err != nil || len(rescued) != 0 {
				t.Fatalf("rescued %+v: %v", rescued, err)
			}
			w.mustClaimNot(id)
		}
		wantDone(t, "complete", w.complete(l, "late but alive"))
		if claims := one[int64](w, `SELECT claims::bigint FROM tasks`); claims != 1 {
			t.Errorf("%d claims", claims)
		}
	})
}
