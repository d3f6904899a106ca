package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// TestLaneOrder holds what decides whose turn it is.
func TestLaneOrder(t *testing.T) {
	t.Parallel()

	t.Run("TheHeadGoesToTheLowestThatWaits", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := make([]uuid.UUID, 4)
		for i := range ids {
			ids[i] = w.accept(keyName(i), say("u", keyName(i)))
		}
		for i, id := range ids[:3] {
			done := wantDone(t, "complete", w.complete(w.mustClaim(id), keyName(i)))
			if done.Head == nil || done.Head.TaskID != ids[i+1] {
				t.Fatalf("after task %d the head is %+v", i, done.Head)
			}
		}
	})

	t.Run("ARetryByHandGoesToTheEnd", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first := w.accept("first", say("u", "a"))
		second, third := w.accept("second", say("u", "b")), w.accept("third", say("u", "c"))
		wantDone(t, "fail", w.fail(w.mustClaim(first), task.OutputInvalid))
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, first, &generation, nil); err != nil {
			t.Fatal(err)
		}
		for _, id := range []uuid.UUID{second, third, first} {
			wantDone(t, "complete", w.complete(w.mustClaim(id), id.String()))
		}
	})

	t.Run("TimesGrowThoughTheClockStands", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.frozen()
		for i := range 3 {
			w.accept(keyName(i), say("u", "a"))
		}
		if n := one[int64](w, `SELECT count(DISTINCT accepted_at) FROM tasks`); n != 3 {
			t.Fatalf("three commands have %d times", n)
		}
		if !one[bool](w, `SELECT bool_and(ok) FROM (SELECT lane_seq = row_number() OVER (ORDER BY accepted_at) AS ok FROM tasks) x`) {
			t.Error("times and numbers disagree")
		}
	})

	t.Run("TheDrainFindsWhatIsDueOnly", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		later, now := w.accept("later", say("u", "a")), w.accept("now", say("v", "a"))
		wantDone(t, "later", w.later(w.mustClaim(later), task.ProviderTimeout, time.Hour))
		ids, _, err := w.db.Due(t.Context(), claimant("w"), 10)
		if err != nil || len(ids) != 1 || ids[0] != now {
			t.Errorf("due are %v: %v", ids, err)
		}
	})
}

// TestPauses holds that the longer of two pauses counts, whichever is told first.
func TestPauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	id := w.accept("k", say("u", "a"))
	for _, length := range []time.Duration{time.Hour, time.Second} {
		if err := w.db.Pause(t.Context(), "stub", task.ProviderRateLimited, length); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(10 * time.Minute)
	w.mustClaimNot(id)
	w.advance(2 * time.Hour)
	w.mustClaim(id)
}
