package postgres_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// fenceItems begins an erase of the account of the item tests.
func (w *itemWorld) fenceItems() uuid.UUID {
	w.t.Helper()
	return w.fenceOf("u")
}

func TestEraseItems(t *testing.T) {
	t.Parallel()

	t.Run("QueuedLandedFailedAndEditedOnesGo", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("landed", secret), in("q", input("queued", secret)), in("s", input("edited", secret)), in("f", input("failed", secret)))
		w.land("landed", secret)
		w.land("edited", secret)
		w.keep(in("s", input("edited", secret+" anew")))
		wantDone(t, "fail", w.fail(w.claimItem("failed"), "output_invalid"))
		w.endErase(w.fenceItems())
		wantGone(t, w.world, erasedUser)
		if n := one[int64](w.world, `SELECT count(*) FROM items`); n != 0 {
			t.Errorf("%d items are left", n)
		}
		if r := w.keep(input("landed", "new")); r.Queued != 1 {
			t.Errorf("kept again: %+v", r)
		}
	})

	t.Run("WhatIsSentDuringTheEraseStays", func(t *testing.T) {
		t.Parallel()
		for pieces := range 3 {
			w := newItemWorld(t, 100)
			w.keep(input("edited", secret), input("same", "same"), input("failed", "failed"))
			w.land("edited", secret)
			w.land("same", "same")
			wantDone(t, "fail", w.fail(w.claimItem("failed"), "output_invalid"))
			erase := w.fenceItems()
			l := w.claimErase(erase)
			for range pieces {
				w.erasePiece(&l)
			}
			if r := w.keep(input("edited", "kept"), input("same", "same"), input("failed", "failed")); r.Queued != 3 {
				t.Errorf("after %d pieces: %+v", pieces, r)
			}
			for !w.erasePiece(&l).Ended {
			}
			wantGone(t, w.world, secret)
			w.land("edited", "kept")
			w.land("same", "same")
			w.land("failed", "failed")
			w.wantLive("failed|kept|same")
		}
	})

	t.Run("AnEditUnderWayIsWaitedForAndStays", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("x", secret))
		w.land("x", secret)
		l := w.claimErase(w.fenceItems())
		job := w.db.EraseJob()
		chunk, err := job.Next(t.Context(), l)
		for ; err == nil; chunk, err = job.Next(t.Context(), l) { // up to the piece with the item
			if postgres.OfItems(chunk.State) {
				break
			}
			l.Cursor = wantDone(t, "piece", job.Apply(t.Context(), l, chunk, "", nil, worker.Work{})).Cursor
		}
		if err != nil {
			t.Fatal(err)
		}
		block, err := w.sql.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = block.Rollback(context.Background()) }()
		if _, err := block.Exec(t.Context(), `
WITH later AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, command, payload_format, lane,
                     user_id, accepted_at, updated_at)
  SELECT gen_random_uuid(), workspace_id, kind, 'pending', 'accepted', now(), now(), 'bulk', 'x', 1, lane, 'u',
         clock_timestamp(), now() FROM tasks WHERE kind = 'memory_item'
  RETURNING id)
UPDATE items SET text = 'kept', revision = 2, task_id = later.id FROM later`); err != nil {
			t.Fatal(err)
		}
		applied := make(chan worker.Done)
		go func() { applied <- job.Apply(t.Context(), l, chunk, "", nil, worker.Work{}) }()
		w.waiting(1, "transactionid")
		if err := block.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantDone(t, "piece", <-applied)
		if n := one[int64](w.world, `SELECT count(*) FROM items WHERE text = 'kept'`); n != 1 {
			t.Error("the edit is lost")
		}
	})
}
