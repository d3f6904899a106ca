package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// feedPatience bounds the waits for the horizon: other tests' transactions on the shared server hold it back for moments.
const feedPatience = time.Minute

// feed reads one page of the world's feed.
func (w *world) feed(after *task.FeedPlace, limit int) task.FeedPage {
	w.t.Helper()
	page, err := w.db.Feed(w.t.Context(), w.caller.Workspace.ID, after, limit)
	if err != nil {
		w.t.Fatalf("feed: %v", err)
	}
	return page
}

// told reads on from a place, in pages of limit, until n entries have been told, and checks that places only grow.
func (w *world) told(after task.FeedPlace, n, limit int) ([]task.FeedEntry, task.FeedPlace) {
	w.t.Helper()
	var all []task.FeedEntry
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(feedPatience); len(all) < n && time.Now().Before(deadline); {
		page := w.feed(&after, limit)
		for _, e := range page.Entries {
			if !before(after, e.Place) || before(page.Next, e.Place) {
				w.t.Fatalf("entry %+v is not between %+v and %+v", e.Place, after, page.Next)
			}
			after = e.Place
		}
		all = append(all, page.Entries...)
		if before(page.Next, after) {
			w.t.Fatalf("the next place %+v lies before %+v", page.Next, after)
		}
		if after = page.Next; !page.More {
			<-tick.C
		}
	}
	if len(all) != n {
		w.t.Fatalf("told %d entries, want %d: %+v", len(all), n, all)
	}
	return all, after
}

func before(a, b task.FeedPlace) bool {
	if a.XID != b.XID {
		return a.XID < b.XID
	}
	if c := slices.Compare(a.TaskID[:], b.TaskID[:]); c != 0 {
		return c < 0
	}
	return a.Generation < b.Generation || a.Generation == b.Generation && a.Claim < b.Claim
}

// wantTold compares entries with "outcome task" in order.
func wantTold(t testing.TB, got []task.FeedEntry, want ...string) {
	t.Helper()
	var words []string
	for _, e := range got {
		words = append(words, fmt.Sprint(e.Outcome, " ", e.Place.TaskID))
		if e.Kind == "" || e.At.IsZero() {
			t.Errorf("entry without kind or time: %+v", e)
		}
	}
	if !slices.Equal(words, want) {
		t.Fatalf("told %q, want %q", words, want)
	}
}

// closeIn ends n made-up runs inside one transaction, as the last step of a use case does.
func (w *world) closeIn(ctx context.Context, tx pgx.Tx, n int) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.New()
		for _, sql := range []string{
			`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, outcome, accepted_at,
			                    updated_at, completed_at)
			 SELECT $1, $2, 'memory_infer', 'succeeded', 'projected', t, t, 'interactive', 1, 'STORED', t, t, t FROM clock_timestamp() t`,
			`INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
			 VALUES ($1, 1, $2, 0, 'succeeded', clock_timestamp())`,
			`INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
			 VALUES ($1, 1, $2, 'succeeded', 0, 0, 0, clock_timestamp())`,
		} {
			if _, err := tx.Exec(ctx, sql, ids[i], w.caller.Workspace.ID); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

func (w *world) begin() pgx.Tx {
	w.t.Helper()
	tx, err := w.sql.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(w.t.Context())) })
	return tx
}

