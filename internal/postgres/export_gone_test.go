package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// versions gives a record so many versions, each with a row of history that says the text.
func (w *world) versions(n int, text string) {
	w.t.Helper()
	w.exec(`INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, old_text, new_text, at)
 SELECT gen_random_uuid(), m.workspace_id, m.id, m.task_id, 0, 'UPDATE', n, $2, $2, m.created_at
   FROM memories m, generate_series(2, $1::int) n`, n, text)
	w.exec(`UPDATE memories SET version = $1`, n)
}

func TestExportOfWhatIsGone(t *testing.T) {
	t.Parallel()

	t.Run("ManyErasedRecordsMakeNoPart", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100_000)
		w.remember(memory.Scope{UserID: "other"}, "first")
		w.exec(`INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, at)
 SELECT gen_random_uuid(), $1, gen_random_uuid(), gen_random_uuid(), 0, 'ADD', 1, clock_timestamp() FROM generate_series(1, 9000)`,
			w.caller.Workspace.ID)
		snapshot := w.export()
		if n := bytes.Count(snapshot, []byte(`"type":"memory"`)); n != 1 {
			t.Fatalf("%d records in %s", n, snapshot)
		}
		if n := one[int](w, `SELECT count(*) FROM task_parts WHERE octet_length(body) = 0`); n != 0 {
			t.Errorf("%d empty parts", n)
		}
		to := newWorld(t, 100)
		to.toEnd(to.db.ImportJob(), to.claimMove(to.mustImport(snapshot)))
		if n := one[int](to, `SELECT count(*) FROM memories`); n != 1 {
			t.Errorf("%d records are imported", n)
		}
	})

	t.Run("AFenceEndsARecordBetweenTwoParts", func(t *testing.T) {
		t.Parallel()
		for name, end := range map[string]func(w *world){
			"fenced": func(w *world) { w.fence() },
			"gone":   func(w *world) { w.exec(`DELETE FROM memories`) },
		} {
			w := newWorld(t, 100)
			w.remember(erasedScope, secret)
			w.versions(450, secret)
			l := w.claimMove(w.beginExport())
			if _, err := w.movePiece(w.db.ExportJob(), &l); err != nil {
				t.Fatal(err)
			}
			end(w)
			w.toEnd(w.db.ExportJob(), l)
			later := one[string](w, `SELECT coalesce(string_agg(convert_from(body, 'UTF8'), ''), '') FROM task_parts WHERE part > 0`)
			if bytes.Contains([]byte(later), []byte(erasedUser)) || later == "" {
				t.Errorf("%s: a later part says %.300s", name, later)
			}
		}
	})

	t.Run("APartThatIsBeingWrittenGoesToo", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		export := w.beginExport()
		l := w.claimMove(export)
		if _, err := w.movePiece(w.db.ExportJob(), &l); err != nil {
			t.Fatal(err)
		}
		block, err := w.sql.Begin(t.Context()) // the next piece, up to its commit
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = block.Rollback(context.Background()) }()
		for _, sql := range []string{
			fmt.Sprintf(`SELECT FROM tasks WHERE id = '%s' FOR UPDATE`, export),
			fmt.Sprintf(`INSERT INTO task_parts VALUES ('%s', 1, '%s', '%s')`, export, w.caller.Workspace.ID, secret),
		} {
			if _, err := block.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		erase := w.claimErase(w.fence())
		ended := make(chan worker.Done)
		go func() {
			for {
				if done := w.erasePiece(&erase); done.Ended || done.Err != nil {
					ended <- done
					return
				}
			}
		}()
		w.waiting(1, "transactionid")
		if err := block.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantDone(t, "erase", <-ended)
		wantNothingLeft(t, w)
		w.toEnd(w.db.ExportJob(), l) // it begins anew
		wantNothingLeft(t, w)
	})
}
