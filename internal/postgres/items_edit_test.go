package postgres_test

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestItemEdits(t *testing.T) {
	t.Parallel()

	t.Run("AnEditReplacesWhatLanded", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "I live in Paris."))
		w.land("a", "lives in Paris", "speaks French")
		wantReceipt(t, w.keep(input("a", "I live in Berlin.")), 1, 1, false)
		w.wantLive("lives in Paris|speaks French")
		w.land("a", "lives in Berlin", "speaks French")
		w.wantLive("lives in Berlin|speaks French")
		wantReceipt(t, w.keep(input("a", "I live in Berlin.")), 0, 0, true)
		wantBalance(t, w.world, 6, 0)
		w.tombstones(2)
		event := w.event(w.task("a"))
		changes := ""
		for _, r := range event.Results {
			changes += string(r.Change) + " "
		}
		if changes != "ADD ADD DELETE DELETE " || event.Outcome != task.Stored {
			t.Fatalf("the event lists %s and %s", changes, event.Outcome)
		}
	})

	// The outcome is that of what the commit did, in one step or in two.
	for name, land := range map[string]func(w *itemWorld){
		"InOneStep": func(w *itemWorld) { w.land("a") },
		"InTwo": func(w *itemWorld) {
			lease := w.claimItem("a")
			wantDone(w.t, "commit", w.commit(lease))
			wantDone(w.t, "settle", w.settle(lease))
		},
	} {
		t.Run("AnEditThatSaysNothingLeavesNothing/"+name, func(t *testing.T) {
			t.Parallel()
			w := newItemWorld(t, 10)
			w.keep(input("a", "I live in Paris."))
			w.land("a", "lives in Paris")
			w.keep(input("a", "Hm."))
			land(w)
			w.wantLive("")
			event := w.event(w.task("a"))
			if event.Outcome != task.Stored || len(event.Results) != 1 || event.Results[0].Change != memory.Deleted {
				t.Fatalf("outcome %s of %+v", event.Outcome, event.Results)
			}
			w.tombstones(1)
		})

		t.Run("AnItemThatSaysNothingIsNoMemory/"+name, func(t *testing.T) {
			t.Parallel()
			w := newItemWorld(t, 10)
			w.keep(input("a", "Hm."))
			land(w)
			if event := w.event(w.task("a")); event.Outcome != task.NoMemory || len(event.Results) != 0 {
				t.Fatalf("outcome %s of %+v", event.Outcome, event.Results)
			}
		})
	}

	t.Run("AnEditEndsAQueuedRevision", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 2)
		w.keep(input("a", "one"))
		earlier := w.task("a")
		wantReceipt(t, w.keep(input("a", "two")), 1, 1, false)
		if got := w.status(earlier); got != "failed/accepted" {
			t.Fatalf("the earlier revision is %s", got)
		}
		generation := 1
		_, err := w.retrier().Retry(t.Context(), w.caller, earlier, &generation, nil)
		if !fault.Is(err, fault.InputExpired) {
			t.Fatalf("retry of an earlier revision: %v", err)
		}
		wantBalance(t, w.world, 0, 2) // its hold was released for the edit
		w.land("a", "two")
		w.wantLive("two")
		wantBalance(t, w.world, 0, 0)
	})

	t.Run("ARunningEarlierRevisionDoesNotLand", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		lease := w.claimItem("a")
		w.keep(input("a", "two"))
		wantLost(t, "commit", w.completeItem(lease, "one"))
		wantLost(t, "failure", w.fail(lease, task.InternalFailure))
		w.wantLive("")
		w.land("a", "two")
		w.wantLive("two")
		wantBalance(t, w.world, 8, 0)
		if n := one[int](w.world, `SELECT count(*) FROM task_attempts WHERE ending = 'failed' AND class = 'cancelled'`); n != 1 {
			t.Fatalf("%d attempt rows tell of the ended claim", n)
		}
	})

	t.Run("AnEditMeetsARevisionThatIsProjecting", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		lease := w.claimItem("a")
		wantDone(t, "commit", w.commit(lease, "one"))
		wantReceipt(t, w.keep(input("a", "one")), 0, 0, true)
		wantReceipt(t, w.keep(input("a", "two")), 1, 1, false)
		w.land("a", "two")
		wantDone(t, "settle", w.settle(lease))
		w.wantLive("two")
		w.tombstones(1)
		wantBalance(t, w.world, 6, 0)
	})

	t.Run("AFailedRevisionIsQueuedAgain", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		failed := w.claimItem("a")
		wantDone(t, "fail", w.fail(failed, task.OutputInvalid))
		wantReceipt(t, w.keep(input("a", "one")), 1, 1, false)
		if n := one[int](w.world, `SELECT revision FROM items`); n != 1 {
			t.Fatalf("revision %d", n)
		}
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, failed.TaskID, &generation, nil); !fault.Is(err, fault.InputExpired) {
			t.Fatalf("retry beside the new task: %v", err)
		}
		w.land("a", "one")
		w.wantLive("one")
		wantBalance(t, w.world, 8, 0)
	})

	t.Run("AFailedRevisionThatIsRetriedByHandIsNotQueuedTwice", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		failed := w.claimItem("a")
		wantDone(t, "fail", w.fail(failed, task.OutputInvalid))
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, failed.TaskID, &generation, nil); err != nil {
			t.Fatal(err)
		}
		wantReceipt(t, w.keep(input("a", "one")), 0, 1, false)
		w.land("a", "one")
		wantBalance(t, w.world, 8, 0)
	})

	t.Run("AnotherSessionOrAuthorIsAnEdit", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(in("s1", input("a", "one")))
		w.land("a", "one")
		wantReceipt(t, w.keep(in("s2", input("a", "one"))), 1, 1, false)
		w.land("a", "one again")
		w.wantLive("one again")
		if run := one[string](w.world, `SELECT run_id FROM memories WHERE deleted_at IS NULL`); run != "s2" {
			t.Fatalf("the record is of session %s", run)
		}
		author, edited := "Ann", in("s2", input("a", "one"))
		edited.Author = &author
		wantReceipt(t, w.keep(edited), 1, 1, false)
	})
}