func TestFeed(t *testing.T) {
	t.Parallel()
	t.Run("TellsEndsAndRetriesInTheirOrder", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "later", w.later(w.mustClaim(id), task.ProviderTimeout, 0))
		wantDone(t, "give back", w.later(w.mustClaim(id), "", 0))
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid)) // the expired claim was a crash
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, ptr(1), nil); err != nil {
			t.Fatal(err)
		}
		wantDone(t, "complete", w.complete(w.mustClaim(id), "a"))
		free, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, nil,
			command.Add{Scope: say("v", "").Scope, Messages: []command.Message{{Role: "user", Content: "b"}}})
		if err != nil {
			t.Fatal(err)
		}
		got, end := w.told(task.FeedPlace{}, 5, 100)
		wantTold(t, got, "retrying "+id.String(), "retrying "+id.String(), "failed "+id.String(), "succeeded "+id.String(),
			"succeeded "+free.EventID.String())
		if got[2].Place.Generation != 1 || got[3].Place.Generation != 2 || got[3].Kind != task.Infer || got[4].Kind != task.Add ||
			got[0].Place.Claim != 1 || got[3].Place.Claim != 0 {
			t.Fatalf("entries %+v", got)
		}
		one, _ := w.told(task.FeedPlace{}, 5, 1)
		if !slices.Equal(one, got) {
			t.Fatalf("page by page %+v, want %+v", one, got)
		}
		if rest := w.feed(&end, 10); len(rest.Entries) != 0 || rest.More {
			t.Fatalf("told again: %+v", rest)
		}
	})
	t.Run("ACrashThatEndsItsRunIsItsEnd", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		if moved, err := w.db.Exhaust(t.Context(), id, 1); err != nil || moved == nil {
			t.Fatal(moved, err)
		}
		next := w.accept("k2", say("u", "b"))
		wantDone(t, "complete", w.complete(w.mustClaim(next), "b"))
		got, _ := w.told(task.FeedPlace{}, 2, 100)
		wantTold(t, got, "failed "+id.String(), "succeeded "+next.String())
	})
	t.Run("PagesMayEndInsideATransaction", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		var all []uuid.UUID
		for range 2 {
			tx := w.begin()
			ids, err := w.closeIn(t.Context(), tx, 7)
			if err != nil || tx.Commit(t.Context()) != nil {
				t.Fatal(err)
			}
			all = append(all, ids...)
		}
		for _, limit := range []int{1, 2, 3, 7, 100} {
			got, _ := w.told(task.FeedPlace{}, 14, limit)
			for i, e := range got {
				if !slices.Contains(all[i/7*7:i/7*7+7], e.Place.TaskID) {
					t.Fatalf("limit %d: entry %d is of another transaction or told twice", limit, i)
				}
			}
		}
	})
	t.Run("WhatIsRetiredOrADeliveryIsPassedOver", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		tx := w.begin()
		ids, err := w.closeIn(t.Context(), tx, 4)
		if err != nil || tx.Commit(t.Context()) != nil {
			t.Fatal(err)
		}
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		w.exec(`DELETE FROM tasks WHERE id = $1`, ids[0])
		w.exec(`UPDATE tasks SET kind = 'webhook_delivery' WHERE id = $1`, ids[1])
		if err := w.move(ids[2], "tasks", "tasks_archive"); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{1, 100} {
			got, _ := w.told(task.FeedPlace{}, 2, limit)
			wantTold(t, got, "succeeded "+ids[2].String(), "succeeded "+ids[3].String())
		}
	})
	t.Run("OfOtherWorkspacesNothingIsTold", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		stranger := *w
		stranger.caller = w.workspace(100)
		wantDone(t, "complete", stranger.complete(w.mustClaim(stranger.accept("k", say("u", "a"))), "a"))
		stranger.told(task.FeedPlace{}, 1, 10)
		if page := w.feed(&task.FeedPlace{}, 10); len(page.Entries) != 0 {
			t.Fatalf("told %+v", page)
		}
	})
	t.Run("APlaceAheadIsAnotherDatabases", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		now := w.feed(nil, 10)
		if now.Next.XID == 0 || len(now.Entries) != 0 || now.More {
			t.Fatalf("now is %+v", now)
		}
		w.feed(&now.Next, 10)
		for _, place := range []task.FeedPlace{{XID: now.Next.XID + 1<<40}, {XID: 1<<64 - 1, Claim: 3}} {
			if _, err := w.db.Feed(t.Context(), w.caller.Workspace.ID, &place, 10); !fault.Is(err, fault.InvalidCursor) {
				t.Fatalf("place %+v: %v", place, err)
			}
		}
	})
	t.Run("IsReadInsideATransactionToo", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "complete", w.complete(w.mustClaim(id), "a"))
		got, _ := w.told(task.FeedPlace{}, 1, 10)
		page, err := w.db.FeedInTx(t.Context(), w.caller.Workspace.ID, &task.FeedPlace{}, 10)
		if err != nil || !slices.Equal(page.Entries, got) {
			t.Fatalf("told %+v, want %+v: %v", page.Entries, got, err)
		}
		if _, err := w.db.FeedInTx(t.Context(), w.caller.Workspace.ID, &task.FeedPlace{XID: 1 << 60}, 10); !fault.Is(err, fault.InvalidCursor) {
			t.Fatalf("a place ahead: %v", err)
		}
	})
}

