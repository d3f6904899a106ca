package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// itemWorld is a world whose account u keeps items.
type itemWorld struct {
	*world
	items *write.Items
	read  *recall.Items
}

func newItemWorld(t *testing.T, credits int64) *itemWorld {
	t.Helper()
	w := newWorld(t, credits)
	items, err := write.NewItems(w.db, w.hints, w.hints, offline.NewEmbedder(), credit.DefaultPrices(), nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := recall.NewItems(w.db)
	if err != nil {
		t.Fatal(err)
	}
	return &itemWorld{w, items, read}
}

func input(id, text string) command.ItemInput { return command.ItemInput{ID: &id, Text: text} }

func in(session string, i command.ItemInput) command.ItemInput {
	i.Session = &session
	return i
}

func (w *itemWorld) try(key string, inputs ...command.ItemInput) (write.ItemsReceipt, error) {
	w.t.Helper()
	items, err := command.NewItems("u", key, inputs)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.items.Keep(w.t.Context(), w.caller, "u", items)
}

func (w *itemWorld) keep(inputs ...command.ItemInput) write.ItemsReceipt {
	w.t.Helper()
	receipt, err := w.try("", inputs...)
	if err != nil {
		w.t.Fatal(err)
	}
	return receipt
}

func (w *itemWorld) task(id string) uuid.UUID {
	w.t.Helper()
	item := command.Item{Account: "u", ID: id}
	found, err := w.read.TaskOf(w.t.Context(), w.caller.Workspace.ID, item.EventID(w.caller.Workspace.ID))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// claimItem takes the lease of an item's latest task.
func (w *itemWorld) claimItem(id string) worker.Lease {
	w.t.Helper()
	c := claimant("worker")
	c.Kinds = append(c.Kinds, task.Item)
	got := w.db.Claim(w.t.Context(), c, []worker.ClaimAsk{{TaskID: w.task(id), Token: uuid.New()}}, false)[0]
	if got.Err != nil || got.Lease == nil {
		w.t.Fatalf("item %s could not be claimed: %v", id, got.Err)
	}
	return *got.Lease
}

// land runs the item's latest task to its end.
func (w *itemWorld) land(id string, texts ...string) {
	w.t.Helper()
	wantDone(w.t, "land", w.completeItem(w.claimItem(id), texts...))
}

func (w *itemWorld) completeItem(l worker.Lease, texts ...string) worker.Done {
	w.t.Helper()
	plan := planOf(texts...)
	for i := range plan.Records {
		plan.Records[i].Verbatim = true
	}
	embedding, err := offline.NewEmbedder().Embed(w.t.Context(), texts)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.db.Commit(w.t.Context(), []worker.Commit{{
		Lease: l, Plan: plan, Complete: true, VectorModel: offline.NewEmbedder().Model(), Vectors: embedding.Vectors,
	}})[0]
}

// live returns the live texts of the account, sorted.
func (w *itemWorld) live() string {
	w.t.Helper()
	return one[string](w.world, `SELECT coalesce(string_agg(text, '|' ORDER BY text), '') FROM memories WHERE user_id = 'u' AND deleted_at IS NULL`)
}

func (w *itemWorld) wantLive(want string) {
	w.t.Helper()
	if got := w.live(); got != want {
		w.t.Fatalf("live: %q, want %q", got, want)
	}
}

// wantReceipt checks the counts of a receipt and of which items it says that they have landed.
func wantReceipt(t testing.TB, r write.ItemsReceipt, queued, pending int, landed ...bool) {
	t.Helper()
	if r.Queued != queued || r.Pending != pending || len(r.Items) != len(landed) {
		t.Fatalf("queued %d, pending %d, %d items; want %d, %d and %d", r.Queued, r.Pending, len(r.Items), queued, pending, len(landed))
	}
	for i, want := range landed {
		if r.Items[i].Landed != want {
			t.Fatalf("item %d landed: %v", i, r.Items[i].Landed)
		}
	}
}

// tombstones checks that ended records have their history and no projections.
func (w *itemWorld) tombstones(want int) {
	w.t.Helper()
	ended := one[int](w.world, `SELECT count(*) FROM memories m WHERE deleted_at IS NOT NULL
 AND EXISTS (SELECT FROM memory_history h WHERE h.memory_id = m.id AND h.event = 'DELETE' AND h.old_text = m.text)`)
	left := one[int](w.world, `SELECT (SELECT count(*) FROM memory_terms t JOIN memories m ON m.id = t.memory_id WHERE m.deleted_at IS NOT NULL)
 + (SELECT count(*) FROM memory_vectors v JOIN memories m ON m.id = v.memory_id WHERE m.deleted_at IS NOT NULL)`)
	if ended != want || left != 0 {
		w.t.Fatalf("%d ended records with history, %d projections of ended ones; want %d and 0", ended, left, want)
	}
}
