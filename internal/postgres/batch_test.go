package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// batch accepts a batch that must be taken.
func (w *world) batch(k string, ends bool, changes ...command.Change) write.Receipt {
	w.t.Helper()
	batcher, err := write.NewBatcher(w.db, w.hints, credit.DefaultPrices())
	if err != nil {
		w.t.Fatal(err)
	}
	batch, err := command.NewBatch("/memories", ends, changes)
	if err != nil {
		w.t.Fatal(err)
	}
	var given *command.Key
	if k != "" {
		parsed := key(w.t, k)
		given = &parsed
	}
	receipt, err := batcher.Accept(w.t.Context(), w.caller, given, batch)
	if err != nil {
		w.t.Fatalf("accept batch: %v", err)
	}
	return receipt
}

// next reads a piece and embeds its texts, as the worker does.
func (w *world) next(l worker.Lease) (worker.Chunk, []model.Vector) {
	w.t.Helper()
	chunk, err := w.db.BatchJob().Next(w.t.Context(), l)
	if err != nil {
		w.t.Fatalf("read piece: %v", err)
	}
	embedding, err := offline.NewEmbedder().Embed(w.t.Context(), chunk.Texts)
	if err != nil {
		w.t.Fatal(err)
	}
	return chunk, embedding.Vectors
}

func (w *world) apply(l worker.Lease, chunk worker.Chunk, vectors []model.Vector) worker.Done {
	return w.db.BatchJob().Apply(w.t.Context(), l, chunk, offline.NewEmbedder().Model(), vectors, worker.Work{})
}

// piece applies the piece at the lease's cursor and moves the lease on.
func (w *world) piece(l *worker.Lease) worker.Done {
	w.t.Helper()
	chunk, vectors := w.next(*l)
	done := wantDone(w.t, "apply piece", w.apply(*l, chunk, vectors))
	l.Stage, l.Cursor = task.Committed, done.Cursor
	return done
}

// pieces runs the batch to its end and answers how many pieces it took.
func (w *world) pieces(l worker.Lease) int {
	w.t.Helper()
	for n := 1; n < 100; n++ {
		if w.piece(&l).Ended {
			return n
		}
	}
	w.t.Fatal("the batch doesn't end")
	return 0
}

func numbered(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("fact number %d", i)
	}
	return texts
}

func retexted(ids []uuid.UUID, text string) []command.Change {
	changes := make([]command.Change, len(ids))
	for i, id := range ids {
		changes[i] = command.Change{ID: id, Content: ptr(fmt.Sprintf("%s %d", text, i))}
	}
	return changes
}

