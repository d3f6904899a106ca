package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// TestFencedPieces holds each part of a fence alone against a holder that all the other parts would let through.
func TestFencedPieces(t *testing.T) {
	t.Parallel()

	t.Run("EraseOfALostLease", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		erase := w.fence()
		old := w.claimErase(erase)
		chunk, err := w.db.EraseJob().Next(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		w.advance(2 * time.Minute)
		heir := w.claimErase(erase)
		if heir.Cursor != old.Cursor {
			t.Fatalf("cursor %d", heir.Cursor)
		}
		wantLost(t, "piece", w.db.EraseJob().Apply(t.Context(), old, chunk, "", nil, worker.Work{}))
		for !w.erasePiece(&heir).Ended {
		}
		wantNothingLeft(t, w)
	})

	// In the two that follow the piece is not the last one, which the fence of the end would hold up too.
	t.Run("BatchOfALostLease", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 300)
		ids := w.remember(memory.Scope{UserID: "u"}, numbered(150)...)
		receipt := w.batch("", false, retexted(ids, "new")...)
		old := w.claimKind(receipt.EventID, task.BatchUpdate)
		chunk, vectors := w.next(old)
		w.advance(2 * time.Minute)
		heir := w.claimKind(receipt.EventID, task.BatchUpdate)
		wantLost(t, "piece", w.apply(old, chunk, vectors))
		if n := one[int64](w, `SELECT count(*) FROM memories WHERE version > 1`); n != 0 {
			t.Errorf("%d records were changed under a lost lease", n)
		}
		w.pieces(heir)
	})

	t.Run("ImportOfALostLease", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 1000), newWorld(t, 0)
		from.furnish(250)
		id := to.mustImport(from.export())
		old := to.claimMove(id)
		chunk, err := to.db.ImportJob().Next(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		to.advance(2 * time.Minute)
		heir := to.claimMove(id)
		wantLost(t, "piece", to.db.ImportJob().Apply(t.Context(), old, chunk, "m", nil, worker.Work{}))
		if n := one[int64](to, `SELECT count(*) FROM memories`); n != 0 {
			t.Errorf("%d records of a lost lease", n)
		}
		to.toEnd(to.db.ImportJob(), heir)
	})

	t.Run("ImportPieceTwice", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 1000), newWorld(t, 0)
		from.furnish(450)
		snapshot := from.export()
		l := to.claimMove(to.mustImport(snapshot))
		if _, err := to.movePiece(to.db.ImportJob(), &l); err != nil {
			t.Fatal(err)
		}
		before := l // its stage is that of the piece that is applied twice
		chunk, err := to.db.ImportJob().Next(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.movePiece(to.db.ImportJob(), &l); err != nil {
			t.Fatal(err)
		}
		again := to.db.ImportJob().Apply(t.Context(), before, chunk, "m", nil, worker.Work{})
		if cursor := one[int64](to, `SELECT cursor FROM tasks`); again.Err != nil || again.Cursor != l.Cursor || cursor != l.Cursor {
			t.Fatalf("the same piece again: %+v, the cursor is %d", again, cursor)
		}
		to.toEnd(to.db.ImportJob(), l)
		if lines(to.export()) != lines(snapshot) {
			t.Error("the copy differs")
		}
	})

	t.Run("ARetryOfAnEarlierStage", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		before := w.mustClaim(w.accept("k", say("u", "a")))
		wantDone(t, "commit", w.commit(before, "fact"))
		wantLost(t, "retry", w.later(before, task.OutputInvalid, 0))
		if spent := one[string](w, `SELECT spent::text FROM tasks`); spent != "{}" {
			t.Errorf("spent %s", spent)
		}
		wantDone(t, "settle", w.settle(before))
	})

	t.Run("AClaimThatIsRepeatedLateCountsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ask := []worker.ClaimAsk{{TaskID: w.accept("k", say("u", "a")), Token: uuid.New()}}
		for range 2 {
			c := w.db.Claim(t.Context(), claimant("w"), ask, false)[0]
			if c.Err != nil || c.Lease == nil || c.Lease.Claim != 1 || c.Lease.Crashes != 1 {
				t.Fatalf("claim %+v", c)
			}
			w.advance(2 * time.Minute) // beyond the lease's time: nobody has taken it over
		}
		if n := one[int64](w, `SELECT count(*) FROM task_attempts`); n != 0 {
			t.Errorf("%d attempts have ended", n)
		}
	})

	t.Run("ACancelAfterTheCommitIsRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		wantDone(t, "commit", w.commit(l, "fact"))
		if err := w.canceller().Cancel(t.Context(), w.caller, id); !fault.Is(err, fault.NotCancellable) {
			t.Fatalf("cancel: %v", err)
		}
		wantDone(t, "settle", w.settle(l))
		wantBalance(t, w, 98, 0)
	})

	t.Run("ACommittedTaskIsNeverExhausted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		wantDone(t, "commit", w.commit(l, "fact"))
		w.exec(`UPDATE tasks SET crashes = 9`)
		w.advance(2 * time.Minute)
		if moved, err := w.db.Exhaust(t.Context(), id, 5); err != nil || moved != nil {
			t.Fatalf("exhaust: %+v, %v", moved, err)
		}
		if moved, err := w.db.Rescue(t.Context(), 5, 10); err != nil || len(moved) != 1 || moved[0].Failed {
			t.Fatalf("rescue: %+v, %v", moved, err)
		}
		wantDone(t, "settle", w.settle(w.mustClaim(id)))
	})

	t.Run("ARetryOfWhatWaitsHoldsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &generation, nil); err != nil {
			t.Fatal(err)
		}
		if now := one[int](w, `SELECT generation FROM tasks`); now != 1 {
			t.Errorf("generation %d", now)
		}
		wantBalance(t, w, 98, 2)
	})

	t.Run("ARescueOfALeaseThatBeatMeanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		l := w.mustClaim(w.accept("k", say("u", "a")))
		seen := one[time.Time](w, `SELECT lease_until FROM tasks`)
		w.advance(2 * time.Minute)
		if _, err := w.db.Heartbeat(t.Context(), l, time.Minute, ""); err != nil {
			t.Fatal(err)
		}
		if moved, err := w.db.RescueSeen(t.Context(), l, seen, 5); err != nil || moved != nil {
			t.Fatalf("rescued %+v: %v", moved, err)
		}
		wantDone(t, "complete", w.complete(l, "fact"))
	})
}
