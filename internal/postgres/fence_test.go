package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestFence(t *testing.T) {
	t.Parallel()

	t.Run("CanonicalCommitDoesNothingButEndTheCommand", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say(erasedUser, secret))
		l := w.mustClaim(id)
		erase := w.fence()
		later := w.accept("later", say(erasedUser, "later"))
		done := wantDone(t, "commit", w.complete(l, secret))
		if !done.Ended || !done.Cancelled || done.Head == nil || done.Head.TaskID != later {
			t.Errorf("done %+v", done)
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks WHERE id = $1 AND status = 'failed' AND error_code = 'CANCELLED' AND command IS NULL`, id); n != 1 {
			t.Error("the command hasn't been ended")
		}
		if n := one[int64](w, `SELECT count(*) FROM memories`); n != 0 {
			t.Error("it stored something")
		}
		wantBalance(t, w, 98, 2)
		w.endErase(erase)
		if e := w.event(id); !e.Erased {
			t.Errorf("event %+v", e)
		}
		if so, err := w.db.ErasedSoFar(t.Context(), w.caller.Workspace.ID, erase); err != nil || so.Cancelled != 1 || !so.Finished {
			t.Errorf("erased %+v, %v", so, err)
		}
		wantDone(t, "the later one", w.complete(w.mustClaim(later), "later"))
	})

	t.Run("CoveredTasksAreNotClaimed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		covered := w.accept("k", say(erasedUser, secret))
		free := w.accept("o", say("other", "x"))
		erase := w.fence()
		fresh := w.accept("after", command.Add{
			Scope: memory.Scope{UserID: erasedUser, RunID: "after"}, Infer: true, Ordered: true,
			Messages: []command.Message{{Role: "user", Content: "after"}},
		})
		if w.claim(covered, "worker") != nil {
			t.Error("a covered task was claimed")
		}
		who := claimant("w")
		who.Kinds = append(who.Kinds, task.Erase)
		ids, _, err := w.db.Due(t.Context(), who, 10)
		if err != nil {
			t.Fatal(err)
		}
		due := map[uuid.UUID]bool{}
		for _, id := range ids {
			due[id] = true
		}
		if len(ids) != 3 || !due[free] || !due[fresh] || !due[erase] {
			t.Errorf("due are %v", ids)
		}
		w.mustClaim(fresh)
	})

	t.Run("AnEraseNeedsNoProvider", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		for _, provider := range []string{"stub", "stub-embedder"} {
			if err := w.db.Pause(t.Context(), provider, task.ProviderUnavailable, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		erase := w.fence()
		ids, _, err := w.db.Due(t.Context(), eraseClaimant(), 10)
		if err != nil || len(ids) != 1 || ids[0] != erase {
			t.Errorf("due %v, %v", ids, err)
		}
		w.endErase(erase)
	})

	t.Run("ManualRetryIs410", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say(erasedUser, secret))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		erase := w.fence()
		first := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &first, nil); !fault.Is(err, fault.InputExpired) {
			t.Errorf("retry: %v", err)
		}
		wantBalance(t, w, 100, 0)
		w.endErase(erase)
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &first, nil); !fault.Is(err, fault.InputExpired) {
			t.Errorf("retry after the erase: %v", err)
		}
		wantNothingLeft(t, w)
	})

	t.Run("CoveredRecordCannotBeChanged", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(erasedScope, secret)
		w.fence()
		text := "new"
		if _, err := w.try("", command.Change{ID: ids[0], Content: &text}); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("change: %v", err)
		}
	})

	t.Run("TheEraseCannotBeCancelled", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		if err := w.canceller().Cancel(t.Context(), w.caller, w.fence()); !fault.Is(err, fault.NotCancellable) {
			t.Errorf("cancel: %v", err)
		}
	})

	t.Run("WhatRepeatsACoveredRecordIsStored", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		run := memory.Scope{UserID: erasedUser, RunID: "r"}
		w.remember(erasedScope, "verbatim")
		w.remember(run, "inferred")
		erase := w.fence()
		w.remember(erasedScope, "verbatim")
		add := say(erasedUser, "x")
		add.Scope = run
		wantDone(t, "complete", w.complete(w.mustClaim(w.accept("k", add)), "inferred"))
		w.endErase(erase)
		if left := one[string](w, `SELECT coalesce(string_agg(text, ',' ORDER BY text), '') FROM memories`); left != "inferred,verbatim" {
			t.Errorf("left is %q", left)
		}
	})

	t.Run("WhatIsCoveredIsNotKnown", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		w.fence()
		l := w.mustClaim(w.accept("k", say(erasedUser, "x")))
		known, err := w.db.Known(t.Context(), l, []string{"said"}, 10)
		if err != nil || len(known) != 0 {
			t.Errorf("known are %+v, %v", known, err)
		}
	})

	t.Run("WhatComesAfterIsLaterWhateverTheClockSays", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.frozen() // the clock doesn't move at all
		w.remember(erasedScope, secret)
		run := memory.Scope{UserID: erasedUser, RunID: "r"}
		for i := range 3 { // this lane is ahead of the clock
			w.remember(run, fmt.Sprintf("%s %d in a run", secret, i))
		}
		erase := w.fence()
		w.remember(erasedScope, "kept")
		w.remember(run, "kept in a run")
		w.remember(memory.Scope{UserID: erasedUser, AgentID: "new"}, "kept in a new lane")
		w.endErase(erase)
		if left := one[string](w, `SELECT coalesce(string_agg(text, ',' ORDER BY text), '') FROM memories`); left != "kept,kept in a new lane,kept in a run" {
			t.Errorf("left %s", left)
		}
	})
}