func TestBatch(t *testing.T) {
	t.Parallel()
	scope := memory.Scope{UserID: "ada"}

	t.Run("WorksInPiecesOverManyLanes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		var ids []uuid.UUID
		for i := range 5 {
			ids = append(ids, w.remember(memory.Scope{UserID: fmt.Sprint("user ", i)}, numbered(50)...)...)
		}
		receipt := w.batch("k", false, retexted(ids, "new text")...)
		if again := w.batch("k", false, retexted(ids, "new text")...); !again.Replayed || again.EventID != receipt.EventID {
			t.Fatalf("the same batch again: %+v", again)
		}
		l := w.claimKind(receipt.EventID, task.BatchUpdate)
		first := w.piece(&l)
		if first.Ended || first.Cursor != 100 {
			t.Fatalf("first piece %+v", first)
		}
		if e := w.event(receipt.EventID); e.Status != task.EventRunning || len(e.Results) != 0 {
			t.Errorf("event %+v", e)
		}
		if n := w.pieces(l); n != 2 {
			t.Errorf("%d further pieces", n)
		}
		e := w.event(receipt.EventID)
		if e.Status != task.EventSucceeded || e.Outcome != task.Stored || len(e.Results) != 250 {
			t.Fatalf("event %s %s with %d results", e.Status, e.Outcome, len(e.Results))
		}
		for i, r := range e.Results {
			if r.RecordID != ids[i] || r.Change != memory.Updated || *r.Text != fmt.Sprint("new text ", i) || r.Error != "" {
				t.Fatalf("result %d is %+v", i, r)
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM memory_history WHERE event = 'UPDATE' AND version = 2`); n != 250 {
			t.Errorf("%d history rows", n)
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks WHERE command IS NOT NULL`); n != 0 {
			t.Error("the input of the batch is still there")
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
		wantBalance(t, w, 995, 0)
	})

	t.Run("EachItemHasItsOwnResult", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(scope, numbered(4)...)
		mine := w.caller
		w.caller = w.workspace(10)
		foreign := w.remember(scope, "foreign")[0]
		w.caller = mine
		w.change("", command.Change{ID: ids[1], Delete: true})
		w.change("", command.Change{ID: ids[2], Metadata: []byte(`{"a":1}`)})
		receipt := w.batch("", false,
			command.Change{ID: ids[0], Content: ptr("new"), Version: ptr(1)},
			command.Change{ID: ids[1], Content: ptr("late")},
			command.Change{ID: ids[2], Content: ptr("stale"), Version: ptr(1)},
			command.Change{ID: foreign, Content: ptr("theft")},
			command.Change{ID: ids[3], Metadata: []byte(`{"b":2}`), Version: ptr(1)})
		w.pieces(w.claimKind(receipt.EventID, task.BatchUpdate))
		e := w.event(receipt.EventID)
		var codes []string
		for _, r := range e.Results {
			codes = append(codes, string(r.Change)+" "+r.Error)
		}
		want := []string{"UPDATE ", "NONE MEMORY_NOT_FOUND", "NONE VERSION_CONFLICT", "NONE MEMORY_NOT_FOUND", "UPDATE "}
		if !slices.Equal(codes, want) || e.Outcome != task.Stored || e.Results[3].Text != nil {
			t.Fatalf("results %q, outcome %s", codes, e.Outcome)
		}
		if r, err := w.record(ids[3]); err != nil || string(r.Metadata) != `{"b":2}` || r.Text != "fact number 3" {
			t.Errorf("record %+v, %v", r, err)
		}
		if n := one[int64](w, `SELECT count(*) FROM memories WHERE text IN ('late', 'stale', 'theft')`); n != 0 {
			t.Errorf("%d refused changes happened", n)
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
		w.books()
	})

	t.Run("EndsManyAndAgainChangesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 200)
		ids := w.remember(scope, numbered(150)...)
		ends := make([]command.Change, len(ids))
		for i, id := range ids {
			ends[i].ID = id
		}
		first := w.batch("", true, slices.Clone(ends)...)
		w.pieces(w.claimKind(first.EventID, task.BatchDelete))
		if e := w.event(first.EventID); e.Outcome != task.Stored || e.Results[149].Change != memory.Deleted || e.Results[149].Text != nil {
			t.Errorf("event %s %+v", e.Outcome, e.Results[149])
		}
		second := w.batch("", true, ends...)
		w.pieces(w.claimKind(second.EventID, task.BatchDelete))
		if e := w.event(second.EventID); e.Outcome != task.Unchanged || e.Results[0].Error != string(fault.MemoryNotFound) {
			t.Errorf("event %s %+v", e.Outcome, e.Results[0])
		}
		if all := w.memories(scope, 100); len(all) != 0 {
			t.Errorf("%d records are left", len(all))
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
		w.books()
	})

	t.Run("ALostAnswerIsFoundOut", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 300)
		ids := w.remember(scope, numbered(250)...)
		receipt := w.batch("", false, retexted(ids, "new")...)
		l := w.claimKind(receipt.EventID, task.BatchUpdate)
		for want := int64(100); want <= 200; want += 100 {
			chunk, vectors := w.next(l)
			for range 2 { // the second knows nothing of the first
				if done := wantDone(t, "apply", w.apply(l, chunk, vectors)); done.Cursor != want || done.Ended {
					t.Fatalf("done %+v", done)
				}
			}
			l.Stage, l.Cursor = task.Committed, want
		}
		chunk, vectors := w.next(l)
		wantDone(t, "last piece", w.apply(l, chunk, vectors))
		if done := w.apply(l, chunk, vectors); !errorsIs(done.Err, fault.ErrLeaseLost) || !done.Ended {
			t.Fatalf("the last piece again: %+v", done)
		}
		if n := one[int64](w, `SELECT count(*) FROM memories WHERE version <> 2`); n != 0 {
			t.Fatalf("%d records were not changed exactly once", n)
		}
		w.books()
	})

	t.Run("AnotherLeaseGoesOnAtTheCursor", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 300)
		ids := w.remember(scope, numbered(150)...)
		receipt := w.batch("", false, retexted(ids, "new")...)
		old := w.claimKind(receipt.EventID, task.BatchUpdate)
		w.piece(&old)
		chunk, vectors := w.next(old)
		w.advance(2 * time.Minute)
		heir := w.claimKind(receipt.EventID, task.BatchUpdate)
		if heir.Cursor != 100 || heir.Stage != task.Committed {
			t.Fatalf("lease %+v", heir)
		}
		wantLost(t, "apply", w.apply(old, chunk, vectors))
		w.pieces(heir)
		if n := one[int64](w, `SELECT count(*) FROM memories WHERE version = 2`); n != 150 {
			t.Fatalf("%d records have version 2", n)
		}
		w.books()
	})
}

