package postgres_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const canaryWord = "kanarienvogel"

// traces counts the places that still hold the canary.
func (w *itemWorld) traces() string {
	w.t.Helper()
	var found []string
	for _, table := range []string{
		"items", "memories", "memory_history", "memory_terms", "tasks", "tasks_archive", "plans", "task_results",
		"idempotency_keys", "task_parts",
	} {
		n := one[int](w.world, `SELECT count(*) FROM `+table+` t WHERE t::text ILIKE '%' || $1 || '%'
 OR t::text LIKE '%' || encode(convert_to($1, 'UTF8'), 'hex') || '%'`, canaryWord)
		if n > 0 {
			found = append(found, table)
		}
	}
	return strings.Join(found, ", ")
}

func TestForget(t *testing.T) {
	t.Parallel()

	t.Run("ErasesEverythingThatWasMadeOfAnItem", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("landed", "my "+canaryWord), input("edited", "one "+canaryWord), input("queued", "two "+canaryWord), input("other", "stays"))
		w.land("landed", "has a "+canaryWord)
		w.land("edited", canaryWord+" one")
		w.keep(input("edited", "another "+canaryWord))
		if at := w.traces(); !strings.Contains(at, "memory_history") || sealing(t).Ring == nil && !strings.Contains(at, "tasks") {
			t.Fatalf("the canary is only in %s", at)
		}
		done, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{IDs: []string{"landed", "edited", "queued", "unknown"}})
		if err != nil || done.Events != 3 || done.Queue == nil || *done.Queue != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		if at := w.traces(); at != "" {
			t.Fatalf("the canary is in %s", at)
		}
		if n := one[int](w.world, `SELECT count(*) FROM memory_history`); n != 2 {
			t.Fatalf("%d history rows tell that there was something", n)
		}
		again, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{IDs: []string{"landed", "edited", "queued"}})
		if err != nil || again.Events != 0 || again.Queue == nil || *again.Queue != 0 {
			t.Fatalf("again: %+v, %v", again, err)
		}
		w.land("other", "stays")
		w.wantLive("stays")
		wantBalance(t, w.world, 94, 0)
	})

	t.Run("ARunningTaskDoesNotLand", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("a", canaryWord))
		lease := w.claimItem("a")
		done, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{All: true})
		if err != nil || done.Events != 1 || *done.Queue != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
		wantLost(t, "commit", w.completeItem(lease, canaryWord))
		if at := w.traces(); at != "" {
			t.Fatalf("the canary is in %s", at)
		}
		wantBalance(t, w.world, 100, 0)
	})

	t.Run("AProjectingTaskEndsWithoutAnything", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("a", canaryWord))
		lease := w.claimItem("a")
		wantDone(t, "commit", w.commit(lease, canaryWord))
		done, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{All: true})
		if err != nil || done.Events != 1 || *done.Queue != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		if at := w.traces(); at != "" {
			t.Fatalf("the canary is in %s", at)
		}
		wantDone(t, "settle", w.settle(lease))
		wantBalance(t, w.world, 98, 0)
		if n := one[int](w.world, `SELECT count(*) FROM memory_vectors`); n != 0 {
			t.Fatalf("%d vectors of nothing", n)
		}
	})

	t.Run("OneSessionOrAll", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 1000)
		var inputs []command.ItemInput
		for i := range 250 {
			inputs = append(inputs, in("s"+strconv.Itoa(i%2), input(strconv.Itoa(i), "text")))
		}
		w.keep(inputs...)
		done, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{Session: "s1"})
		if err != nil || done.Events != 125 || *done.Queue != 125 {
			t.Fatalf("session: %+v, %v", done, err)
		}
		if other, err := w.items.Forget(t.Context(), w.caller, "v", write.Forget{All: true}); err != nil || other.Events != 0 {
			t.Fatalf("another account: %+v, %v", other, err)
		}
		done, err = w.items.Forget(t.Context(), w.caller, "u", write.Forget{All: true})
		if err != nil || done.Events != 125 || *done.Queue != 125 {
			t.Fatalf("all: %+v, %v", done, err)
		}
		wantBalance(t, w.world, 1000, 0)
	})

	t.Run("AnItemMayComeAgain", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("a", "one"))
		w.land("a", "one")
		if _, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{All: true}); err != nil {
			t.Fatal(err)
		}
		wantReceipt(t, w.keep(input("a", "one")), 1, 1, false)
		w.land("a", "one")
		w.wantLive("one")
	})

	t.Run("AgainstEditsAndCommits", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 1000)
		w.strict()
		together(9, func(i int) {
			for n := range 8 {
				switch i % 3 {
				case 0:
					if _, err := w.try("", input("a", strconv.Itoa(i)+strconv.Itoa(n)), input("b", strconv.Itoa(n))); err != nil {
						t.Errorf("keep: %v", err)
					}
				case 1:
					w.runDue(t)
				default:
					if _, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{All: true}); err != nil {
						t.Errorf("forget: %v", err)
					}
				}
			}
		})
		if _, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{All: true}); err != nil {
			t.Fatal(err)
		}
		w.wantLive("")
		if n := one[int](w.world, `SELECT (SELECT count(*) FROM items) + (SELECT count(*) FROM tasks WHERE completed_at IS NULL OR command IS NOT NULL)`); n != 0 {
			t.Fatalf("%d rows are left", n)
		}
		w.books()
		w.sound()
	})
}
