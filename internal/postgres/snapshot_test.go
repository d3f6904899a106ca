package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func (w *world) mover() *write.Mover {
	w.t.Helper()
	mover, err := write.NewMover(w.db, w.db, w.hints)
	if err != nil {
		w.t.Fatal(err)
	}
	return mover
}

// claimMove leases an export or import.
func (w *world) claimMove(id uuid.UUID) worker.Lease {
	w.t.Helper()
	who := claimant("mover")
	who.Kinds = []task.Kind{task.Export, task.Import}
	c := w.db.Claim(w.t.Context(), who, []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
	if c.Err != nil || c.Lease == nil {
		w.t.Fatalf("claim: %+v", c)
	}
	return *c.Lease
}

// movePiece runs the next piece as the worker does, and moves the lease.
func (w *world) movePiece(job worker.Job, l *worker.Lease) (worker.Done, error) {
	w.t.Helper()
	chunk, err := job.Next(w.t.Context(), *l)
	if err != nil {
		return worker.Done{}, err
	}
	embedding, err := offline.NewEmbedder().Embed(w.t.Context(), chunk.Texts)
	if err != nil {
		w.t.Fatal(err)
	}
	done := wantDone(w.t, "piece", job.Apply(w.t.Context(), *l, chunk, offline.NewEmbedder().Model(), embedding.Vectors, worker.Work{}))
	l.Cursor, l.Stage = done.Cursor, task.Committed
	return done, nil
}

func (w *world) toEnd(job worker.Job, l worker.Lease) {
	w.t.Helper()
	for range 1000 {
		done, err := w.movePiece(job, &l)
		if err != nil {
			w.t.Fatal(err)
		}
		if done.Ended {
			return
		}
	}
	w.t.Fatal("it doesn't end")
}

func (w *world) beginExport() uuid.UUID {
	w.t.Helper()
	receipt, err := w.mover().Export(w.t.Context(), w.caller, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt.EventID
}

// export makes a snapshot and answers it whole.
func (w *world) export() []byte {
	w.t.Helper()
	id := w.beginExport()
	w.toEnd(w.db.ExportJob(), w.claimMove(id))
	return w.snapshot(id)
}

func (w *world) snapshot(id uuid.UUID) []byte {
	w.t.Helper()
	parts, err := w.db.ExportParts(w.t.Context(), w.caller.Workspace.ID, id)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []byte
	for part := range parts {
		body, found, err := w.db.ExportPart(w.t.Context(), w.caller.Workspace.ID, id, part)
		if err != nil || !found {
			w.t.Fatalf("part %d: %v, %v", part, found, err)
		}
		all = append(all, body...)
	}
	return all
}

func (w *world) beginImport(k string, snapshot []byte) (write.Receipt, error) {
	w.t.Helper()
	name := key(w.t, k)
	return w.mover().Import(w.t.Context(), w.caller, &name, bytes.NewReader(snapshot))
}

func (w *world) mustImport(snapshot []byte) uuid.UUID {
	w.t.Helper()
	receipt, err := w.beginImport("import", snapshot)
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt.EventID
}

// rowsOf is a digest of every row of a table that a snapshot carries, the workspace left out.
func (w *world) rowsOf(table, without string) string {
	w.t.Helper()
	exact := "'{}'::jsonb"
	if table == "memories" { // jsonb forgets order and spelling
		exact = "jsonb_build_object('exact', x.metadata::text)"
	}
	return one[string](w, `SELECT coalesce(string_agg(r::text, E'\n' ORDER BY r::text), '') FROM (
  SELECT to_jsonb(x) - 'workspace_id' - string_to_array($2, ',') || `+exact+` AS r FROM `+table+` x WHERE x.workspace_id = $1) y`,
		w.caller.Workspace.ID, without)
}

// fill gives the world records of every sort, history and an item.
func (w *world) furnish(records int) {
	w.t.Helper()
	texts := make([]string, records)
	for i := range texts {
		texts[i] = fmt.Sprintf("fact number %d <&> \u2028 \"é\"", i)
	}
	for first := 0; first < records; first += 100 {
		w.store(memory.Scope{UserID: "u", RunID: fmt.Sprint(first)}, `{"b":1.50,"a":{"z":[1e2,"<x>"]},"n":null}`, texts[first:min(first+100, records)]...)
	}
	ids := w.remember(memory.Scope{AgentID: "a", AppID: "b"}, "kept", "changed", "ended")
	text := "changed anew"
	w.change("", command.Change{ID: ids[1], Content: &text})
	w.change("", command.Change{ID: ids[1], Metadata: []byte(`{"x":"y"}`)})
	w.change("", command.Change{ID: ids[2], Delete: true})
	w.exec(`UPDATE memories SET event_date = '2020-01-02 03:04:05.678901+00', type = 'fact', expires_at = '2100-01-01', valid_to = now(), superseded_by = $2 WHERE id = $1`, ids[0], ids[1])
	item := command.Item{Account: "u", ID: "i", Text: "words", Author: "me", Session: "s"}
	itemKey, content := item.Key(), item.Content()
	w.exec(`INSERT INTO items (workspace_id, item_key, account, item_id, event_id, revision, landed_revision, content_hash, text, author, session, at, at_text, task_id, created_at, updated_at)
VALUES ($1, $2, 'u', 'i', $3, 3, 2, $4, 'words', 'me', 's', now(), '2020-01-01T00:00Z', $5, clock_timestamp(), clock_timestamp())`,
		w.caller.Workspace.ID, itemKey[:], item.EventID(w.caller.Workspace.ID), content[:], uuid.New())
	w.exec(`UPDATE memories SET categories = $2 WHERE id = $1`, ids[0], []string{"home, sweet", `a"b\c`, "NULL", "日本"})
	w.exec(`INSERT INTO memory_feedback (memory_id, workspace_id, feedback, reason, at) VALUES ($1, $2, 'NEGATIVE', 'not quite', '2026-01-02 03:04:05.678901+00')`, ids[1], w.caller.Workspace.ID)
	w.exec(`UPDATE memories SET item_id = 'i', item_key = $2 WHERE id = (SELECT min(id::text)::uuid FROM memories WHERE user_id = 'u' AND workspace_id = $1)`, w.caller.Workspace.ID, itemKey[:])
}

// body is a snapshot without its header, which names workspace and time.
func body(snapshot []byte) string {
	_, rest, _ := strings.Cut(string(snapshot), "\n")
	return rest
}

func TestSnapshot(t *testing.T) {
	t.Parallel()

	t.Run("AnotherDatabaseHasTheSameRows", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 10_000), newWorld(t, 100)
		from.furnish(450)
		snapshot := from.export()
		if n := one[int64](from, `SELECT count(*) FROM task_parts`); n < 3 {
			t.Fatalf("%d parts, want several", n)
		}
		id := to.mustImport(snapshot)
		to.toEnd(to.db.ImportJob(), to.claimMove(id))
		for table, without := range map[string]string{
			"memories": "", "memory_history": "", "memory_terms": "", "memory_vectors": "made_at", "items": "event_id", "memory_feedback": "",
		} {
			want, got := from.rowsOf(table, without), to.rowsOf(table, without)
			if want != got || want == "" {
				t.Errorf("%s differ: %d and %d bytes", table, len(want), len(got))
			}
		}
		if again := to.export(); body(again) != body(snapshot) {
			t.Error("the snapshot of the copy differs")
		}
		e := to.event(id)
		if e.Outcome != task.Stored || e.Progress == nil || e.Progress.Done != e.Progress.Total || e.Progress.Done != 454 {
			t.Errorf("event %s with progress %+v", e.Outcome, e.Progress)
		}
		if n := one[int64](to, `SELECT count(*) FROM task_parts WHERE task_id = $1`, id); n != 0 {
			t.Errorf("%d parts of the import are left", n)
		}
		if n := one[int64](to, `SELECT count(*) FROM memories m JOIN lanes l USING (workspace_id, lane) WHERE m.accepted_at > l.last_accepted_at`); n != 0 {
			t.Errorf("%d records are later than their lane", n)
		}
		added := to.remember(memory.Scope{AgentID: "a", AppID: "b"}, "after the import")
		if len(added) != 1 {
			t.Errorf("added %v", added)
		}
		from.books()
		to.books()
		from.sound()
		to.sound()
	})

	t.Run("AnEmptyWorkspaceHasHeaderAndFooter", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		snapshot := w.export()
		if lines := bytes.Count(snapshot, []byte("\n")); lines != 2 {
			t.Errorf("%d lines: %s", lines, snapshot)
		}
		w.toEnd(w.db.ImportJob(), w.claimMove(w.mustImport(snapshot)))
	})

	t.Run("OnlyAnEmptyWorkspaceTakesOne", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		snapshot := w.export()
		first, err := w.beginImport("k", snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.beginImport("k2", snapshot); !fault.Is(err, fault.WorkspaceNotEmpty) {
			t.Errorf("beside another import: %v", err)
		}
		if again, err := w.beginImport("k", snapshot); err != nil || !again.Replayed || again.EventID != first.EventID {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		if _, err = w.beginImport("k", append(snapshot, "{}\n"...)); !fault.Is(err, fault.IdempotencyConflict) {
			t.Errorf("another snapshot under the key: %v", err)
		}
		w.toEnd(w.db.ImportJob(), w.claimMove(first.EventID))
		w.remember(memory.Scope{UserID: "u"}, "x")
		if _, err = w.beginImport("k3", snapshot); !fault.Is(err, fault.WorkspaceNotEmpty) {
			t.Errorf("beside a record: %v", err)
		}
		if n := one[int64](w, `SELECT count(*) FROM task_parts p JOIN tasks t ON t.id = p.task_id WHERE t.kind = 'import'`); n != 0 {
			t.Errorf("%d parts are left", n)
		}
	})

	t.Run("AWrongLineFailsItWithNothingStored", func(t *testing.T) {
		t.Parallel()
		from := newWorld(t, 1_000)
		from.furnish(250)
		good := strings.SplitAfter(strings.TrimSuffix(string(from.export()), "\n"), "\n")
		last := len(good) - 1
		for name, c := range map[string]struct {
			lines []string
			line  int64
		}{
			"NoJSON":        {append(append([]string{}, good[:400]...), "{\n"), 401},
			"CutOff":        {good[:last], int64(last) + 1},
			"NoHeader":      {good[1:], 1},
			"AfterTheEnd":   {append(append([]string{}, good...), "\n"+good[1]), int64(last) + 2},
			"LineLost":      {append(append([]string{}, good[:5]...), good[6:]...), 6},
			"UnknownMember": {append(append([]string{}, good[:7]...), strings.Replace(good[7], "{", `{"x":1,`, 1)), 8},
			"AnotherForm":   {append([]string{strings.Replace(good[0], `"version":1`, `"version":2`, 1)}, good[1:]...), 1},
			"FromTheFuture": {append([]string{good[0]}, strings.Replace(good[1], `"accepted_at":"20`, `"accepted_at":"90`, 1)), 2},
			"WrongCount":    {append(append([]string{}, good[:last]...), strings.Replace(good[last], `"items":1`, `"items":2`, 1)), int64(last) + 1},
		} {
			to := newWorld(t, 0)
			id := to.mustImport([]byte(strings.Join(c.lines, "")))
			l := to.claimMove(id)
			if _, err := to.movePiece(to.db.ImportJob(), &l); err == nil {
				t.Errorf("%s: taken", name)
				continue
			}
			wantDone(t, "fail", to.db.Fail(t.Context(), []worker.Fail{{Lease: l, Class: task.InternalFailure, Code: task.CodeInputUnreadable}})[0])
			if e := to.event(id); e.Progress == nil || e.Progress.Line != c.line || e.Status != task.EventFailed {
				t.Errorf("%s: %s with %+v, want line %d", name, e.Status, e.Progress, c.line)
			}
			if n := one[int64](to, `SELECT count(*) FROM memories`); n != 0 {
				t.Errorf("%s: %d records", name, n)
			}
		}
	})

	t.Run("IdsThatAreInTheDatabaseFailIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "u"}, "one", "two")
		snapshot := w.export()
		w.caller = w.workspace(0)
		id := w.mustImport(snapshot)
		l := w.claimMove(id)
		if _, err := w.movePiece(w.db.ImportJob(), &l); err == nil {
			t.Fatal("taken")
		}
		if e := w.event(id); e.Progress == nil || e.Progress.Line != 2 && e.Progress.Line != 4 {
			t.Errorf("progress %+v", e.Progress)
		}
	})

	t.Run("APieceIsAppliedOnce", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 1_000), newWorld(t, 0)
		from.furnish(250)
		exporting := from.claimMove(from.beginExport())
		before := exporting
		if _, err := from.movePiece(from.db.ExportJob(), &exporting); err != nil {
			t.Fatal(err)
		}
		before.Stage = task.Accepted
		if again := from.db.ExportJob().Apply(t.Context(), before, worker.Chunk{}, "", nil, worker.Work{}); again.Err != nil || again.Cursor != exporting.Cursor {
			t.Errorf("the same piece again: %+v", again)
		}
		from.toEnd(from.db.ExportJob(), exporting)
		snapshot := from.snapshot(exporting.TaskID)
		l := to.claimMove(to.mustImport(snapshot))
		stale := l
		chunk, err := to.db.ImportJob().Next(context.Background(), stale)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.movePiece(to.db.ImportJob(), &l); err != nil {
			t.Fatal(err)
		}
		if again := to.db.ImportJob().Apply(t.Context(), stale, chunk, "m", nil, worker.Work{}); again.Err != nil || again.Cursor != l.Cursor {
			t.Errorf("the same piece again: %+v", again)
		}
		stale.Token = uuid.New()
		wantLost(t, "with another lease", to.db.ImportJob().Apply(t.Context(), stale, chunk, "m", nil, worker.Work{}))
		to.toEnd(to.db.ImportJob(), l)
		if lines(to.export()) != lines(snapshot) {
			t.Error("the copy differs")
		}
	})

	t.Run("PartsGoWithTheirTask", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.beginExport()
		w.toEnd(w.db.ExportJob(), w.claimMove(id))
		failed := w.mustImport([]byte("{}\n"))
		l := w.claimMove(failed)
		wantDone(t, "fail", w.db.Fail(t.Context(), []worker.Fail{{Lease: l, Class: task.InternalFailure, Code: task.CodeInputUnreadable}})[0])
		if swept, err := w.db.ExpireInput(t.Context(), 0, repair.Cursor{}, 10); err != nil || swept.Fixed != 1 {
			t.Fatalf("expire input: %+v, %v", swept, err)
		}
		if n := one[int64](w, `SELECT count(*) FROM task_parts WHERE task_id = $1`, failed); n != 0 {
			t.Errorf("%d parts of the failed import are left", n)
		}
		if err := w.move(id, "tasks", "tasks_archive"); err != nil {
			t.Fatal(err)
		}
		if got := w.snapshot(id); len(got) == 0 {
			t.Error("an archived export can't be read")
		}
		if swept, err := w.db.RetireArchived(t.Context(), 0, repair.Cursor{}, 10); err != nil || swept.Fixed != 1 {
			t.Fatalf("retire: %+v, %v", swept, err)
		}
		if n := one[int64](w, `SELECT count(*) FROM task_parts`); n != 0 {
			t.Errorf("%d parts are left", n)
		}
	})

	t.Run("AnotherWorkspaceSeesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "u"}, "mine")
		mine := w.caller
		w.caller = w.workspace(100)
		w.remember(memory.Scope{UserID: "u"}, "theirs")
		id := w.beginExport()
		if _, err := w.db.ExportParts(t.Context(), w.caller.Workspace.ID, id); !fault.Is(err, fault.EventNotFound) {
			t.Errorf("before its end: %v", err)
		}
		w.toEnd(w.db.ExportJob(), w.claimMove(id))
		if got := string(w.snapshot(id)); strings.Contains(got, "mine") || !strings.Contains(got, "theirs") {
			t.Errorf("snapshot %s", got)
		}
		if _, err := w.db.ExportParts(t.Context(), mine.Workspace.ID, id); !fault.Is(err, fault.EventNotFound) {
			t.Errorf("another workspace: %v", err)
		}
	})
}

