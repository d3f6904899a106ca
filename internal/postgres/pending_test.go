package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func (w *world) limit(most int) {
	w.t.Helper()
	w.exec(`UPDATE workspaces SET max_pending = $2 WHERE id = $1`, w.caller.Workspace.ID, most)
}

func (w *world) tryAccept(db *postgres.DB, caller access.Caller, k string) error {
	w.t.Helper()
	_, err := w.accepter(db).Accept(context.Background(), caller, key(w.t, k), say("u", k))
	return err
}

func TestMaxPending(t *testing.T) {
	t.Parallel()
	t.Run("AFullWorkspaceConsumesNothingAndItsReplaysAreAnswered", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.frozen()
		w.limit(3)
		first := w.accept(keyName(0), say("u", keyName(0)))
		w.accept(keyName(1), say("u", keyName(1)))
		w.accept(keyName(2), say("u", keyName(2)))
		for range 2 { // by a count, and by what it found
			err := w.tryAccept(w.db, w.caller, "more")
			refusal, _ := errors.AsType[*fault.Error](err)
			if !fault.Is(err, fault.TooManyPending) || refusal.Details["limit"] != 3 || refusal.RetryAfter < time.Second {
				t.Fatalf("the fourth: %v", err)
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM idempotency_keys`); n != 3 {
			t.Errorf("%d keys", n)
		}
		wantBalance(t, w, 94, 6)
		if again := w.accept(keyName(0), say("u", keyName(0))); again != first {
			t.Error("another receipt")
		}
		wantDone(t, "commit", w.commit(w.mustClaim(first), "fact"))
		w.advance(time.Second)
		if err := w.tryAccept(w.db, w.caller, "more"); err != nil {
			t.Errorf("with room again: %v", err)
		}
	})
	t.Run("ALimitIsItsWorkspacesAlone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.limit(1)
		other := w.workspace(100)
		w.accept("k", say("u", "a"))
		if err := w.tryAccept(w.db, w.caller, "more"); !fault.Is(err, fault.TooManyPending) {
			t.Fatal(err)
		}
		for i := range 5 {
			if err := w.tryAccept(w.db, other, keyName(i)); err != nil {
				t.Errorf("another workspace: %v", err)
			}
		}
	})
	t.Run("TheServicesLimitHoldsWithoutOne", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		db, err := postgres.Open(t.Context(), postgres.Config{URL: w.url, MaxPending: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		taken := 0
		for i := range 5 {
			if err := w.tryAccept(db, w.caller, keyName(i)); err == nil {
				taken++
			} else if !fault.Is(err, fault.TooManyPending) {
				t.Error(err)
			}
		}
		if taken != 2 {
			t.Errorf("%d were taken", taken)
		}
		w.limit(100)
		if err := w.tryAccept(w.db, w.caller, "own"); err != nil {
			t.Error(err)
		}
		if _, err := postgres.Open(t.Context(), postgres.Config{URL: w.url, MaxPending: -1}); err == nil {
			t.Error("a negative limit was taken")
		}
	})
	t.Run("EightProcessesInTurnStopAtTheLimit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000)
		w.frozen()
		w.limit(100)
		var processes []*postgres.DB
		for range 8 {
			processes = append(processes, w.open(w.url))
		}
		for i := range 160 {
			if err := w.tryAccept(processes[i%8], w.caller, keyName(i)); err != nil && !fault.Is(err, fault.TooManyPending) {
				t.Fatal(err)
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks`); n != 100 {
			t.Errorf("%d tasks", n)
		}
	})
	t.Run("AtOnceNoMoreThanThePoolTwiceCanGetPast", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000)
		w.limit(10)
		var taken atomic.Int64
		together(80, func(i int) {
			switch err := w.tryAccept(w.db, w.caller, keyName(i)); {
			case err == nil:
				taken.Add(1)
			case !fault.Is(err, fault.TooManyPending):
				t.Error(err)
			}
		})
		// Beyond the limit come those that are under way while one of them counts, and what the counts of that moment give away.
		if n := taken.Load(); n < 10 || n > 10+2*16 || n != one[int64](w, `SELECT count(*) FROM tasks`) {
			t.Errorf("%d were taken", n)
		}
	})
	t.Run("CountsWithoutARoundTripOfItsOwn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.frozen()
		w.limit(50)
		proxy := testkit.CommitCutProxy(t, w.url)
		db, err := postgres.Open(t.Context(), postgres.Config{URL: proxy.URL(), MaxConns: 1, Now: w.clock.Load})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		trips := int64(0)
		for i := range 3 { // the first prepares the statements
			w.advance(time.Minute)
			before := proxy.RoundTrips()
			if err := w.tryAccept(db, w.caller, keyName(i)); err != nil {
				t.Fatal(err)
			}
			trips = proxy.RoundTrips() - before
		}
		if trips != 3 { // BEGIN, gate and key; count, lane, task and hold; COMMIT
			t.Errorf("%d round trips", trips)
		}
	})
}

