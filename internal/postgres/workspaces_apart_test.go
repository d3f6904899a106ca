package postgres_test

import (
	"context"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// TestWorkspacesApart gives two workspaces the same users, texts and keys and looks from one of them at the other. It does
// so as the owner of the tables, so that the queries' own conditions are what keeps them apart.
func TestWorkspacesApart(t *testing.T) {
	t.Parallel()

	t.Run("Events", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.accept("k", say("u", "a"))
		w.caller = w.workspace(100)
		mine := w.accept("k", say("u", "a"))
		if all := w.events(recall.EventQuery{Kinds: []task.Kind{task.Infer}, Limit: 10}); len(all) != 1 || all[0].ID != mine {
			t.Errorf("listed are %+v", all)
		}
	})

	t.Run("History", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		theirs := w.remember(memory.Scope{UserID: "u"}, "said")[0]
		w.caller = w.workspace(100)
		h, err := w.db.History(t.Context(), w.caller.Workspace.ID, recall.HistoryQuery{Memory: theirs, Limit: 10})
		if !fault.Is(err, fault.MemoryNotFound) && len(h.Entries) != 0 {
			t.Errorf("history %+v: %v", h, err)
		}
	})

	t.Run("Entities", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "u"}, "said")
		w.caller = w.workspace(100)
		page, err := w.db.Entities(t.Context(), w.caller.Workspace.ID, recall.EntityQuery{Limit: 10})
		if err != nil || len(page.Entities) != 0 {
			t.Errorf("entities %+v: %v", page, err)
		}
	})

	t.Run("Items", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("one", "said"))
		w.caller = w.workspace(100)
		items, err := w.db.Items(t.Context(), w.caller.Workspace.ID, recall.ItemQuery{Account: "u", Limit: 10})
		if err != nil || len(items) != 0 {
			t.Errorf("items %+v: %v", items, err)
		}
	})

	t.Run("ImportedItems", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("one", "said"))
		snapshot := w.export()
		w.caller = w.workspace(100)
		w.restore(snapshot)
		if n := one[int64](w.world, `SELECT count(*) FROM items i JOIN all_tasks t ON t.id = i.task_id WHERE t.workspace_id <> i.workspace_id`); n != 0 {
			t.Errorf("%d items name another workspace's task", n)
		}
	})

	t.Run("Search", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "u"}, "said")
		w.caller = w.workspace(100)
		refs, err := w.db.Searched(t.Context(), w.caller.Workspace.ID, recall.Searched{Scope: memory.Scope{UserID: "u"}, LatestOnly: true, Limit: 10})
		if err != nil || len(refs) != 0 {
			t.Errorf("searched are %+v: %v", refs, err)
		}
	})

	t.Run("Cancel", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		theirs := w.accept("k", say("u", "a"))
		w.caller = w.workspace(100)
		if err := w.canceller().Cancel(t.Context(), w.caller, theirs); !fault.Is(err, fault.EventNotFound) {
			t.Errorf("cancel: %v", err)
		}
		w.mustClaim(theirs)
	})

	t.Run("Retry", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		theirs := w.accept("k", say("u", "a"))
		wantDone(t, "fail", w.fail(w.mustClaim(theirs), task.OutputInvalid))
		w.caller = w.workspace(100)
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, theirs, &generation, nil); !fault.Is(err, fault.EventNotFound) {
			t.Errorf("retry: %v", err)
		}
		wantBalance(t, w, 100, 0)
	})

	t.Run("Fences", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", command.Add{
			Scope: memory.Scope{UserID: "u"}, Infer: true, Ordered: true, Messages: []command.Message{{Role: "user", Content: "a"}},
		})
		mine := w.caller
		w.caller = w.workspace(100)
		w.fenceScope(memory.Scope{}) // of everything that they have
		w.caller = mine
		wantDone(t, "complete", w.complete(w.mustClaim(id), "fact"))
	})

	t.Run("Gates", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		mine, other := w.caller.Workspace.ID, w.workspace(100).Workspace.ID
		lane := memory.Scope{UserID: "u"}.Lane()
		err := w.db.InTxAlone(t.Context(), mine, func(ctx context.Context, tx *postgres.Tx) error {
			if err := postgres.LockLane(ctx, tx, mine, lane); err != nil {
				return err
			}
			return w.db.InTxAlone(ctx, other, func(ctx context.Context, tx *postgres.Tx) error {
				return postgres.LockLane(ctx, tx, other, lane)
			})
		})
		if err != nil {
			t.Errorf("the other gate: %v", err)
		}
	})
}
