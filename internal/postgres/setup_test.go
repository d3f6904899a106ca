package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// maxAttempts is what the tests' events show as their budget.
const maxAttempts = 5

// event reads one event that must be there.
func (w *world) event(id uuid.UUID) recall.Event {
	w.t.Helper()
	event, err := w.db.EventReader(maxAttempts).Event(w.t.Context(), w.caller.Workspace.ID, id)
	if err != nil {
		w.t.Fatalf("read event %s: %v", id, err)
	}
	return event
}

// events lists all of a query's events, page by page.
func (w *world) events(query recall.EventQuery) []recall.Event {
	w.t.Helper()
	var all []recall.Event
	for range 1000 {
		page, err := w.db.EventReader(maxAttempts).Events(w.t.Context(), w.caller.Workspace.ID, query)
		if err != nil {
			w.t.Fatalf("list events: %v", err)
		}
		if len(page.Events) > query.Limit {
			w.t.Fatalf("a page of %d events, the limit is %d", len(page.Events), query.Limit)
		}
		all = append(all, page.Events...)
		if page.Next == nil {
			return all
		}
		query.After = page.Next
	}
	w.t.Fatal("the list of events doesn't end")
	return nil
}

// move takes one terminal task to the other of the tables tasks and tasks_archive, as retention does.
func (w *world) move(id uuid.UUID, from, to string) error {
	var columns string
	err := w.sql.QueryRow(w.t.Context(), `
SELECT string_agg(column_name, ', ' ORDER BY ordinal_position) FROM information_schema.columns
 WHERE table_name = 'tasks' AND is_generated = 'NEVER'`).Scan(&columns)
	if err != nil {
		return err
	}
	_, err = w.sql.Exec(w.t.Context(), `WITH gone AS (DELETE FROM `+from+` WHERE id = $1 RETURNING `+columns+`)
INSERT INTO `+to+` (`+columns+`) SELECT `+columns+` FROM gone`, id)
	return err
}

// remember stores texts as they are, with terms and vectors of the offline embedder, and answers the records' ids.
func (w *world) remember(scope memory.Scope, texts ...string) []uuid.UUID {
	w.t.Helper()
	return w.store(scope, "", texts...).ids()
}

type stored write.Stored

func (s stored) ids() []uuid.UUID {
	ids := make([]uuid.UUID, len(s.Results))
	for i, r := range s.Results {
		ids[i] = r.RecordID
	}
	return ids
}

// store is remember with metadata.
func (w *world) store(scope memory.Scope, metadata string, texts ...string) stored {
	w.t.Helper()
	add := command.Add{Scope: scope}
	if metadata != "" {
		add.Metadata = []byte(metadata)
	}
	for _, text := range texts {
		add.Messages = append(add.Messages, command.Message{Role: "user", Content: text})
	}
	written, err := w.writer(offline.NewEmbedder()).Write(w.t.Context(), w.caller, nil, add)
	if err != nil {
		w.t.Fatalf("store: %v", err)
	}
	return stored(written)
}

// memories lists all current records of a scope, page by page.
func (w *world) memories(scope memory.Scope, limit int) []memory.Record {
	w.t.Helper()
	var all []memory.Record
	query := recall.MemoryQuery{Scope: scope, Limit: limit}
	for range 1000 {
		page, err := w.db.Memories(w.t.Context(), w.caller.Workspace.ID, query)
		if err != nil {
			w.t.Fatalf("list memories: %v", err)
		}
		if len(page.Records) > limit {
			w.t.Fatalf("a page of %d records, the limit is %d", len(page.Records), limit)
		}
		all = append(all, page.Records...)
		if page.Next == nil {
			return all
		}
		query.After = page.Next
	}
	w.t.Fatal("the list of memories doesn't end")
	return nil
}

// plan explains a statement with real runs and returns the plan's text.
func (w *world) plan(sql string, args pgx.NamedArgs) string {
	w.t.Helper()
	rows, err := w.sql.Query(w.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) "+sql, args)
	if err != nil {
		w.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// frozen is the world's clock set to a moment of the past, so that every time of a test is known.
func (w *world) frozen() time.Time {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	w.clock.Store(&at)
	return at
}

func wantStatus(t testing.TB, w *world, id uuid.UUID, want task.EventStatus) recall.Event {
	t.Helper()
	event := w.event(id)
	if event.Status != want {
		t.Fatalf("the event is %s, want %s", event.Status, want)
	}
	// List and filters must say the same.
	everything := recall.EventQuery{Kinds: []task.Kind{event.Kind}, Limit: 100}
	listed := 0
	for _, e := range w.events(everything) {
		if e.ID == id {
			listed++
			if e.Status != want {
				t.Fatalf("the list says %s, want %s", e.Status, want)
			}
		}
	}
	if listed != 1 {
		t.Fatalf("the event is listed %d times", listed)
	}
	for _, status := range []task.EventStatus{
		task.EventPending, task.EventRunning, task.EventRetrying, task.EventSucceeded, task.EventFailed,
	} {
		filtered := everything
		filtered.Status = status
		found := false
		for _, e := range w.events(filtered) {
			found = found || e.ID == id
			if e.Status != status {
				t.Fatalf("the filter %s lets %s through", status, e.Status)
			}
		}
		if found != (status == want) {
			t.Fatalf("the filter %s has the event: %v, want %s", status, found, want)
		}
	}
	return event
}