// TestMaxPendingKinds has a full workspace refuse everything that queues, and nothing else.
func TestMaxPendingKinds(t *testing.T) {
	t.Parallel()
	w := newItemWorld(t, 100)
	w.frozen()
	failed := w.accept("failed", say("v", "a"))
	wantDone(t, "fail", w.fail(w.mustClaim(failed), task.ExtractionRejected))
	stored := w.remember(say("u", "").Scope, "a fact")[0]
	w.limit(1)
	kept := w.keep(input("1", "one"))
	if kept.Queued != 1 {
		t.Fatalf("kept %+v", kept)
	}
	w.advance(time.Minute)
	refused := func(what string, err error) {
		t.Helper()
		if !fault.Is(err, fault.TooManyPending) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := w.try("", input("2", "two"))
	refused("an item", err)
	again, err := w.try("", input("1", "one"))
	if err != nil || again.Queued != 0 {
		t.Errorf("the same item again: %+v, %v", again, err)
	}
	refused("an add", w.tryAccept(w.db, w.caller, "k"))
	generation := 1
	_, err = w.retrier().Retry(t.Context(), w.caller, failed, &generation, nil)
	refused("a retry", err)
	batcher, err := write.NewBatcher(w.db, w.hints, credit.DefaultPrices())
	if err != nil {
		t.Fatal(err)
	}
	_, err = batcher.Accept(t.Context(), w.caller, nil, command.Batch{Delete: true, Changes: []command.Change{{ID: stored, Delete: true}}})
	refused("a batch", err)
	mover, err := write.NewMover(w.db, w.db, w.hints)
	if err != nil {
		t.Fatal(err)
	}
	_, err = mover.Export(t.Context(), w.caller, nil)
	refused("an export", err)
	if n := one[int64](w.world, `SELECT count(*) FROM tasks WHERE status = 'pending' AND stage = 'accepted'`); n != 1 {
		t.Errorf("%d tasks wait", n)
	}
	w.remember(say("u", "").Scope, "at once")
	w.erase("erase")
}

// TestWaitingReceivers has deliveries to receivers outside wait without taking the workspace's room.
func TestWaitingReceivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	w.limit(2)
	w.accept("k", say("u", "a"))
	w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, command, payload_format, accepted_at, updated_at)