// TestFeedLateCommit holds a transaction open that has ended a run, with an early time and an early id, while later ones
// commit. A reader in the order of either would be told the later ones, move on, and never see the early one.
func TestFeedLateCommit(t *testing.T) {
	t.Parallel()
	t.Run("IsToldBeforeWhatOvertookIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		from := w.feed(nil, 1).Next
		late := w.begin()
		lateIDs, err := w.closeIn(t.Context(), late, 1)
		if err != nil {
			t.Fatal(err)
		}
		early := w.begin()
		earlyIDs, err := w.closeIn(t.Context(), early, 1)
		if err != nil || early.Commit(t.Context()) != nil {
			t.Fatal(err)
		}
		page := w.feed(&from, 10)
		if len(page.Entries) != 0 || page.More {
			t.Fatalf("told %+v while an earlier transaction is open: its own end would be skipped", page.Entries)
		}
		if page.Held <= 0 {
			t.Fatal("the page doesn't say that something is held back")
		}
		if err := late.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, end := w.told(page.Next, 2, 10)
		wantTold(t, got, "succeeded "+lateIDs[0].String(), "succeeded "+earlyIDs[0].String())
		if !got[0].At.Before(got[1].At) {
			t.Fatal("the test shows nothing: a reader by time would have met them in the order of their commits")
		}
		if rest := w.feed(&end, 10); rest.Held != 0 || len(rest.Entries) != 0 {
			t.Fatalf("afterwards %+v", rest)
		}
	})
	t.Run("IsToldToWhoBeganMeanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		late := w.begin()
		ids, err := w.closeIn(t.Context(), late, 1)
		if err != nil {
			t.Fatal(err)
		}
		now := w.feed(nil, 1).Next
		if err := late.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, _ := w.told(now, 1, 10)
		wantTold(t, got, "succeeded "+ids[0].String())
	})
	t.Run("OneOfManyAtOnceIsNeverSkipped", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		from := w.feed(nil, 1).Next
		const writers, each = 6, 40
		ended := make(chan []uuid.UUID, writers*each)
		var group sync.WaitGroup
		for n := range writers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 7))
				for range each {
					ids, err := w.slowly(random)
					if err != nil {
						t.Error(err)
						return
					}
					ended <- ids
				}
			})
		}
		go func() {
			group.Wait()
			close(ended)
		}()
		seen := map[uuid.UUID]int{}
		for committed := range ended { // reads while the writers write
			page := w.feed(&from, 3)
			from = page.Next
			for _, e := range page.Entries {
				seen[e.Place.TaskID]++
			}
			for _, id := range committed {
				seen[id] += 0
			}
		}
		missing := 0
		for _, n := range seen {
			if n == 0 {
				missing++
			}
		}
		rest, _ := w.told(from, missing, 3)
		for _, e := range rest {
			seen[e.Place.TaskID]++
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s was told %d times", id, n)
			}
		}
	})
}

// slowly ends some runs in a transaction that does more before it commits, or rolls back.
func (w *world) slowly(random *rand.Rand) ([]uuid.UUID, error) {
	ctx := w.t.Context()
	tx, err := w.sql.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	ids, err := w.closeIn(ctx, tx, 1+random.IntN(3))
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `SELECT pg_sleep($1)`, random.Float64()*0.02); err != nil {
		return nil, err
	}
	if random.IntN(5) == 0 {
		return nil, tx.Rollback(ctx)
	}
	return ids, tx.Commit(ctx)
}

