package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// waiting waits until n backends wait for a lock of the kind.
func (w *world) waiting(n int64, event string) {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if one[int64](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = $1`, event) >= n {
			return
		}
	}
	w.t.Fatalf("nobody waits for %s", event)
}

// TestEraseOrder holds one transaction at the place where a naive order of the erase's statements loses.
func TestEraseOrder(t *testing.T) {
	t.Parallel()

	t.Run("ACommitUnderWayIsWaitedFor", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.db = w.openSingle(w.url) // in a group it would give the gate up before long, and come again behind the erase
		id := w.accept("k", say(erasedUser, secret))
		l := w.mustClaim(id)
		block, err := w.sql.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = block.Rollback(context.Background()) }()
		if _, err := block.Exec(t.Context(), `SELECT FROM tasks WHERE id = $1 FOR UPDATE`, id); err != nil {
			t.Fatal(err)
		}
		committed := make(chan worker.Done)
		go func() { committed <- w.complete(l, secret) }()
		w.waiting(1, "transactionid") // it has the gate and waits for the task's row
		erased := make(chan write.Erased)
		go func() { erased <- w.erase("e") }()
		w.waiting(1, "advisory") // the erase waits for the commit's gate
		if err := block.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantDone(t, "commit", <-committed)
		if e := <-erased; e.Deleted != 1 || e.Cancelled != 0 {
			t.Errorf("erased %+v", e)
		}
		wantNothingLeft(t, w)
	})

	t.Run("AVectorThatIsWrittenWhileItsRecordIsWaitedForGoesToo", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(erasedScope, secret)
		w.exec(`DELETE FROM memory_vectors`)
		erase := w.fence()
		l := w.claimErase(erase)
		w.erasePiece(&l) // the task
		block, err := w.sql.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = block.Rollback(context.Background()) }()
		if _, err := block.Exec(t.Context(), `
INSERT INTO memory_vectors (memory_id, workspace_id, version, content_key, model, vector, made_at)
SELECT id, workspace_id, version, content_key, 'm', 'x', now() FROM (SELECT * FROM memories WHERE id = $1 FOR SHARE) m`, ids[0]); err != nil {
			t.Fatal(err)
		}
		erased := make(chan struct{})
		go func() {
			defer close(erased)
			w.erasePiece(&l)
		}()
		w.waiting(1, "transactionid")
		if err := block.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-erased
		if n := one[int64](w, `SELECT count(*) FROM memory_vectors`); n != 0 {
			t.Error("a vector of the erased text is left")
		}
	})

	t.Run("ATaskThatMovesToTheArchiveMeanwhileIsFoundThere", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say(erasedUser, secret))
		wantDone(t, "complete", w.complete(w.mustClaim(id), secret))
		erase := w.fence()
		l := w.claimErase(erase)
		job := w.db.EraseJob()
		chunk, err := job.Next(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.move(id, "tasks", "tasks_archive"); err != nil {
			t.Fatal(err)
		}
		l.Cursor = wantDone(t, "piece", job.Apply(t.Context(), l, chunk, "", nil, worker.Work{})).Cursor
		for !w.erasePiece(&l).Ended {
		}
		if e := w.event(id); !e.Erased {
			t.Errorf("event %+v", e)
		}
		wantNothingLeft(t, w)
	})

	t.Run("ARecordThatIsEndedMeanwhileIsFoundAmongTheTombstones", func(t *testing.T) {
		t.Parallel()
		for ended := range 3 {
			w := newWorld(t, 100)
			ids := w.remember(erasedScope, secret, secret+" two", secret+" three")
			w.exec(`UPDATE memories SET deleted_at = now() WHERE id = $1`, ids[2])
			l := w.claimErase(w.fence())
			job := w.db.EraseJob()
			for n := 0; ; n++ {
				chunk, err := job.Next(t.Context(), l)
				if err != nil {
					t.Fatal(err)
				}
				if n == ended {
					w.exec(`UPDATE memories SET deleted_at = now() WHERE id = $1`, ids[0])
				}
				done := wantDone(t, "piece", job.Apply(t.Context(), l, chunk, "", nil, worker.Work{}))
				if l.Cursor = done.Cursor; done.Ended {
					break
				}
			}
			wantNothingLeft(t, w)
		}
	})

	t.Run("TwoErasesOfTheSameScopeDivideItsTasks", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.accept("k", say(erasedUser, secret))
		first, second := w.claimErase(w.fence()), w.claimErase(w.fence())
		job := w.db.EraseJob()
		chunk, err := job.Next(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		for !w.erasePiece(&second).Ended {
		}
		first.Cursor = wantDone(t, "piece", job.Apply(t.Context(), first, chunk, "", nil, worker.Work{})).Cursor
		for !w.erasePiece(&first).Ended {
		}
		wantBalance(t, w, 100, 0)
		if counted := one[string](w, `SELECT string_agg(coalesce(counts ->> 'cancelled', '0'), ',' ORDER BY accepted_at) FROM tasks WHERE kind = 'scope_erase'`); counted != "0,1" {
			t.Errorf("counted %s", counted)
		}
		wantNothingLeft(t, w)
	})

	t.Run("TheLaneGoesOnWithWhatCameLater", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		for i := range 3 {
			w.accept(keyName(i), say(erasedUser, secret))
		}
		erase := w.fence()
		later := w.accept("later", say(erasedUser, "later"))
		l := w.claimErase(erase)
		done := w.erasePiece(&l)
		if len(done.Heads) != 1 || done.Heads[0].TaskID != later {
			t.Errorf("heads %+v", done.Heads)
		}
		wantDone(t, "the later one", w.complete(w.mustClaim(later), "later"))
		for !w.erasePiece(&l).Ended {
		}
	})

	t.Run("AFailureOrCancelInBetweenIsNotCountedTwice", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say(erasedUser, secret))
		lease := w.mustClaim(id)
		erase := w.fence()
		l := w.claimErase(erase)
		job := w.db.EraseJob()
		chunk, err := job.Next(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		wantDone(t, "fail", w.fail(lease, task.OutputInvalid))
		l.Cursor = wantDone(t, "piece", job.Apply(t.Context(), l, chunk, "", nil, worker.Work{})).Cursor
		for !w.erasePiece(&l).Ended {
		}
		wantBalance(t, w, 100, 0)
		wantNothingLeft(t, w)
	})

	t.Run("ABatchLosesTheContentsOfErasedRecordsOnly", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		theirs := w.remember(erasedScope, "a")[0]
		mine := w.remember(memory.Scope{UserID: "other"}, "b")[0]
		batcher, err := write.NewBatcher(w.db, w.hints, credit.DefaultPrices())
		if err != nil {
			t.Fatal(err)
		}
		said, kept := secret+" anew", "kept"
		receipt, err := batcher.Accept(t.Context(), w.caller, nil, command.Batch{Changes: []command.Change{
			{ID: theirs, Content: &said}, {ID: mine, Content: &kept},
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.erase("e")
		wantNothingLeft(t, w)
		who := claimant("batch")
		who.Kinds = []task.Kind{task.BatchUpdate}
		c := w.db.Claim(t.Context(), who, []worker.ClaimAsk{{TaskID: receipt.EventID, Token: uuid.New()}}, false)[0]
		if c.Lease == nil {
			t.Fatalf("claim %+v", c)
		}
		chunk, err := w.db.BatchJob().Next(t.Context(), *c.Lease)
		if err != nil {
			t.Fatal(err)
		}
		done := wantDone(t, "batch", w.db.BatchJob().Apply(t.Context(), *c.Lease, chunk, "m", []model.Vector{{1}}, worker.Work{}))
		if !done.Ended || one[string](w, `SELECT text FROM memories`) != kept {
			t.Errorf("done %+v", done)
		}
	})
}
