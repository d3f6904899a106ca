package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// replace commits one fact that wants to supersede a target.
func (w *world) replace(l worker.Lease, text string, target *memory.Target) worker.Done {
	w.t.Helper()
	plan := planOf(text)
	plan.Records[0].Supersedes = target
	return w.db.Commit(w.t.Context(), []worker.Commit{{Lease: l, Plan: plan}})[0]
}

func (w *world) target(text string) *memory.Target {
	w.t.Helper()
	t := memory.Target{ID: one[uuid.UUID](w, `SELECT id FROM memories WHERE text = $1`, text)}
	t.Version = one[int](w, `SELECT version FROM memories WHERE text = $1`, text)
	return &t
}

// live is the texts of the live records that nothing has superseded.
func (w *world) live() string {
	w.t.Helper()
	return one[string](w, `SELECT coalesce(string_agg(text, '|' ORDER BY text), '') FROM memories WHERE valid_to IS NULL AND deleted_at IS NULL`)
}

func TestSupersede(t *testing.T) {
	t.Parallel()
	t.Run("EndsTheOldRecordAndKeepsItsHistory", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first := w.mustClaim(w.accept("k1", say("u", "a")))
		wantDone(t, "commit", w.commit(first, "lives in Paris"))
		wantDone(t, "settle", w.settle(first))
		target := w.target("lives in Paris")
		second := w.mustClaim(w.accept("k2", say("u", "b")))
		wantDone(t, "replace", w.replace(second, "lives in Berlin", target))
		wantDone(t, "settle", w.settle(second))
		if got := w.live(); got != "lives in Berlin" {
			t.Fatalf("live %s", got)
		}
		if got := one[string](w, `SELECT string_agg(event, ',' ORDER BY version) FROM memory_history WHERE memory_id = $1`, target.ID); got != "ADD,INVALIDATE" {
			t.Fatalf("history %s", got)
		}
		history, err := w.db.History(t.Context(), w.caller.Workspace.ID, recall.HistoryQuery{Memory: target.ID, Limit: 10})
		if err != nil || len(history.Entries) != 2 {
			t.Fatalf("history %+v, %v", history, err)
		}
		successor := one[uuid.UUID](w, `SELECT id FROM memories WHERE text = 'lives in Berlin'`)
		added, ended := history.Entries[0], history.Entries[1]
		if added.SupersededBy != nil || added.ValidTo != nil || ended.ValidTo == nil || ended.SupersededBy == nil || *ended.SupersededBy != successor {
			t.Fatalf("history %+v", history.Entries)
		}
		if got := one[string](w, `SELECT string_agg(event, ',' ORDER BY ordinal) FROM task_results WHERE task_id = $1`, second.TaskID); got != "ADD,INVALIDATE" {
			t.Fatalf("results %s", got)
		}
		if !one[bool](w, `SELECT o.superseded_by = n.id AND o.valid_to = n.valid_from AND o.version = 2
			FROM memories o, memories n WHERE o.text = 'lives in Paris' AND n.text = 'lives in Berlin'`) {
			t.Fatal("the old record doesn't name its successor")
		}
		if !one[bool](w, `SELECT bool_and(t.version = m.version AND v.version = m.version) FROM memories m
			JOIN memory_terms t ON t.memory_id = m.id JOIN memory_vectors v ON v.memory_id = m.id`) {
			t.Fatal("projections don't keep step")
		}
	})
	t.Run("ATargetThatChangedOrWentAwayMakesAPlainAdd", func(t *testing.T) {
		t.Parallel()
		for name, change := range map[string]string{
			"changed":    `UPDATE memories SET version = version + 1`,
			"deleted":    `UPDATE memories SET deleted_at = now()`,
			"superseded": `UPDATE memories SET valid_to = now()`,
			"said later": `UPDATE memories SET said_at = now() + interval '1 hour'`,
			"moved away": `UPDATE memories SET lane = sha256('another lane')`,
		} {
			w := newWorld(t, 100)
			first := w.mustClaim(w.accept("k1", say("u", "a")))
			wantDone(t, "complete", w.complete(first, "old"))
			target := w.target("old")
			second := w.mustClaim(w.accept("k2", say("u", "b")))
			w.exec(change)
			wantDone(t, "replace", w.replace(second, "new", target))
			if got := one[string](w, `SELECT string_agg(event, ',' ORDER BY ordinal) FROM task_results WHERE task_id = $1`, second.TaskID); got != "ADD" {
				t.Errorf("%s: results %s", name, got)
			}
			if n := one[int64](w, `SELECT count(*) FROM memories WHERE superseded_by IS NOT NULL`); n != 0 {
				t.Errorf("%s: superseded all the same", name)
			}
		}
	})
	t.Run("AnOldCommandRetriedByHandSupersedesNothingSaidLater", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		old := w.accept("k1", say("u", "a"))
		wantDone(t, "fail", w.fail(w.mustClaim(old), "output_invalid"))
		later := w.mustClaim(w.accept("k2", say("u", "b")))
		wantDone(t, "complete", w.complete(later, "said later"))
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, old, &generation, nil); err != nil {
			t.Fatal(err)
		}
		l := w.mustClaim(old)
		known, err := w.db.Known(t.Context(), l, []string{"said"}, 10)
		if err != nil || len(known) != 0 {
			t.Fatalf("known %+v: %v", known, err)
		}
		wantDone(t, "replace", w.replace(l, "said earlier", w.target("said later")))
		if got := w.live(); got != "said earlier|said later" {
			t.Fatalf("live %s", got)
		}
	})
	t.Run("OneTargetIsTakenOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first := w.mustClaim(w.accept("k1", say("u", "a")))
		wantDone(t, "complete", w.complete(first, "old"))
		plan := planOf("new one", "new two")
		for i := range plan.Records {
			plan.Records[i].Supersedes = w.target("old")
		}
		second := w.mustClaim(w.accept("k2", say("u", "b")))
		wantDone(t, "commit", w.db.Commit(t.Context(), []worker.Commit{{Lease: second, Plan: plan}})[0])
		if got := one[string](w, `SELECT string_agg(event, ',' ORDER BY ordinal) FROM task_results WHERE task_id = $1`, second.TaskID); got != "ADD,ADD,INVALIDATE" {
			t.Fatalf("results %s", got)
		}
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	first := w.mustClaim(w.accept("k1", say("u", "a")))
	texts := []string{"likes green tea", "owns a bicycle", "works in Oslo", "speaks Norwegian", "has two cats", "plays chess"}
	wantDone(t, "complete", w.complete(first, texts...))
	other := w.mustClaim(w.accept("k2", say("v", "a")))
	wantDone(t, "complete", w.complete(other, "likes black tea"))
	l := w.mustClaim(w.accept("k3", say("u", "b")))
	known, err := w.db.Known(t.Context(), l, memory.TermsOf("which tea does she like").Terms, 2)
	if err != nil || len(known) == 0 {
		t.Fatalf("known %+v: %v", known, err)
	}
	found := false
	for _, k := range known {
		found = found || k.Text == "likes green tea"
		if k.Text == "likes black tea" {
			t.Error("another lane's record is known")
		}
	}
	if !found || len(known) > 2 {
		t.Errorf("known %+v", known)
	}
}