func TestBatchCancel(t *testing.T) {
	t.Parallel()
	scope := memory.Scope{UserID: "ada"}
	cancel := func(w *world, id uuid.UUID) error { return w.canceller().Cancel(w.t.Context(), w.caller, id) }

	t.Run("BeforeTheFirstPieceNothingHappens", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "one")[0]
		receipt := w.batch("", true, command.Change{ID: id})
		for range 2 {
			if err := cancel(w, receipt.EventID); err != nil {
				t.Fatal(err)
			}
		}
		if e := w.event(receipt.EventID); e.Status != task.EventFailed || e.ErrorCode != task.CodeCancelled {
			t.Fatalf("event %+v", e)
		}
		if _, err := w.retrier().Retry(t.Context(), w.caller, receipt.EventID, ptr(1), nil); err != nil {
			t.Fatal(err)
		}
		w.pieces(w.claimKind(receipt.EventID, task.BatchDelete))
		if _, err := w.record(id); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("after the retry: %v", err)
		}
		w.books()
	})

	t.Run("BetweenPiecesItEndsPartial", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 300)
		ids := w.remember(scope, numbered(250)...)
		receipt := w.batch("", false, retexted(ids, "new")...)
		l := w.claimKind(receipt.EventID, task.BatchUpdate)
		w.piece(&l)
		under, vectors := w.next(l) // read before the wish, applied after it
		for range 2 {
			if err := cancel(w, receipt.EventID); err != nil {
				t.Fatal(err)
			}
		}
		if done := wantDone(t, "apply", w.apply(l, under, vectors)); !done.Ended {
			t.Fatalf("done %+v", done)
		}
		e := w.event(receipt.EventID)
		if e.Status != task.EventSucceeded || e.Outcome != task.Partial || len(e.Results) != 100 {
			t.Fatalf("event %s %s with %d results", e.Status, e.Outcome, len(e.Results))
		}
		if n := one[int64](w, `SELECT count(*) FROM memories WHERE version = 2`); n != 100 {
			t.Errorf("%d records were changed", n)
		}
		if err := cancel(w, receipt.EventID); err != nil {
			t.Errorf("a repeat after the end: %v", err)
		}
		w.books()
	})

	t.Run("AWaitingBatchIsDueAtOnceAndEmbedsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 300)
		ids := w.remember(scope, numbered(150)...)
		receipt := w.batch("", false, retexted(ids, "new")...)
		l := w.claimKind(receipt.EventID, task.BatchUpdate)
		w.piece(&l)
		wantDone(t, "later", w.later(l, task.ProjectionFailed, time.Hour))
		published := len(w.hints.all)
		if err := cancel(w, receipt.EventID); err != nil {
			t.Fatal(err)
		}
		if len(w.hints.all) != published+1 {
			t.Errorf("%d hints", len(w.hints.all)-published)
		}
		l = w.claimKind(receipt.EventID, task.BatchUpdate)
		chunk, vectors := w.next(l)
		if len(chunk.Texts) != 0 {
			t.Errorf("%d texts are to be embedded", len(chunk.Texts))
		}
		wantDone(t, "apply", w.apply(l, chunk, vectors))
		if e := w.event(receipt.EventID); e.Outcome != task.Partial {
			t.Errorf("event %+v", e)
		}
		w.books()
	})

	t.Run("AfterTheEndItIsTooLate", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		receipt := w.batch("", true, command.Change{ID: w.remember(scope, "one")[0]})
		w.pieces(w.claimKind(receipt.EventID, task.BatchDelete))
		if err := cancel(w, receipt.EventID); !fault.Is(err, fault.NotCancellable) {
			t.Fatalf("got %v", err)
		}
	})
}

