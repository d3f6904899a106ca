package postgres_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func TestCorrect(t *testing.T) {
	t.Parallel()
	record := func(w *itemWorld) uuid.UUID {
		return one[uuid.UUID](w.world, `SELECT id FROM memories WHERE deleted_at IS NULL`)
	}

	t.Run("TheCorrectionTakesThePlace", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(in("s", input("a", "one")))
		w.land("a", "wrong")
		id, right := record(w), "right"
		done, err := w.items.Correct(t.Context(), w.caller, "u", id, &right)
		if err != nil || done.Record == nil || *done.Record != record(w) {
			t.Fatalf("%+v, %v", done, err)
		}
		w.wantLive("right")
		w.tombstones(1)
		if _, err := w.items.Correct(t.Context(), w.caller, "u", id, &right); !fault.Is(err, fault.MemoryNotFound) {
			t.Fatalf("again: %v", err)
		}
		event := w.event(done.EventID)
		if event.Status != task.EventSucceeded || len(event.Results) != 2 || event.Results[1].Change != memory.Added {
			t.Fatalf("%+v", event)
		}
		w.wantLive("right")
		if _, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{IDs: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		w.wantLive("") // the correction belongs to the item
		w.books()
	})

	t.Run("WithoutATextItOnlyRetracts", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("a", "one"))
		w.land("a", "wrong")
		id := record(w)
		for _, c := range []struct {
			account string
			ok      bool
		}{{"v", false}, {"u", true}, {"u", false}} {
			_, err := w.items.Correct(t.Context(), w.caller, c.account, id, nil)
			if (err == nil) != c.ok || !c.ok && !fault.Is(err, fault.MemoryNotFound) {
				t.Fatalf("%s: %v", c.account, err)
			}
		}
		w.wantLive("")
		w.books()
	})

	t.Run("OfManyAtOnceOneDoes", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("a", "one"))
		w.land("a", "wrong")
		id := record(w)
		var ok atomic.Int64
		together(8, func(i int) {
			text := strconv.Itoa(i)
			_, err := w.items.Correct(t.Context(), w.caller, "u", id, &text)
			if err == nil {
				ok.Add(1)
			} else if !fault.Is(err, fault.MemoryNotFound) {
				t.Errorf("%v", err)
			}
		})
		if n := one[int](w.world, `SELECT count(*) FROM memories WHERE deleted_at IS NULL`); n != 1 || ok.Load() != 1 {
			t.Fatalf("%d live records, %d calls succeeded", n, ok.Load())
		}
	})
}
