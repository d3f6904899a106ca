package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestCrashes(t *testing.T) {
	t.Parallel()
	t.Run("ALoopEndsFailedWithOneReleaseAlsoBesideACommittedRow", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		committed := w.accept("c", say("other", "a"))
		wantDone(t, "commit", w.commit(w.mustClaim(committed), "fact"))
		id := w.accept("k", say("u", "a"))
		waiting := w.accept("next", say("u", "b"))
		for range 5 {
			w.mustClaim(id)
			w.advance(2 * time.Minute)
		}
		if w.claim(id, "w") != nil {
			t.Fatal("a sixth claim")
		}
		rescued, err := w.db.Rescue(t.Context(), 5, 100)
		if err != nil || len(rescued) != 2 {
			t.Fatalf("rescued %+v: %v", rescued, err)
		}
		if w.status(id) != "failed/accepted" || w.status(committed) != "pending/committed" {
			t.Fatalf("%s, %s", w.status(id), w.status(committed))
		}
		if again, err := w.db.Rescue(t.Context(), 5, 100); err != nil || len(again) != 0 {
			t.Fatalf("rescued again %+v: %v", again, err)
		}
		w.mustClaim(waiting) // the lane went on
		for range 8 {        // after the canonical commit no budget applies
			w.mustClaim(committed)
			w.advance(2 * time.Minute)
		}
		wantDone(t, "settle", w.settle(w.mustClaim(committed)))
		if n := one[int64](w, `SELECT count(*) FROM task_attempts WHERE task_id = $1 AND ending = 'crashed'`, id); n != 5 {
			t.Fatalf("%d crashed attempts", n)
		}
		wantBalance(t, w, 96, 2)
	})
	t.Run("RescueIsACASOnWhatItSaw", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		var moved atomic.Int32
		together(8, func(int) {
			rescued, err := w.db.Rescue(context.Background(), 5, 100)
			if err != nil {
				t.Errorf("rescue: %v", err)
			}
			moved.Add(int32(len(rescued)))
		})
		if moved.Load() != 1 || one[int64](w, `SELECT hint_seq FROM tasks`) != 2 {
			t.Fatalf("moved %d times", moved.Load())
		}
	})
	t.Run("AnEndThatIsDecidedTooLateChangesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		pending, running := w.accept("k", say("u", "a")), w.accept("k2", say("u2", "a"))
		w.mustClaim(running)
		w.advance(2 * time.Minute)
		for _, id := range []uuid.UUID{pending, running} {
			if moved, err := w.db.Exhaust(t.Context(), id, 5); err != nil || moved != nil {
				t.Fatalf("exhaust: %+v, %v", moved, err)
			}
		}
		w.exec(`UPDATE tasks SET crashes = 5`)
		w.mustClaimNot(running)
		wantBalance(t, w, 96, 4)
		if moved, err := w.db.Exhaust(t.Context(), running, 5); err != nil || moved == nil {
			t.Fatalf("exhaust of an exhausted task: %+v, %v", moved, err)
		}
		wantBalance(t, w, 98, 2)
	})
	t.Run("OneBrokenRowDoesNotStopTheRest", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		broken, sound := w.accept("k1", say("u1", "a")), w.accept("k2", say("u2", "a"))
		for _, id := range []uuid.UUID{broken, sound} {
			w.mustClaim(id)
		}
		w.exec(`UPDATE tasks SET crashes = 5`)
		w.exec(`DELETE FROM task_runs WHERE task_id = $1`, broken)
		w.advance(2 * time.Minute)
		rescued, err := w.db.Rescue(t.Context(), 5, 100)
		if err == nil || len(rescued) != 1 || rescued[0].TaskID != sound {
			t.Fatalf("rescued %+v: %v", rescued, err)
		}
	})
	t.Run("RowsThatCannotBeMovedHideNoOthers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		var ids []uuid.UUID
		for i := range 4 {
			ids = append(ids, w.accept(keyName(i), say(keyName(i), "a")))
			w.mustClaim(ids[i])
		}
		w.exec(`UPDATE tasks SET crashes = 5`)
		w.exec(`DELETE FROM task_runs WHERE task_id = ANY($1)`, ids[:3])
		w.advance(2 * time.Minute)
		for call, want := range []struct{ rescued, broken int }{{0, 2}, {1, 1}, {0, 0}, {0, 2}} { // then it begins anew
			rescued, err := w.db.Rescue(t.Context(), 5, 2)
			broken := 0
			for _, id := range ids {
				if err != nil && strings.Contains(err.Error(), id.String()) {
					broken++
				}
			}
			if len(rescued) != want.rescued || broken != want.broken {
				t.Fatalf("call %d rescued %+v: %v", call, rescued, err)
			}
		}
	})
	t.Run("AGivenBackLeaseLeavesNoTrace", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		done := wantDone(t, "give back", w.later(w.mustClaim(id), "", 0))
		if done.Hint == nil || done.Hint.Seq != 2 {
			t.Fatalf("hint %+v", done.Hint)
		}
		if got := one[string](w, `SELECT crashes || ' ' || starts || ' ' || claims || ' ' || spent FROM tasks`); got != "0 0 1 {}" {
			t.Fatalf("crashes, starts, claims, spent: %s", got)
		}
	})
	t.Run("ARecordedFailureSpendsItsClass", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "later", w.later(w.mustClaim(id), task.OutputInvalid, 0))
		wantDone(t, "later", w.later(w.mustClaim(id), task.ProviderTimeout, 0))
		l := w.mustClaim(id)
		if l.Spent[task.OutputInvalid] != 1 || l.Spent[task.ProviderTimeout] != 1 || l.Crashes != 1 {
			t.Fatalf("lease %+v", l)
		}
	})
}

func (w *world) mustClaimNot(id uuid.UUID) {
	w.t.Helper()
	if w.claim(id, "w") != nil {
		w.t.Fatalf("task %s was claimed", id)
	}
}
