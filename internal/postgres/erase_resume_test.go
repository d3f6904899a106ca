package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestEraseResumes(t *testing.T) {
	t.Parallel()

	t.Run("AfterACrashAtEachPiece", func(t *testing.T) {
		t.Parallel()
		for crash := 0; ; crash++ {
			w := newWorld(t, 200)
			w.lives()
			erase := w.fence()
			l := w.claimErase(erase)
			ended := false
			for n := 0; n < crash && !ended; n++ {
				ended = w.erasePiece(&l).Ended
			}
			if ended {
				if crash < 4 {
					t.Errorf("the erase took %d pieces only", crash)
				}
				return
			}
			w.remember(memory.Scope{UserID: erasedUser, RunID: "b"}, "kept")
			pending := w.accept("kept", say(erasedUser, "kept"))
			w.advance(2 * time.Minute)
			if _, err := w.db.Rescue(t.Context(), 5, 100); err != nil {
				t.Fatal(err)
			}
			if _, err := w.db.EraseJob().Next(t.Context(), l); !errors.Is(err, fault.ErrLeaseLost) {
				t.Errorf("the dead eraser reads on: %v", err)
			}
			w.endErase(erase)
			w.clock.Store(nil)
			if got := one[string](w, `SELECT coalesce(string_agg(text, ','), '') FROM memories`); got != "kept" {
				t.Fatalf("after a crash behind piece %d there is %s", crash, got)
			}
			if w.status(pending) != "pending/accepted" {
				t.Fatalf("a later command is %s", w.status(pending))
			}
			wantGone(t, w, secret)
		}
	})

	t.Run("UnknownCommitOfAPieceIsNotDoneTwice", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		l := w.claimErase(w.fence())
		job := w.db.EraseJob()
		for range 20 {
			chunk, err := job.Next(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			first := wantDone(t, "piece", job.Apply(t.Context(), l, chunk, "", nil, worker.Work{}))
			again := job.Apply(t.Context(), l, chunk, "", nil, worker.Work{})
			if first.Ended {
				if !again.Ended || !errors.Is(again.Err, fault.ErrLeaseLost) {
					t.Errorf("the end again: %+v", again)
				}
				break
			}
			if again.Err != nil || again.Cursor != first.Cursor {
				t.Errorf("first %+v, again %+v", first, again)
			}
			l.Cursor = first.Cursor
		}
		if deleted := one[string](w, `SELECT counts ->> 'deleted' FROM tasks WHERE kind = 'scope_erase'`); deleted != "1" {
			t.Errorf("counted %s", deleted)
		}
		wantNothingLeft(t, w)
	})

	t.Run("ManyPieces", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10_000)
		for n := range 3 {
			texts := make([]string, 400)
			for i := range texts {
				texts[i] = fmt.Sprintf("%s %d", secret, 400*n+i)
			}
			w.remember(erasedScope, texts...)
		}
		for i := range 450 {
			w.accept(keyName(i), say(erasedUser, secret))
		}
		kept := w.accept("other", say("other", "x"))
		erased := w.erase("e")
		if erased.Deleted != 1200 || erased.Cancelled != 450 {
			t.Errorf("erased %+v", erased)
		}
		wantNothingLeft(t, w)
		w.mustClaim(kept)
		if one[int64](w, `SELECT count(*) FROM tasks WHERE head`) != 1 {
			t.Error("a lane of ended tasks has a head")
		}
	})
}
