package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestProjection(t *testing.T) {
	t.Parallel()
	project := func(w *world, l worker.Lease, live []worker.LiveRecord, v model.Vector) worker.Done {
		l.Stage = task.Committed
		projected := make([]worker.Projection, len(live))
		for i, r := range live {
			projected[i] = worker.Projection{RecordID: r.ID, Version: r.Version, Vector: v}
		}
		return w.db.Settle(t.Context(), []worker.Settle{{Lease: l, VectorModel: "m", Projected: projected}})[0]
	}
	t.Run("FailsAndHealsWithoutANewExtraction", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		wantDone(t, "commit", w.commit(l, "fact"))
		record := one[uuid.UUID](w, `SELECT id FROM memories`)
		l.Stage = task.Committed
		wantDone(t, "later", w.later(l, task.ProjectionFailed, 0))
		r, err := w.accepter(w.db).Accept(t.Context(), w.caller, key(t, "k"), say("u", "a"))
		if err != nil || r.Status != task.EventRetrying {
			t.Fatalf("meanwhile %+v: %v", r, err)
		}
		again := w.mustClaim(id)
		if again.Stage != task.Committed {
			t.Fatalf("stage %s", again.Stage)
		}
		wantLost(t, "a second commit", w.commit(again, "other fact"))
		wantDone(t, "settle", w.settle(again))
		if one[uuid.UUID](w, `SELECT record_id FROM task_results`) != record || one[int64](w, `SELECT count(*) FROM memory_history`) != 1 {
			t.Fatal("the records changed")
		}
		if one[bool](w, `SELECT body IS NOT NULL FROM plans`) || one[bool](w, `SELECT command IS NOT NULL FROM tasks`) {
			t.Fatal("input left after success")
		}
	})
	t.Run("TheNewerVersionWins", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		l := w.mustClaim(w.accept("k", say("u", "a")))
		wantDone(t, "commit", w.commit(l, "edited", "deleted", "same"))
		live, err := w.db.Unprojected(t.Context(), l, "m")
		if err != nil || len(live) != 3 {
			t.Fatalf("live %+v: %v", live, err)
		}
		w.exec(`UPDATE memories SET version = 2 WHERE text = 'edited'`)
		w.exec(`UPDATE memories SET deleted_at = now() WHERE text = 'deleted'`)
		w.exec(`INSERT INTO memory_vectors (memory_id, workspace_id, version, content_key, model, vector, made_at)
			SELECT id, workspace_id, 2, content_key, 'm', '\x0000803f', now() FROM memories WHERE text = 'edited'`)
		wantDone(t, "settle", project(w, l, live, model.Vector{2}))
		if got := one[string](w, `SELECT string_agg(m.text || ' ' || v.version || ' ' || encode(v.vector, 'hex'), ',' ORDER BY m.text)
			FROM memory_vectors v JOIN memories m ON m.id = v.memory_id`); got != "edited 2 0000803f,same 1 00000040" {
			t.Fatalf("vectors %s", got)
		}
	})
	t.Run("ARefusedTextIsMarkedAndTheTaskSucceeds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		wantDone(t, "commit", w.commit(l, "fact"))
		live, err := w.db.Unprojected(t.Context(), l, "m")
		if err != nil {
			t.Fatal(err)
		}
		wantDone(t, "settle", project(w, l, live, nil))
		if w.status(id) != "succeeded/projected" || !one[bool](w, `SELECT skipped FROM memory_vectors`) {
			t.Fatal("not marked")
		}
	})
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	first := w.mustClaim(w.accept("k1", say("u", "a")))
	wantDone(t, "complete", w.complete(first, "Likes Coffee", "likes coffee "))
	if got := one[string](w, `SELECT outcome || ' ' || (SELECT string_agg(event, ',' ORDER BY ordinal) FROM task_results) FROM tasks`); got != "STORED ADD,NONE" {
		t.Fatalf("first: %s", got)
	}
	second := w.accept("k2", say("u", "b"))
	wantDone(t, "complete", w.complete(w.mustClaim(second), "LIKES COFFEE"))
	if got := one[string](w, `SELECT outcome FROM tasks WHERE id = $1`, second); got != "UNCHANGED" {
		t.Fatalf("second: %s", got)
	}
	third := w.accept("k3", say("u", "c"))
	wantDone(t, "complete", w.complete(w.mustClaim(third)))
	if got := one[string](w, `SELECT outcome FROM tasks WHERE id = $1`, third); got != "NO_MEMORY" {
		t.Fatalf("third: %s", got)
	}
	fourth := w.accept("k4", say("other", "c"))
	wantDone(t, "complete", w.complete(w.mustClaim(fourth), "likes coffee"))
	if got := one[string](w, `SELECT outcome FROM tasks WHERE id = $1`, fourth); got != "STORED" {
		t.Fatalf("another lane: %s", got)
	}
	if one[int64](w, `SELECT count(*) FROM memories`) != 2 || one[int64](w, `SELECT count(*) FROM memory_vectors`) != 2 {
		t.Fatal("a repeat was stored")
	}
	wantBalance(t, w, 92, 0)
}

// TestTwoWritersOfOneFact commits the same fact under two keys at once, without an order between them.
func TestTwoWritersOfOneFact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1_000)
	for i := range 100 {
		add := say(keyName(i), "a")
		add.Ordered = false
		leases := []worker.Lease{
			w.mustClaim(w.accept(keyName(i)+"-one", add)), w.mustClaim(w.accept(keyName(i)+"-two", add)),
		}
		together(2, func(n int) {
			if done := w.complete(leases[n], "likes coffee"); done.Err != nil {
				t.Errorf("complete: %v", done.Err)
			}
		})
	}
	if n := one[int64](w, `SELECT count(*) FROM memories`); n != 100 {
		t.Errorf("%d rows of 100 facts", n)
	}
	if got := one[string](w, `SELECT string_agg(outcome || ' ' || n, ',' ORDER BY outcome) FROM (SELECT outcome, count(*) AS n FROM tasks GROUP BY outcome) x`); got != "STORED 100,UNCHANGED 100" {
		t.Errorf("outcomes %s", got)
	}
	w.books()
}
