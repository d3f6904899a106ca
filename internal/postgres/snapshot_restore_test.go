package postgres_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

var eventIDs = regexp.MustCompile(`"event_id":"[^"]*"`)

var historyIDs = regexp.MustCompile(`"type":"history","id":"[^"]*"`)

// lines is a snapshot without its header and without the ids of events, which are others in a copy.
func lines(snapshot []byte) string { return eventIDs.ReplaceAllString(body(snapshot), "") }

// restore imports the snapshot into the caller's workspace.
func (w *world) restore(snapshot []byte) {
	w.t.Helper()
	w.toEnd(w.db.ImportJob(), w.claimMove(w.mustImport(snapshot)))
}

func (w *itemWorld) forgetAll() {
	w.t.Helper()
	if _, err := w.items.Forget(w.t.Context(), w.caller, "u", write.Forget{All: true}); err != nil {
		w.t.Fatal(err)
	}
}

func TestSnapshotRestore(t *testing.T) {
	t.Parallel()

	t.Run("ImportedItemsReferToNoTaskOfAnotherWorkspace", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		ours := w.caller
		w.keep(input("i", "words"), input("j", "others"))
		planned := w.task("j")
		w.exec(`INSERT INTO plans (task_id, workspace_id, generation, body, created_at) VALUES ($1, $2, 1, 'plan', now())`, planned, ours.Workspace.ID)
		snapshot := w.export()
		w.caller = w.workspace(100)
		w.restore(snapshot)
		again := w.keep(input("i", "words"))
		if again.Queued != 1 || again.Items[0].Landed {
			t.Fatalf("sent again: %+v", again)
		}
		theirs := w.caller
		w.caller = ours
		w.land("i", "a fact of ours")
		w.caller = theirs
		if again = w.keep(input("i", "words")); again.Items[0].Landed {
			t.Error("the other workspace's commit landed it here")
		}
		w.forgetAll()
		if n := one[int](w.world, `SELECT count(*) FROM plans WHERE task_id = $1 AND body IS NOT NULL`, planned); n != 1 {
			t.Error("forgetting here took the other workspace's plan")
		}
		if n := one[int](w.world, `SELECT count(*) FROM tasks WHERE id = $1 AND status = 'pending'`, planned); n != 1 {
			t.Error("forgetting here ended the other workspace's task")
		}
		if n := one[int](w.world, `SELECT count(*) FROM items i JOIN tasks t ON t.id = i.task_id AND t.workspace_id <> i.workspace_id`); n != 0 {
			t.Errorf("%d items name another workspace's task", n)
		}
	})

	t.Run("ErasedOriginalsComeBack", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("i", "words"))
		w.land("i", "a fact")
		id := one[uuid.UUID](w.world, `SELECT id FROM memories`)
		snapshot := w.export()
		w.forgetAll()
		before := w.caller
		check := func(where string) {
			t.Helper()
			history, err := w.db.History(t.Context(), w.caller.Workspace.ID, recall.HistoryQuery{Memory: id, Limit: 10})
			if err != nil || len(history.Entries) != 1 || history.Entries[0].NewText == nil || *history.Entries[0].NewText != "a fact" {
				t.Fatalf("%s: history %+v, %v", where, history.Entries, err)
			}
			if again := w.keep(input("i", "words")); again.Queued != 0 || !again.Items[0].Landed {
				t.Errorf("%s: sent again: %+v", where, again)
			}
			if got := lines(w.export()); strings.Count(got, "a fact") != 2 {
				t.Errorf("%s: exported again: %s", where, got)
			}
		}
		w.caller = w.workspace(0)
		w.restore(snapshot)
		check("in another workspace")
		w.forgetAll()
		w.caller = before
		w.restore(snapshot)
		check("where they were")
		if again := w.export(); lines(again) != lines(snapshot) {
			t.Errorf("the snapshot differs: %s, was %s", again, snapshot)
		}
	})

	t.Run("EveryMemoryKeepsItsHistoryWhateverItsIds", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 100), newWorld(t, 0)
		ids := from.remember(memory.Scope{UserID: "u"}, "one", "two", "three")
		snapshot := historyIDs.ReplaceAll(from.export(), []byte(`"type":"history","id":"`+uuid.NewString()+`"`))
		to.restore(snapshot)
		for _, id := range ids {
			if h, err := to.db.History(t.Context(), to.caller.Workspace.ID, recall.HistoryQuery{Memory: id, Limit: 10}); err != nil || len(h.Entries) != 1 {
				t.Errorf("history %+v, %v", h.Entries, err)
			}
		}
		if got := string(to.export()); !strings.Contains(got, `"memories":3,"history":3,`) {
			t.Errorf("exported again: %s", got)
		}
	})

	t.Run("TheFirstTakenIdIsTheWrongLine", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "u"}, "one", "two", "three")
		snapshot := w.export()
		w.caller = w.workspace(0)
		for name, c := range map[string]struct {
			old, new string
			line     int64
		}{
			"Taken": {"", "", 2}, "TakenBeforeAWrongLine": {`"type":"footer"`, `"type":"foot"`, 2}, "WrongBeforeTaken": {`"type":"header"`, `"type":"head"`, 1},
		} {
			id := w.mustImport([]byte(strings.Replace(string(snapshot), c.old, c.new, 1)))
			l := w.claimMove(id)
			if _, err := w.movePiece(w.db.ImportJob(), &l); err == nil {
				t.Fatalf("%s: taken", name)
			}
			wantDone(t, "fail", w.db.Fail(t.Context(), []worker.Fail{{Lease: l, Class: task.InputRejected, Code: task.CodeInputUnreadable}})[0])
			if e := w.event(id); e.Progress == nil || e.Progress.Line != c.line {
				t.Errorf("%s: progress %+v, want line %d", name, e.Progress, c.line)
			}
			w.caller = w.workspace(0)
		}
	})

	t.Run("AnExportedItemIsNotUpdatedBeforeItIsCreated", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("i", "words"), input("j", "others"), input("k", "more"))
		if n := one[int](w.world, `SELECT count(*) FROM items WHERE updated_at < created_at`); n != 0 {
			t.Errorf("%d items", n)
		}
	})
}
