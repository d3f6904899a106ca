package postgres_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestGrant(t *testing.T) {
	t.Parallel()
	t.Run("TheSameReferenceGrantsOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		for i, want := range []bool{true, false, false} {
			granted, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "invoice-1", 50)
			if err != nil || granted != want {
				t.Fatalf("call %d: %v, %v", i, granted, err)
			}
		}
		wantBalance(t, w, 50, 0)
	})
	t.Run("ManyAtOnceGrantOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		var granted atomic.Int64
		together(12, func(int) {
			did, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "invoice-1", 7)
			if err != nil {
				t.Error(err)
			}
			if did {
				granted.Add(1)
			}
		})
		if granted.Load() != 1 {
			t.Fatalf("%d calls say that they granted", granted.Load())
		}
		wantBalance(t, w, 7, 0)
	})
	t.Run("ManyReferencesAddUp", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		together(12, func(i int) {
			if did, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, keyName(i), 3); err != nil || !did {
				t.Errorf("%v, %v", did, err)
			}
		})
		wantBalance(t, w, 36, 0)
	})
	t.Run("AnotherAmountIsAConflictAndChangesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		if _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "invoice-1", 50); err != nil {
			t.Fatal(err)
		}
		if _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "invoice-1", 51); !fault.Is(err, fault.IdempotencyConflict) {
			t.Fatalf("%v", err)
		}
		wantBalance(t, w, 50, 0)
	})
	t.Run("AnotherWorkspaceHasItsOwnReferences", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		other := w.workspace(0).Workspace.ID
		for _, workspace := range []uuid.UUID{w.caller.Workspace.ID, other} {
			if did, err := w.db.Grant(t.Context(), workspace, "invoice-1", 5); err != nil || !did {
				t.Fatalf("%v, %v", did, err)
			}
		}
		wantBalance(t, w, 5, 0)
	})
	t.Run("AnAccountIsMadeWhereThereIsNone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.exec(`DELETE FROM credit_accounts`)
		if did, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "invoice-1", 5); err != nil || !did {
			t.Fatalf("%v, %v", did, err)
		}
		wantBalance(t, w, 5, 0)
	})
	t.Run("WhatCannotBeGrantedLeavesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		if _, err := w.db.Grant(t.Context(), uuid.New(), "invoice-1", 5); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("unknown workspace: %v", err)
		}
		for _, c := range []struct {
			reference string
			amount    credit.Amount
		}{{"", 5}, {strings.Repeat("x", 201), 5}, {"r", 0}, {"r", -5}, {"r", 1_000_000_000_001}} {
			if _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, c.reference, c.amount); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%q, %d: %v", c.reference, c.amount, err)
			}
		}
		if n := one[int](w, `SELECT count(*) FROM credit_grants`); n != 0 {
			t.Errorf("%d grants", n)
		}
	})
}

func TestBalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.accept("k", say("ana", "I like tea"))
	b, err := w.db.Balance(t.Context(), w.caller.Workspace.ID)
	if err != nil || b != (credit.Balance{Available: 8, Held: 2, Metered: true}) {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := w.db.Balance(t.Context(), uuid.New()); !errors.Is(err, postgres.ErrNoWorkspace) {
		t.Fatalf("unknown workspace: %v", err)
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	t.Run("TellEveryMovementOnceNewestFirst", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.frozen()
		if _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "start", 100); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Second)
		won := w.accept("won", say("ana", "I like tea"))
		lost := w.accept("lost", say("bob", "I like tea")) // at the same time, in another lane
		w.advance(time.Second)
		wantDone(t, "complete", w.complete(w.mustClaim(won), "likes tea"))
		wantDone(t, "fail", w.fail(w.mustClaim(lost), task.OutputInvalid))
		w.advance(time.Second)
		w.remember(memory.Scope{UserID: "eve"}, "born ended: its hold and settle are one moment")
		wantBalance(t, w, 97, 0)

		whole := w.entries(100)
		types := map[credit.EntryType]int{}
		sum := int64(0)
		for i, e := range whole {
			types[e.Type]++
			switch e.Type {
			case credit.Grant:
				sum += e.Amount
				if e.TaskID != nil || e.Reference != "start" {
					t.Errorf("%+v", e)
				}
			case credit.Settle:
				sum -= e.Amount
			case credit.Hold, credit.Release:
			}
			if e.Type != credit.Grant && (e.TaskID == nil || e.Generation != 1) {
				t.Errorf("%+v", e)
			}
			if i > 0 && e.At.After(whole[i-1].At) {
				t.Errorf("place %d is newer than the one before", i)
			}
		}
		if types[credit.Grant] != 1 || types[credit.Hold] != 3 || types[credit.Settle] != 2 || types[credit.Release] != 1 || sum != 97 {
			t.Fatalf("%v, sum %d", types, sum)
		}
		for _, limit := range []int{1, 2, 3} {
			paged := w.entries(limit)
			if len(paged) != len(whole) {
				t.Fatalf("%d entries in pages of %d, want %d", len(paged), limit, len(whole))
			}
			for i := range whole {
				if paged[i].Type != whole[i].Type || paged[i].At != whole[i].At || paged[i].Amount != whole[i].Amount {
					t.Fatalf("pages of %d differ at %d", limit, i)
				}
			}
		}
	})
	t.Run("AnotherWorkspaceHasNone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		page, err := w.db.Entries(t.Context(), uuid.New(), nil, 10)
		if err != nil || len(page.Entries) != 0 || page.Next != nil {
			t.Fatalf("%+v, %v", page, err)
		}
	})
	t.Run("APageReadsAPagesWorthOfRows", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.exec(`
INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
SELECT gen_random_uuid(), 1, $1, 2, timestamptz '2026-01-01' + n * interval '1 second' FROM generate_series(1, 20000) n`, w.caller.Workspace.ID)
		w.exec(`ANALYZE task_runs`)
		sql := strings.Replace(postgres.EntriesSQL, "%s", postgres.EntriesAfterSQL, 1)
		plan := w.plan(sql, pgx.NamedArgs{
			"workspace": w.caller.Workspace.ID, "limit": 51, "after_at": time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC),
			"after_id": uuid.Max, "after_type": "settle", "after_generation": 1,
		})
		if strings.Contains(plan, "Seq Scan on task_runs") || !strings.Contains(plan, "Index Scan Backward using task_runs_workspace") {
			t.Fatalf("the journal doesn't walk its index:\n%s", plan)
		}
	})
}

// entries reads the whole journal, page by page.
func (w *world) entries(limit int) []credit.Entry {
	w.t.Helper()
	var all []credit.Entry
	var after *recall.EntryPlace
	for range 1000 {
		page, err := w.db.Entries(w.t.Context(), w.caller.Workspace.ID, after, limit)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(page.Entries) > limit {
			w.t.Fatalf("a page of %d entries, the limit is %d", len(page.Entries), limit)
		}
		all = append(all, page.Entries...)
		if after = page.Next; after == nil {
			return all
		}
	}
	w.t.Fatal("the journal doesn't end")
	return nil
}