// TestFeedEvents reads the events that a feed tells of all at once: each is what it is when it is read alone.
func TestFeedEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	w.frozen()
	stored, waiting := w.accept("k1", say("u", "a")), w.accept("k2", say("v", "b"))
	wantDone(t, "complete", w.complete(w.mustClaim(stored), "a", "b"))
	archived := w.accept("k3", say("w", "c"))
	wantDone(t, "fail", w.fail(w.mustClaim(archived), task.ExtractionRejected))
	w.exec(`UPDATE tasks SET command = NULL WHERE id = $1`, archived)
	if err := w.move(archived, "tasks", "tasks_archive"); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE memories SET deleted_at = now(), text = '' WHERE text = 'a'`)
	stranger := w.workspace(100)
	reader := w.db.EventReader(maxAttempts)
	ids := []uuid.UUID{stored, waiting, archived, uuid.New()}
	found, err := reader.EventsByID(t.Context(), w.caller.Workspace.ID, ids)
	if err != nil || len(found) != 3 {
		t.Fatalf("found %d events: %v", len(found), err)
	}
	for _, id := range ids[:3] {
		if alone := w.event(id); !reflect.DeepEqual(alone, found[id]) {
			t.Errorf("read together %+v, alone %+v", found[id], alone)
		}
	}
	if results := found[stored].Results; len(results) != 2 || results[0].Text != nil || *results[1].Text != "b" {
		t.Errorf("results %+v", results)
	}
	if found, err := reader.EventsByID(t.Context(), stranger.Workspace.ID, ids); err != nil || len(found) != 0 {
		t.Errorf("another workspace finds %v: %v", found, err)
	}
}

// TestFeedPlans holds that a page costs the same whatever has gathered before and behind its place: 200,000 ends and
// 100,000 retries of one workspace, a thousand of each in one transaction.
func TestFeedPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	for _, sql := range []string{
		`CREATE TABLE filled AS SELECT gen_random_uuid() AS id, n FROM generate_series(1, 200000) n`,
		`INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, outcome,
		                            accepted_at, updated_at, completed_at)
		 SELECT id, $1, 'memory_infer', 'succeeded', 'projected', now(), now(), 'interactive', 1, 'STORED', now(), now(), now() FROM filled`,
		`WITH r AS (INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
		            SELECT id, 1, $1, 0, 'succeeded', now() FROM filled)
		 INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at, xid)
		 SELECT id, 1, $1, 'succeeded', 0, 0, 0, now(), (1 + n / 1000)::text::xid8 FROM filled`,
		`INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, xid)
		 SELECT id, n % 3 + 1, $1, 1, 'w', now(), now(), CASE n % 2 WHEN 0 THEN 'retry' ELSE 'succeeded' END,
		        (1 + n / 1000)::text::xid8 FROM filled`,
	} {
		if _, err := w.sql.Exec(t.Context(), sql, argsOf(sql, w.caller.Workspace.ID)...); err != nil {
			t.Fatal(err)
		}
	}
	for _, analysed := range []bool{false, true} {
		if analysed {
			w.exec(`ANALYZE`)
		}
		for name, place := range map[string]*task.FeedPlace{
			"beginning": {}, "middle": {XID: 100, TaskID: uuid.Max, Generation: 1}, "inside": {XID: 100, TaskID: uuid.UUID{0x80}},
			"end": {XID: 201, TaskID: uuid.Max}, "now": nil,
		} {
			plan := w.plan(postgres.FeedSQL, postgres.FeedArgs(w.caller.Workspace.ID, place, 100))
			// 100 entries: their rows of two tables, and their tasks by three pages of each of two indexes and a row.
			if n := buffers(t, plan); n > 1300 {
				t.Errorf("analysed %v, %s: a page of 100 touches %d pages:\n%s", analysed, name, n, plan)
			}
		}
	}
}

func argsOf(sql string, workspace uuid.UUID) []any {
	if len(sql) > 0 && sql[:6] == "CREATE" {
		return nil
	}
	return []any{workspace}
}
