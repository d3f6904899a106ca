package postgres_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// strict makes a deadlock an error: nobody breaks it, so that it runs into the timeout of a lock.
func (w *itemWorld) strict() {
	w.t.Helper()
	w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = %L', current_database(), '10min'); END $$`)
	w.db = w.open(w.url)
	var err error
	if w.items, err = write.NewItems(w.db, w.hints, w.hints, offline.NewEmbedder(), credit.DefaultPrices(), nil); err != nil {
		w.t.Fatal(err)
	}
}

func TestItemsAtOnce(t *testing.T) {
	t.Parallel()

	t.Run("TheSameBatchTenTimes", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 2_000)
		w.strict()
		var queued atomic.Int64
		together(10, func(i int) {
			for round := range 4 {
				var inputs []command.ItemInput
				for n := range 200 {
					place := (n + 20*i) % 200 // each call has them in another order
					inputs = append(inputs, in("s"+strconv.Itoa(place%3), input(strconv.Itoa(round)+" "+strconv.Itoa(place), "text")))
				}
				receipt, err := w.try("", inputs...)
				if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
				queued.Add(int64(receipt.Queued))
			}
		})
		if n := one[int](w.world, `SELECT count(*) FROM tasks`); n != 800 || queued.Load() != 800 {
			t.Fatalf("%d tasks, %d told", n, queued.Load())
		}
		wantBalance(t, w.world, 400, 1_600)
	})

	t.Run("OtherItemsOfTheSameSessions", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10_000)
		w.strict()
		together(10, func(i int) {
			for range 5 {
				var inputs []command.ItemInput
				for n := range 12 {
					inputs = append(inputs, in("s"+strconv.Itoa((n+i)%12), input(uuid.NewString(), "text")))
				}
				if _, err := w.try("", inputs...); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
		})
		if heads := one[int](w.world, `SELECT count(*) FROM tasks WHERE head`); heads != 12 {
			t.Fatalf("%d heads in 12 lanes", heads)
		}
		wantBalance(t, w.world, 8_800, 1_200)
	})

	t.Run("ACommitHoldsTheLanesOfWhatItReplaces", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(in("s1", input("a", "one")))
		w.land("a", "one")
		w.keep(in("s2", input("a", "one")))
		lease := w.claimItem("a")
		tx, err := w.sql.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		old := memory.Scope{UserID: "u", RunID: "s1"}.Lane()
		if _, err := tx.Exec(t.Context(), `SELECT 1 FROM lanes WHERE lane = $1 FOR UPDATE`, old[:]); err != nil {
			t.Fatal(err)
		}
		if done := w.completeItem(lease, "again"); !fault.Is(done.Err, fault.UnavailableNow) {
			t.Fatalf("the commit did not wait for the other lane: %v", done.Err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantDone(t, "commit", w.completeItem(lease, "again"))
		w.wantLive("again")
	})

	t.Run("EditsAndCommits", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 1000)
		w.strict()
		ids := []string{"a", "b", "c", "d", "e", "f"}
		together(8, func(i int) {
			for n := range 15 {
				if i < 3 {
					var inputs []command.ItemInput
					for at, id := range ids {
						inputs = append(inputs, in("s"+strconv.Itoa((i+n+at)%3), input(id, strconv.Itoa(i)+" "+strconv.Itoa(n))))
					}
					if _, err := w.try("", inputs...); err != nil {
						t.Errorf("edit: %v", err)
					}
					continue
				}
				w.runDue(t)
			}
		})
		for range 100 {
			if !w.runDue(t) {
				break
			}
		}
		if left := one[int](w.world, `SELECT count(*) FROM tasks WHERE completed_at IS NULL`); left != 0 {
			t.Fatalf("%d tasks are stuck", left)
		}
		want := one[string](w.world, `SELECT string_agg(item_id || text, '|' ORDER BY item_id) FROM items`)
		if got := one[string](w.world, `SELECT string_agg(item_id || text, '|' ORDER BY item_id) FROM memories WHERE deleted_at IS NULL`); got != want {
			t.Fatalf("records %s, items %s", got, want)
		}
		w.books()
		w.sound()
	})
}

// runDue lands whatever is due, with the item's text as its fact, and tells whether anything was.
func (w *itemWorld) runDue(t *testing.T) bool {
	c := claimant("worker")
	c.Kinds = []task.Kind{task.Item}
	ids, _, err := w.db.Due(t.Context(), c, 5)
	if err != nil {
		t.Errorf("due: %v", err)
	}
	for _, id := range ids {
		got := w.db.Claim(t.Context(), c, []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, true)[0]
		if got.Err != nil {
			t.Errorf("claim: %v", got.Err)
		}
		if got.Lease == nil {
			continue
		}
		add, err := command.DecodeItem(command.Format, got.Lease.Payload)
		if err != nil {
			t.Errorf("payload: %v", err)
			continue
		}
		done := w.completeItem(*got.Lease, add.Messages[0].Content)
		if done.Err != nil && !errorsIs(done.Err, fault.ErrLeaseLost) {
			t.Errorf("commit: %v", done.Err)
		}
	}
	return len(ids) > 0
}
