package postgres_test

import (
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// TestHints walks through every reason for a wakeup: each has a sequence number of its own, so that the broker
// never takes one for another.
func TestHints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	id := w.accept("k", say("u", "a"))
	last := int64(0)
	grew := func(reason string) {
		t.Helper()
		seq := one[int64](w, `SELECT hint_seq FROM tasks WHERE id = $1`, id)
		if seq <= last {
			t.Errorf("%s: hint_seq %d after %d", reason, seq, last)
		}
		last = seq
	}
	grew("accept")
	wantDone(t, "later", w.later(w.mustClaim(id), task.OutputInvalid, 0))
	grew("retry")
	wantDone(t, "give back", w.later(w.mustClaim(id), "", 0))
	grew("give back")
	w.mustClaim(id)
	w.advance(2 * time.Minute)
	if _, err := w.db.Rescue(t.Context(), 5, 10); err != nil {
		t.Fatal(err)
	}
	grew("rescue")
	w.advance(time.Minute)
	if _, hints, err := w.db.Rehint(t.Context(), repair.Rehint{MaxAttempts: 5, Age: time.Second, Limit: 10}); err != nil || len(hints) != 1 {
		t.Fatalf("rehint: %v, %v", hints, err)
	}
	grew("repair")
	other := w.accept("k2", say("u", "b"))
	wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
	grewHead := one[int64](w, `SELECT hint_seq FROM tasks WHERE id = $1 AND head`, other)
	if grewHead != 2 {
		t.Errorf("new head: hint_seq %d", grewHead)
	}
	generation := 1
	if _, err := w.retrier().Retry(t.Context(), w.caller, id, &generation, nil); err != nil {
		t.Fatal(err)
	}
	grew("manual retry")
}
