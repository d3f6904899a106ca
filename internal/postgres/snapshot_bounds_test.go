package postgres_test

import (
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestSnapshotBounds(t *testing.T) {
	t.Parallel()
	t.Run("AFailedImportIsNotRetriedIntoAWorkspaceThatIsNoLongerEmpty", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 100), newWorld(t, 100)
		from.furnish(3)
		id := to.mustImport(from.export())
		wantDone(t, "fail", to.fail(to.claimMove(id), task.InternalFailure))
		wantDone(t, "complete", to.complete(to.mustClaim(to.accept("k", say("u", "a"))), "a record of its own"))
		generation := 1
		if _, err := to.retrier().Retry(t.Context(), to.caller, id, &generation, nil); !fault.Is(err, fault.WorkspaceNotEmpty) {
			t.Fatalf("retry: %v", err)
		}
	})
	t.Run("WhatAnotherClockDatedAheadIsCoveredByAnEraseAfterTheImport", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 100), newWorld(t, 100)
		wantDone(t, "complete", from.complete(from.mustClaim(from.accept("k", say("u", "a"))), "dated ahead"))
		from.exec(`UPDATE memories SET accepted_at = clock_timestamp() + interval '1 hour'`)
		from.advance(2 * time.Hour)
		snapshot := from.export()
		to.toEnd(to.db.ImportJob(), to.claimMove(to.mustImport(snapshot)))
		if got := one[string](to, `SELECT text FROM memories`); got != "dated ahead" {
			t.Fatalf("imported %q", got)
		}
		if !one[bool](to, `SELECT m.accepted_at <= t.accepted_at FROM memories m, tasks t WHERE t.kind = 'import'`) {
			t.Fatal("an erase that is accepted after the import would not cover it")
		}
	})
}

// TestSupersededWhileEmbedded ends a record's validity while its vector is being made: the text is the same, so the
// vector is kept.
func TestSupersededWhileEmbedded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	first := w.mustClaim(w.accept("k1", say("u", "a")))
	wantDone(t, "commit", w.commit(first, "old"))
	live, err := w.db.Unprojected(t.Context(), first, "m")
	if err != nil || len(live) != 1 {
		t.Fatalf("live %+v: %v", live, err)
	}
	second := w.mustClaim(w.accept("k2", say("u", "b")))
	wantDone(t, "replace", w.replace(second, "new", w.target("old")))
	key := memory.KeyOf(live[0].Text)
	first.Stage = task.Committed
	wantDone(t, "settle", w.db.Settle(t.Context(), []worker.Settle{{
		Lease: first, VectorModel: "m",
		Projected: []worker.Projection{{RecordID: live[0].ID, Version: live[0].Version, Key: &key, Vector: model.Vector{1}}},
	}})[0])
	if v := one[int](w, `SELECT version FROM memory_vectors WHERE memory_id = $1`, live[0].ID); v != 2 {
		t.Fatalf("the superseded record's vector has version %d", v)
	}
}