// TestBatchVectors changes a record's metadata between the reading of a piece and its commit, while the record's
// vector is still being made by somebody else.
func TestBatchVectors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	scope := memory.Scope{UserID: "ada"}
	add := command.Add{Scope: scope}
	for _, text := range numbered(3) {
		add.Messages = append(add.Messages, command.Message{Role: "user", Content: text})
	}
	far := remote{offline.NewEmbedder()}
	written, err := w.writer(far).Write(t.Context(), w.caller, nil, add)
	if err != nil {
		t.Fatal(err)
	}
	ids := stored(written).ids()
	var changes []command.Change
	for _, id := range ids {
		changes = append(changes, command.Change{ID: id, Metadata: []byte(`{"batch":true}`)})
	}
	receipt := w.batch("", false, changes...)
	l := w.claimKind(receipt.EventID, task.BatchUpdate)
	chunk, vectors := w.next(l)
	if len(chunk.Texts) != 3 {
		t.Fatalf("%d texts are to be embedded, want those without vectors", len(chunk.Texts))
	}
	between, err := w.changer(far).Change(t.Context(), w.caller, nil, command.Change{ID: ids[1], Content: ptr("other")})
	if err != nil {
		t.Fatal(err)
	}
	done := wantDone(t, "apply", w.apply(l, chunk, vectors))
	if done.Cursor != 1 || done.Ended {
		t.Fatalf("done %+v", done)
	}
	l.Stage, l.Cursor = task.Committed, done.Cursor
	w.pieces(l)
	leases := []worker.Lease{w.claimKind(written.EventID, task.Add), w.claimKind(between.EventID, task.Update)}
	for _, l := range leases {
		live, err := w.db.Unprojected(t.Context(), l, far.Model())
		if err != nil || len(live) != 0 {
			t.Errorf("%s has %d records to project: %v", l.Kind, len(live), err)
		}
	}
	for _, l := range leases {
		wantDone(t, "settle", w.db.Settle(t.Context(), []worker.Settle{{Lease: l, VectorModel: far.Model()}})[0])
	}
	if n := w.outOfStep(); n != 0 {
		t.Errorf("%d records are out of step", n)
	}
	if r, err := w.record(ids[1]); err != nil || r.Text != "other" || string(r.Metadata) != `{"batch":true}` || r.Version != 3 {
		t.Errorf("record %+v, %v", r, err)
	}
	w.books()
}

// TestBatchesMeet runs batches and single changes over the same records at once: nothing deadlocks, and every change
// that was counted has its version.
func TestBatchesMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	var ids []uuid.UUID
	for i := range 6 {
		ids = append(ids, w.remember(memory.Scope{UserID: fmt.Sprint(i)}, numbered(10)...)...)
	}
	together(6, func(i int) {
		if i%2 == 1 {
			for j := range 20 {
				if _, err := w.try("", command.Change{ID: ids[(i*7+j*3)%len(ids)], Content: ptr("single")}); err != nil {
					t.Errorf("single change: %v", err)
				}
			}
			return
		}
		changes := retexted(ids, "batch")
		slices.Reverse(changes[i*5:])
		w.pieces(w.claimKind(w.batch("", false, changes...).EventID, task.BatchUpdate))
	})
	if n := one[int64](w, `SELECT count(*) FROM memories m WHERE version <> (SELECT count(*) FROM memory_history h WHERE h.memory_id = m.id)`); n != 0 {
		t.Errorf("%d records have another version than changes", n)
	}
	if n := one[int64](w, `SELECT count(*) FROM memory_history`); n != 60+60+3*60 {
		t.Errorf("%d changes", n)
	}
	if n := w.outOfStep(); n != 0 {
		t.Errorf("%d records are out of step", n)
	}
	w.books()
	w.sound()
}

