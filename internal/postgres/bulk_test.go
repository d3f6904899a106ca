package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func (w *world) bulk() *write.Bulk {
	w.t.Helper()
	b, err := write.NewBulk(w.db, w.retrier(), w.canceller(), credit.DefaultPrices())
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// failed is an event that has failed with that class.
func (w *world) failed(k, user string, class task.Class) uuid.UUID {
	w.t.Helper()
	id := w.accept(k, say(user, k))
	wantDone(w.t, "fail", w.fail(w.mustClaim(id), class))
	return id
}

// lately chooses what came to it within the last day.
func (w *world) lately(act write.BulkAct, code string) write.BulkChoice {
	w.t.Helper()
	return write.BulkChoice{Act: act, Code: code, Since: one[time.Time](w, `SELECT clock_timestamp() - interval '1 day'`)}
}

func (w *world) preview(choice write.BulkChoice) write.BulkPreview {
	w.t.Helper()
	p, err := w.bulk().Preview(w.t.Context(), w.caller.Workspace.ID, choice)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) uuids(sql string) []uuid.UUID {
	w.t.Helper()
	rows, err := w.sql.Query(w.t.Context(), sql)
	if err != nil {
		w.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// run runs all pages of the bulk.
func (w *world) run(id uuid.UUID, choice write.BulkChoice) (done, before int, refused map[string]int) {
	w.t.Helper()
	refused = map[string]int{}
	var after *write.BulkPlace
	for {
		page, err := w.bulk().Run(w.t.Context(), w.caller.Workspace.ID, id, choice, after)
		if err != nil {
			w.t.Fatal(err)
		}
		done, before = done+page.Done, before+page.Before
		for code, n := range page.Refused {
			refused[code] += n
		}
		if after = page.Next; after == nil {
			return done, before, refused
		}
	}
}

// TestBulkRetry holds that a bulk retries what is meant, each event once, and says what it could not.
func TestBulkRetry(t *testing.T) {
	t.Parallel()

	t.Run("RetriesWhatIsMeantAndNothingElse", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		long := w.failed("long-ago", "u0", task.ProviderUnavailable)
		w.exec(`UPDATE tasks SET completed_at = completed_at - interval '3 days' WHERE id = $1`, long)
		for i := range 3 {
			w.failed(fmt.Sprint("down-", i), fmt.Sprint("u", i), task.ProviderUnavailable)
		}
		w.failed("other-class", "u4", task.OutputInvalid)
		gone := w.failed("gone", "u5", task.ProviderUnavailable)
		w.exec(`UPDATE tasks SET command = NULL WHERE id = $1`, gone)
		ended := w.accept("cancelled", say("u6", "c"))
		if err := w.canceller().Cancel(t.Context(), w.caller, ended); err != nil {
			t.Fatal(err)
		}
		neighbour := w.caller
		w.caller = w.workspace(100)
		theirs := w.failed("theirs", "u1", task.ProviderUnavailable)
		w.caller = neighbour

		choice := w.lately(write.BulkRetry, "PROVIDER_unavailable")
		p := w.preview(choice)
		if p.Count != 3 || p.Credits != 6 || p.Gone != 1 || p.More || len(p.Lines) != 1 || p.Lines[0].Class != task.ProviderUnavailable {
			t.Fatalf("%+v", p)
		}
		if all := w.preview(w.lately(write.BulkRetry, "")); all.Count != 4 || len(all.Lines) != 2 {
			t.Fatalf("all but what was cancelled: %+v", all)
		}
		choice.Until, choice.Scope = p.Until, memory.Scope{UserID: "u2"}
		if narrow := w.preview(choice); narrow.Count != 1 {
			t.Fatalf("of u2: %+v", narrow)
		}
		choice.Scope = memory.Scope{}
		id := uuid.New()
		done, _, refused := w.run(id, choice)
		if done != 3 || !maps.Equal(refused, map[string]int{"INPUT_EXPIRED": 1}) {
			t.Fatalf("done %d, refused %v", done, refused)
		}
		if available, held := w.balance(); available != 94 || held != 6 {
			t.Fatalf("available %d, held %d", available, held)
		}
		for _, untouched := range []uuid.UUID{long, ended, theirs} {
			if w.status(untouched) != "failed/accepted" {
				t.Fatalf("%s is %s", untouched, w.status(untouched))
			}
		}
		acts := 0
		for _, a := range w.acted() {
			if a.Act == operator.Retry && string(a.Details) == fmt.Sprintf(`{"bulk": "%s"}`, id) {
				acts++
			}
		}
		if acts != 3 {
			t.Fatalf("%d acts name the bulk", acts)
		}
		w.books()
	})

	t.Run("RepeatedItRetriesNothingTwice", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		for i := range 5 {
			w.failed(fmt.Sprint("down-", i), fmt.Sprint("u", i), task.ProviderUnavailable)
		}
		choice := w.lately(write.BulkRetry, "provider_unavailable")
		choice.Until = w.preview(choice).Until
		id := uuid.New()
		var all sync.WaitGroup
		for range 4 { // the same page at the same time: somebody has hung up and asked again
			all.Go(func() {
				if _, err := w.bulk().Run(context.WithoutCancel(t.Context()), w.caller.Workspace.ID, id, choice, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := one[int](w, `SELECT count(*) FROM tasks WHERE generation = 2`); n != 5 {
			t.Fatalf("%d events were retried once", n)
		}
		// They fail again: the bulk meant what had failed until it began.
		for _, id := range w.uuids(`SELECT id FROM tasks`) {
			wantDone(t, "fail again", w.fail(w.mustClaim(id), task.ProviderUnavailable))
		}
		if done, _, _ := w.run(id, choice); done != 0 {
			t.Fatalf("a repeat retried %d", done)
		}
		// Nor is it done twice where the time doesn't tell: an event's second failure at the same moment.
		w.exec(`UPDATE tasks SET completed_at = $1`, choice.Until)
		done, before, _ := w.run(id, choice)
		if done != 0 || before != 5 {
			t.Fatalf("a repeat retried %d, and %d it had retried before", done, before)
		}
		if n := one[int](w, `SELECT count(*) FROM tasks WHERE generation = 2`); n != 5 {
			t.Fatalf("%d events are in their second generation", n)
		}
		w.books()
	})

	t.Run("PagesKeepTheOrderOfLanes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		var order []uuid.UUID
		for i := range 120 {
			order = append(order, w.failed(fmt.Sprint("k", i), "ada", task.ProviderTimeout))
		}
		choice := w.lately(write.BulkRetry, "")
		choice.Until = w.preview(choice).Until
		first, err := w.bulk().Run(t.Context(), w.caller.Workspace.ID, uuid.New(), choice, nil)
		if err != nil || first.Done != 100 || first.Next == nil {
			t.Fatalf("a page has a bound: %+v: %v", first, err)
		}
		if done, _, _ := w.run(uuid.New(), choice); done != 20 { // resumed from its beginning, by another one
			t.Fatalf("the rest is %d", done)
		}
		if got := w.uuids(`SELECT id FROM tasks ORDER BY lane_seq`); fmt.Sprint(got) != fmt.Sprint(order) {
			t.Fatal("a lane's events are retried out of their order")
		}
	})

	t.Run("TellsWhatWasRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 6)
		for i := range 3 {
			w.failed(fmt.Sprint("down-", i), fmt.Sprint("u", i), task.ProviderUnavailable)
		}
		w.accept("spends", say("v", "x"))
		choice := w.lately(write.BulkRetry, "")
		choice.Until = w.preview(choice).Until
		name := w.caller.Workspace.ID.String()
		if _, err := w.db.SuspendWorkspace(t.Context(), name, true); err != nil {
			t.Fatal(err)
		}
		if done, _, refused := w.run(uuid.New(), choice); done != 0 || !maps.Equal(refused, map[string]int{"WORKSPACE_SUSPENDED": 3}) {
			t.Fatalf("suspended: done %d, refused %v", done, refused)
		}
		if _, err := w.db.SuspendWorkspace(t.Context(), name, false); err != nil {
			t.Fatal(err)
		}
		id := uuid.New()
		if done, _, refused := w.run(id, choice); done != 2 || !maps.Equal(refused, map[string]int{"INSUFFICIENT_CREDITS": 1}) {
			t.Fatalf("done %d, refused %v", done, refused)
		}
		if _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "more", 10); err != nil {
			t.Fatal(err)
		}
		if done, before, _ := w.run(id, choice); done != 1 || before != 0 { // a refusal has used up nothing
			t.Fatalf("with credits the same bulk does %d, %d before", done, before)
		}
		w.books()
	})

	t.Run("AChoiceWithoutBoundsIsRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 6)
		now := one[time.Time](w, `SELECT clock_timestamp()`)
		good := write.BulkChoice{Act: write.BulkRetry, Since: now.Add(-time.Hour), Until: now}
		for name, c := range map[string]write.BulkChoice{
			"act":    {Act: "erase", Since: good.Since, Until: good.Until},
			"since":  {Act: good.Act, Until: good.Until},
			"until":  {Act: good.Act, Since: good.Since},
			"future": {Act: good.Act, Since: good.Since, Until: now.Add(time.Hour)},
			"order":  {Act: good.Act, Since: good.Until, Until: good.Since},
		} {
			if _, err := w.bulk().Run(t.Context(), w.caller.Workspace.ID, uuid.New(), c, nil); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := w.bulk().Run(t.Context(), uuid.New(), uuid.New(), good, nil); !fault.Is(err, fault.WorkspaceNotFound) {
			t.Errorf("an unknown workspace: %v", err)
		}
		if _, err := w.bulk().Run(t.Context(), w.caller.Workspace.ID, uuid.Nil, good, nil); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("no id: %v", err)
		}
	})
}

// TestBulkCancel holds that a bulk ends what waits and leaves what is accepted later.
func TestBulkCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	for i := range 3 {
		w.accept(fmt.Sprint("waits-", i), say(fmt.Sprint("u", i), "a"))
	}
	tried := w.accept("tried", say("v", "b"))
	wantDone(t, "later", w.later(w.mustClaim(tried), task.ProviderUnavailable, time.Hour))
	stored := w.mustClaim(w.accept("stored", say("x", "b")))
	wantDone(t, "commit", w.commit(stored, "tea"))

	named := w.preview(w.lately(write.BulkCancel, "provider_unavailable"))
	if named.Count != 1 || named.Credits != 2 {
		t.Fatalf("what waits after that failure: %+v", named)
	}
	choice := w.lately(write.BulkCancel, "")
	p := w.preview(choice)
	if p.Count != 4 || p.Credits != 8 {
		t.Fatalf("%+v", p)
	}
	choice.Until = p.Until
	later := w.accept("later", say("u0", "c"))
	id := uuid.New()
	if done, _, refused := w.run(id, choice); done != 4 || len(refused) > 0 {
		t.Fatalf("done %d, refused %v", done, refused)
	}
	if w.status(later) != "pending/accepted" || w.status(stored.TaskID) != "running/committed" {
		t.Fatal("what came later or has committed was cancelled")
	}
	if available, held := w.balance(); available != 96 || held != 4 {
		t.Fatalf("available %d, held %d", available, held)
	}
	// A caller retries one of them: a repeat of the bulk leaves that alone.
	one := key(t, "again")
	if _, err := w.retrier().Retry(t.Context(), w.caller, tried, nil, &one); err != nil {
		t.Fatal(err)
	}
	if done, _, _ := w.run(id, choice); done != 0 || w.status(tried) != "pending/accepted" {
		t.Fatalf("a repeat cancelled %d", done)
	}
	w.books()
}

var _ write.BulkStore = (*postgres.DB)(nil)