SELECT gen_random_uuid(), workspace_id, 'webhook_delivery', 'pending', 'accepted', run_after, hint_at, 'bulk', command, 1, accepted_at, updated_at
  FROM tasks, generate_series(1, 10)`)
	w.accept("k2", say("u", "b"))
}

// TestCountPending counts through the index of what waits, and never more than the limit.
func TestCountPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	w.limit(1_000)
	w.accept("k", say("u", "a"))
	w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, lane_seq, priority, command, payload_format,
                   accepted_at, updated_at)
SELECT gen_random_uuid(), t.workspace_id, t.kind, 'pending', 'accepted', t.run_after, t.hint_at, t.user_id, t.lane, n + 1, t.priority,
       t.command, 1, t.accepted_at, t.updated_at
  FROM tasks t, generate_series(1, 50000) n`)
	w.exec(`ANALYZE tasks`)
	plan := w.plan(postgres.CountPendingSQL, pgx.NamedArgs{"workspace": w.caller.Workspace.ID, "standard": 0})
	if !strings.Contains(plan, "tasks_open") || strings.Contains(plan, "Seq Scan on tasks") {
		t.Errorf("the plan:\n%s", plan)
	}
	if n := buffers(t, plan); n > 1_200 { // none of the pages is known to be all visible here
		t.Errorf("%d pages:\n%s", n, plan)
	}
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	t.Run("CountsSeldomUntilThereIsLittleRoom", func(t *testing.T) {
		t.Parallel()
		b, id := postgres.NewBacklog(), uuid.New()
		const most = 10_000
		taken, counts := 0, 0
		for range most + 100 {
			count, err := b.Admit(id, 1, now)
			if count {
				counts++
				err = b.Counted(id, 1, most, taken, now)
			}
			if err == nil {
				taken++
			}
		}
		if taken != most || counts > 100 {
			t.Errorf("%d taken with %d counts", taken, counts)
		}
	})
	t.Run("OneCountsForAllWhenACountIsTooOld", func(t *testing.T) {
		t.Parallel()
		b, id := postgres.NewBacklog(), uuid.New()
		if err := b.Counted(id, 1, 1_000, 0, now); err != nil {
			t.Fatal(err)
		}
		later := now.Add(time.Second)
		for i := range 10 {
			if count, err := b.Admit(id, 1, later); count != (i == 0) || err != nil {
				t.Errorf("the one of place %d: %t, %v", i, count, err)
			}
		}
	})
	t.Run("LargeCountsAreGoodForLonger", func(t *testing.T) {
		t.Parallel()
		b, id := postgres.NewBacklog(), uuid.New()
		if err := b.Counted(id, 1, 2_000_000, 1_000_000, now); err != nil {
			t.Fatal(err)
		}
		if count, err := b.Admit(id, 1, now.Add(99*time.Second)); count || err != nil {
			t.Errorf("%t, %v", count, err)
		}
		if count, err := b.Admit(id, 1, now.Add(100*time.Second)); !count || err != nil {
			t.Errorf("%t, %v", count, err)
		}
	})
	t.Run("ACountThatWasOvertakenChangesNothing", func(t *testing.T) {
		t.Parallel()
		b, id := postgres.NewBacklog(), uuid.New()
		if err := b.Counted(id, 1, 100, 100, now.Add(time.Millisecond)); !fault.Is(err, fault.TooManyPending) {
			t.Fatal(err)
		}
		if err := b.Counted(id, 1, 100, 0, now); err != nil { // it has its own room
			t.Fatal(err)
		}
		if _, err := b.Admit(id, 1, now.Add(2*time.Millisecond)); !fault.Is(err, fault.TooManyPending) {
			t.Errorf("a full workspace: %v", err)
		}
	})
	t.Run("ManyTasksAtOnceNeedRoomForAll", func(t *testing.T) {
		t.Parallel()
		b, id := postgres.NewBacklog(), uuid.New()
		if err := b.Counted(id, 500, 1_000, 600, now); !fault.Is(err, fault.TooManyPending) {
			t.Fatal(err)
		}
		if count, err := b.Admit(id, 1, now); err != nil || count { // fewer still fit
			t.Errorf("%t, %v", count, err)
		}
	})
	t.Run("KnowsABoundedNumberOfWorkspaces", func(t *testing.T) {
		t.Parallel()
		b := postgres.NewBacklog()
		for range 25_000 {
			if err := b.Counted(uuid.New(), 1, 10, 0, now); err != nil {
				t.Fatal(err)
			}
		}
		if b.Known() > 10_000 {
			t.Errorf("%d are known", b.Known())
		}
	})
}