// TestWalks reads lists page by page while others write: what was there at the start comes exactly once.
func TestWalks(t *testing.T) {
	t.Parallel()
	const n = 1_001
	writing := func(t *testing.T, w *world, scope func(i int) memory.Scope) {
		t.Helper()
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; ctx.Err() == nil; i++ {
				add := command.Add{Scope: scope(i), Messages: []command.Message{{Role: "user", Content: fmt.Sprint("late ", i)}}}
				if _, err := w.writer(offline.NewEmbedder()).Write(ctx, w.caller, nil, add); err != nil && ctx.Err() == nil {
					t.Errorf("write: %v", err)
					return
				}
			}
		}()
		t.Cleanup(func() {
			stop()
			<-ended
		})
	}

	t.Run("Memories", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000_000)
		scope := memory.Scope{UserID: "ada"}
		want := map[uuid.UUID]bool{}
		for len(want) < n {
			for _, id := range w.remember(scope, numbered(min(n-len(want), 91))...) {
				want[id] = true
			}
			// The same texts again would be repeats.
			w.exec(`UPDATE memories SET text = text || ' ' || id, content_key = sha256(id::text::bytea)`)
		}
		writing(t, w, func(int) memory.Scope { return scope })
		seen := map[uuid.UUID]int{}
		for _, r := range w.memories(scope, 37) {
			seen[r.ID]++
		}
		found := 0
		for id, times := range seen {
			if times != 1 {
				t.Fatalf("%s came %d times", id, times)
			}
			if want[id] {
				found++
			}
		}
		if found != n {
			t.Fatalf("%d of %d came back", found, n)
		}
	})

	t.Run("Entities", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000_000)
		w.exec(`
INSERT INTO memories (id, workspace_id, task_id, user_id, agent_id, lane, text, content_key, accepted_at, said_at, valid_from, created_at, updated_at)
SELECT gen_random_uuid(), $1, gen_random_uuid(), 'user ' || i, CASE WHEN i % 2 = 0 THEN 'agent ' || i END, sha256(i::text::bytea),
       'x', sha256('x'), now(), now(), now(), now(), now()
  FROM generate_series(1, $2) i, generate_series(1, 2)`, w.caller.Workspace.ID, n)
		w.exec(`UPDATE memories SET valid_to = now() WHERE user_id = 'user 1'`)
		w.exec(`UPDATE memories SET deleted_at = now() WHERE user_id = 'user 2'`)
		w.exec(`ANALYZE memories`)
		writing(t, w, func(i int) memory.Scope { return memory.Scope{UserID: fmt.Sprint("late ", i), RunID: "run"} })
		seen := map[recall.EntityType]map[string]int64{}
		query := recall.EntityQuery{Limit: 37}
		for range 1000 {
			page, err := w.db.Entities(t.Context(), w.caller.Workspace.ID, query)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Entities {
				if seen[e.Type] == nil {
					seen[e.Type] = map[string]int64{}
				}
				if _, again := seen[e.Type][e.ID]; again {
					t.Fatalf("%s %s came twice", e.Type, e.ID)
				}
				seen[e.Type][e.ID] = e.Memories
			}
			if query.After = page.Next; page.Next == nil {
				break
			}
		}
		users, agents := 0, 0
		for i := 1; i <= n; i++ {
			if seen[recall.User][fmt.Sprint("user ", i)] == 2 {
				users++
			}
			if seen[recall.Agent][fmt.Sprint("agent ", i)] == 2 {
				agents++
			}
		}
		if users != n-2 || agents != n/2-1 {
			t.Fatalf("%d users and %d agents, want %d and %d", users, agents, n-2, n/2-1)
		}
		only, err := w.db.Entities(t.Context(), w.caller.Workspace.ID, recall.EntityQuery{Type: recall.Agent, Limit: 10})
		if err != nil || len(only.Entities) != 10 || only.Entities[0].Type != recall.Agent {
			t.Errorf("agents only: %+v, %v", only, err)
		}
		if e, err := w.db.Entity(t.Context(), w.caller.Workspace.ID, recall.User, "user 7"); err != nil || e.Memories != 2 {
			t.Errorf("entity %+v, %v", e, err)
		}
		for _, gone := range []string{"user 1", "user 2", "nobody"} {
			if e, err := w.db.Entity(t.Context(), w.caller.Workspace.ID, recall.User, gone); !fault.Is(err, fault.MemoryNotFound) {
				t.Errorf("%s: %+v, %v", gone, e, err)
			}
		}
	})
}

// TestHistory reads the changes of one record page by page.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	id := w.remember(memory.Scope{UserID: "ada"}, "version 1")[0]
	for v := 2; v <= 12; v++ {
		w.change("", command.Change{ID: id, Content: ptr(fmt.Sprint("version ", v))})
	}
	var all []memory.HistoryEntry
	query := recall.HistoryQuery{Memory: id, Limit: 5}
	for range 10 {
		page, err := w.db.History(t.Context(), w.caller.Workspace.ID, query)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Entries...)
		if query.After = page.Next; page.Next == nil {
			break
		}
	}
	if len(all) != 12 {
		t.Fatalf("%d entries", len(all))
	}
	for i, h := range all {
		if h.Version != i+1 || *h.NewText != fmt.Sprint("version ", i+1) || h.MemoryID != id || (h.OldText == nil) != (i == 0) {
			t.Errorf("entry %d is %+v", i, h)
		}
	}
}

// TestEntitiesPlan reads one page out of many records: no more of them than the page needs.
func TestEntitiesPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.fill(20_000) // ten users of two thousand records each
	plan := w.plan(postgres.EntitiesSQL(), pgx.NamedArgs{
		"workspace": w.caller.Workspace.ID, "after": "user-1", "limit": 1, "now": nil,
	})
	if !strings.Contains(plan, "memories_user") || strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort") {
		t.Fatalf("the page is not read along its index:\n%s", plan)
	}
}