func TestSnapshotErase(t *testing.T) {
	t.Parallel()

	t.Run("AFinishedExportGoes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		id := w.beginExport()
		w.toEnd(w.db.ExportJob(), w.claimMove(id))
		w.erase("e")
		wantNothingLeft(t, w)
		if _, err := w.db.ExportParts(t.Context(), w.caller.Workspace.ID, id); !fault.Is(err, fault.InputExpired) {
			t.Errorf("after the erase: %v", err)
		}
	})

	t.Run("AnExportUnderWayBeginsAnew", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000)
		w.furnish(250)
		w.remember(erasedScope, secret)
		l := w.claimMove(w.beginExport())
		if _, err := w.movePiece(w.db.ExportJob(), &l); err != nil {
			t.Fatal(err)
		}
		open := w.fence()
		if _, err := w.movePiece(w.db.ExportJob(), &l); err != nil {
			t.Fatal(err)
		}
		w.endErase(open)
		w.toEnd(w.db.ExportJob(), l)
		wantNothingLeft(t, w)
		if got := w.snapshot(l.TaskID); bytes.Count(got, []byte(`"type":"memory"`)) != 253 || !bytes.Contains(got, []byte(`"memories":253,`)) {
			t.Errorf("%d records", bytes.Count(got, []byte(`"type":"memory"`)))
		}
	})

	t.Run("AnImportUnderWayEndsWithWhatItHas", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 1_000), newWorld(t, 0)
		from.furnish(250)
		from.remember(erasedScope, secret)
		l := to.claimMove(to.mustImport(from.export()))
		if _, err := to.movePiece(to.db.ImportJob(), &l); err != nil {
			t.Fatal(err)
		}
		open := to.fence()
		done, err := to.movePiece(to.db.ImportJob(), &l)
		if err != nil || !done.Ended {
			t.Fatalf("beside an erase: %+v, %v", done, err)
		}
		to.sound()
		to.endErase(open)
		to.sound()
		wantNothingLeft(t, to)
		if e := to.event(l.TaskID); e.Outcome != task.Partial {
			t.Errorf("outcome %s", e.Outcome)
		}
	})

	t.Run("AnImportThatWaitsLosesItsBody", func(t *testing.T) {
		t.Parallel()
		from, to := newWorld(t, 100), newWorld(t, 0)
		from.remember(erasedScope, secret)
		id := to.mustImport(from.export())
		to.endErase(to.fence())
		wantNothingLeft(t, to)
		l := to.claimMove(id)
		if _, err := to.movePiece(to.db.ImportJob(), &l); err == nil {
			t.Error("it ran")
		}
	})
}
