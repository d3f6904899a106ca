package postgres_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/repair"
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

func TestItems(t *testing.T) {
	t.Parallel()

	t.Run("ARepeatChangesNothing", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		first := w.keep(input("a", "I have a cat."))
		wantReceipt(t, first, 1, 1, false)
		again := w.keep(input("a", "I have a cat."))
		wantReceipt(t, again, 0, 1, false)
		if first.Items[0] != again.Items[0] {
			t.Fatalf("%+v, then %+v", first.Items[0], again.Items[0])
		}
		wantBalance(t, w.world, 8, 2)
		w.land("a", "has a cat")
		wantReceipt(t, w.keep(input("a", "I have a cat.")), 0, 0, true)
		w.wantLive("has a cat")
		wantBalance(t, w.world, 8, 0)
		if id := one[string](w.world, `SELECT item_id FROM memories`); id != "a" {
			t.Fatalf("the record is of item %q", id)
		}
		if n := one[int](w.world, `SELECT count(*) FROM idempotency_keys`); n != 1 {
			t.Fatalf("%d keys for one task", n)
		}
	})

	t.Run("AnEditReplacesWhatLanded", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "I live in Paris."))
		w.land("a", "lives in Paris", "speaks French")
		wantReceipt(t, w.keep(input("a", "I live in Berlin.")), 1, 1, false)
		w.wantLive("lives in Paris|speaks French")
		w.land("a", "lives in Berlin", "speaks French")
		w.wantLive("lives in Berlin|speaks French")
		wantReceipt(t, w.keep(input("a", "I live in Berlin.")), 0, 0, true)
		wantBalance(t, w.world, 6, 0)
		w.tombstones(2)
		event := w.event(w.task("a"))
		changes := ""
		for _, r := range event.Results {
			changes += string(r.Change) + " "
		}
		if changes != "ADD ADD DELETE DELETE " || event.Outcome != task.Stored {
			t.Fatalf("the event lists %s and %s", changes, event.Outcome)
		}
	})

	t.Run("AnEditThatSaysNothingLeavesNothing", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "I live in Paris."))
		w.land("a", "lives in Paris")
		w.keep(input("a", "Hm."))
		w.land("a")
		w.wantLive("")
		if outcome := w.event(w.task("a")).Outcome; outcome != task.NoMemory {
			t.Fatalf("outcome %s", outcome)
		}
		w.tombstones(1)
	})

	t.Run("AnEditEndsAQueuedRevision", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 2)
		w.keep(input("a", "one"))
		earlier := w.task("a")
		wantReceipt(t, w.keep(input("a", "two")), 1, 1, false)
		if got := w.status(earlier); got != "failed/accepted" {
			t.Fatalf("the earlier revision is %s", got)
		}
		generation := 1
		_, err := w.retrier().Retry(t.Context(), w.caller, earlier, &generation, nil)
		if !fault.Is(err, fault.InputExpired) {
			t.Fatalf("retry of an earlier revision: %v", err)
		}
		wantBalance(t, w.world, 0, 2) // its hold was released for the edit
		w.land("a", "two")
		w.wantLive("two")
		wantBalance(t, w.world, 0, 0)
	})

	t.Run("ARunningEarlierRevisionDoesNotLand", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		lease := w.claimItem("a")
		w.keep(input("a", "two"))
		wantLost(t, "commit", w.completeItem(lease, "one"))
		wantLost(t, "failure", w.fail(lease, task.InternalFailure))
		w.wantLive("")
		w.land("a", "two")
		w.wantLive("two")
		wantBalance(t, w.world, 8, 0)
		if n := one[int](w.world, `SELECT count(*) FROM task_attempts WHERE ending = 'failed' AND class = 'cancelled'`); n != 1 {
			t.Fatalf("%d attempt rows tell of the ended claim", n)
		}
	})

	t.Run("AnEditMeetsARevisionThatIsProjecting", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		lease := w.claimItem("a")
		wantDone(t, "commit", w.commit(lease, "one"))
		wantReceipt(t, w.keep(input("a", "one")), 0, 0, true)
		wantReceipt(t, w.keep(input("a", "two")), 1, 1, false)
		w.land("a", "two")
		wantDone(t, "settle", w.settle(lease))
		w.wantLive("two")
		w.tombstones(1)
		wantBalance(t, w.world, 6, 0)
	})

	t.Run("AFailedRevisionIsQueuedAgain", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		failed := w.claimItem("a")
		wantDone(t, "fail", w.fail(failed, task.OutputInvalid))
		wantReceipt(t, w.keep(input("a", "one")), 1, 1, false)
		if n := one[int](w.world, `SELECT revision FROM items`); n != 1 {
			t.Fatalf("revision %d", n)
		}
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, failed.TaskID, &generation, nil); !fault.Is(err, fault.InputExpired) {
			t.Fatalf("retry beside the new task: %v", err)
		}
		w.land("a", "one")
		w.wantLive("one")
		wantBalance(t, w.world, 8, 0)
	})

	t.Run("AFailedRevisionThatIsRetriedByHandIsNotQueuedTwice", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		failed := w.claimItem("a")
		wantDone(t, "fail", w.fail(failed, task.OutputInvalid))
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, failed.TaskID, &generation, nil); err != nil {
			t.Fatal(err)
		}
		wantReceipt(t, w.keep(input("a", "one")), 0, 1, false)
		w.land("a", "one")
		wantBalance(t, w.world, 8, 0)
	})

	t.Run("TheFirstTimeWins", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		at := func(text, when string) command.ItemInput {
			i := input("a", text)
			i.At = &when
			return i
		}
		w.keep(at("one", "2026-03-01T09:00+09:00"))
		wantReceipt(t, w.keep(at("one", "2027-01-01T00:00Z")), 0, 1, false)
		w.keep(at("two", "2027-01-01T00:00Z"))
		add, err := command.DecodeItem(command.Format, w.claimItem("a").Payload)
		if err != nil || !add.EventDate.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) || add.Messages[0].Content != "two" {
			t.Fatalf("%+v, %v", add, err)
		}
	})

	t.Run("TheTimeOfAnItemWithoutOneIsItsFirstSend", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		first := one[time.Time](w.world, `SELECT at FROM items`)
		w.advance(time.Hour)
		w.keep(input("a", "two"))
		if again := one[time.Time](w.world, `SELECT at FROM items`); !again.Equal(first) {
			t.Fatalf("%s became %s", first, again)
		}
	})

	t.Run("WhatIsSentTwiceInOneCallIsOneItem", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		receipt := w.keep(input("a", "one"), input("a", "two"))
		wantReceipt(t, receipt, 1, 1, false, false)
		if receipt.Items[0] != receipt.Items[1] {
			t.Fatalf("%+v", receipt.Items)
		}
		wantReceipt(t, w.keep(input("a", "two")), 0, 1, false)
	})

	t.Run("AnotherSessionOrAuthorIsAnEdit", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(in("s1", input("a", "one")))
		w.land("a", "one")
		wantReceipt(t, w.keep(in("s2", input("a", "one"))), 1, 1, false)
		w.land("a", "one again")
		w.wantLive("one again")
		if run := one[string](w.world, `SELECT run_id FROM memories WHERE deleted_at IS NULL`); run != "s2" {
			t.Fatalf("the record is of session %s", run)
		}
		author, edited := "Ann", in("s2", input("a", "one"))
		edited.Author = &author
		wantReceipt(t, w.keep(edited), 1, 1, false)
	})

	t.Run("ItemsOfASessionLandInOrder", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		var inputs []command.ItemInput
		for i := range 5 {
			inputs = append(inputs, in("s", input(strconv.Itoa(i), "text "+strconv.Itoa(i))))
		}
		inputs = append(inputs, in("t", input("other", "text")))
		wantReceipt(t, w.keep(inputs...), 6, 6, false, false, false, false, false, false)
		if heads := one[int](w.world, `SELECT count(*) FROM tasks WHERE head`); heads != 2 {
			t.Fatalf("%d heads in two lanes", heads)
		}
		for i := range 5 {
			w.land(strconv.Itoa(i), "text "+strconv.Itoa(i))
		}
		w.land("other", "text")
		items, more, err := w.read.Session(t.Context(), w.caller.Workspace.ID, "u", "s", "1", 2)
		if err != nil || !more || len(items) != 2 || items[0].ID != "2" || items[1].ID != "3" || !items[0].Landed {
			t.Fatalf("%+v, %v, %v", items, more, err)
		}
	})

	t.Run("TwoItemsKeepTheSameFactEach", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "x"), input("b", "y"))
		w.land("a", "same")
		w.land("b", "same")
		w.wantLive("same|same")
	})

	t.Run("WhatCannotBePaidLeavesNothing", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 5)
		w.keep(input("a", "one"))
		_, err := w.try("", input("a", "two"), input("b", "x"), input("c", "y"))
		if !fault.Is(err, fault.InsufficientCredits) {
			t.Fatalf("%v", err)
		}
		if text := one[string](w.world, `SELECT string_agg(text, '|') FROM items`); text != "one" {
			t.Fatalf("items: %s", text)
		}
		if n := one[int](w.world, `SELECT count(*) FROM tasks`); n != 1 {
			t.Fatalf("%d tasks", n)
		}
		wantBalance(t, w.world, 3, 2)
		w.land("a", "one")
	})

	t.Run("AnAnswerThatWasLostIsRepeated", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		items, err := command.NewItems("u", "", []command.ItemInput{input("a", "one")})
		if err != nil {
			t.Fatal(err)
		}
		ask := write.ItemsAsk{
			WorkspaceID: w.caller.Workspace.ID, Account: "u", Format: command.Format, Policy: []byte("{}"), Price: 2,
			Items: []write.ItemAsk{{
				Item: items[0], Key: items[0].Key(), EventID: "ev_0", Content: items[0].Content(), TaskID: uuid.Must(uuid.NewV7()),
			}},
		}
		for range 2 {
			kept, err := w.db.KeepItems(t.Context(), ask)
			if err != nil || !kept.Items[0].Queued || kept.Pending != 1 {
				t.Fatalf("%+v, %v", kept, err)
			}
		}
		wantBalance(t, w.world, 8, 2)
	})

	t.Run("TheTaskStaysAsLongAsTheItem", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 10)
		w.keep(input("a", "one"))
		w.land("a", "one")
		w.advance(1000 * time.Hour)
		if swept, err := w.db.ArchiveEnded(t.Context(), time.Hour, repair.Cursor{}, 10); err != nil || swept.Fixed != 1 {
			t.Fatalf("archived: %+v, %v", swept, err)
		}
		if swept, err := w.db.RetireArchived(t.Context(), time.Hour, repair.Cursor{}, 10); err != nil || swept.Fixed != 0 {
			t.Fatalf("retired: %+v, %v", swept, err)
		}
		wantReceipt(t, w.keep(input("a", "one")), 0, 0, true)
		if _, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{IDs: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		if swept, err := w.db.RetireArchived(t.Context(), time.Hour, repair.Cursor{}, 10); err != nil || swept.Fixed != 1 {
			t.Fatalf("retired after the item was forgotten: %+v, %v", swept, err)
		}
	})
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

func TestItemsAtOnce(t *testing.T) {
	t.Parallel()

	t.Run("TheSameBatchTenTimes", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 1000)
		w.strict()
		var queued atomic.Int64
		together(10, func(i int) {
			var inputs []command.ItemInput
			for n := range 20 {
				place := (n + 7*i) % 20 // each call has them in another order
				inputs = append(inputs, in("s"+strconv.Itoa(place%3), input(strconv.Itoa(place), "text")))
			}
			receipt, err := w.try("", inputs...)
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			queued.Add(int64(receipt.Queued))
		})
		if n := one[int](w.world, `SELECT count(*) FROM tasks`); n != 20 || queued.Load() != 20 {
			t.Fatalf("%d tasks, %d told", n, queued.Load())
		}
		wantBalance(t, w.world, 960, 40)
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
		if at := w.traces(); !strings.Contains(at, "memory_history") || !strings.Contains(at, "tasks") {
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
	})
}

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

func TestGrep(t *testing.T) {
	t.Parallel()
	w := newItemWorld(t, 1000)
	var inputs []command.ItemInput
	for i := range 150 {
		inputs = append(inputs, in("s", input(strconv.Itoa(i), "text "+strconv.Itoa(i))))
	}
	inputs = append(inputs, in("t", input("cat", "I have a Cat")))
	w.keep(inputs...)
	w.remember(memory.Scope{UserID: "u", RunID: "t"}, "has a Cat", "else")
	w.remember(memory.Scope{UserID: "v"}, "has a Cat")
	grep := func(ask recall.Grep) recall.Grepped {
		t.Helper()
		if ask.Account == "" {
			ask.Account = "u"
		}
		if ask.Limit == 0 {
			ask.Limit = 100
		}
		found, err := w.read.Grep(t.Context(), w.caller.Workspace.ID, ask)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, c := range []struct {
		name           string
		ask            recall.Grep
		items, records int
		truncated      bool
	}{
		{"Substring", recall.Grep{Pattern: "Cat"}, 1, 1, false},
		{"CaseCounts", recall.Grep{Pattern: "cat"}, 0, 0, false},
		{"Regex", recall.Grep{Pattern: "(?i)\\bcat$", Regex: true}, 1, 1, false},
		{"ADotIsADot", recall.Grep{Pattern: "."}, 0, 0, false},
		{"Session", recall.Grep{Pattern: "t", Session: "t"}, 1, 1, false},
		{"EveryPage", recall.Grep{Pattern: "text 14"}, 11, 0, false},
		{"Limit", recall.Grep{Pattern: "text", Limit: 7}, 7, 0, true},
		{"AnotherAccount", recall.Grep{Pattern: "Cat", Account: "v"}, 0, 1, false},
	} {
		found := grep(c.ask)
		if len(found.Items) != c.items || len(found.Records) != c.records && c.name != "Session" || found.Truncated != c.truncated {
			t.Errorf("%s: %d items, %d records, truncated %v", c.name, len(found.Items), len(found.Records), found.Truncated)
		}
	}
	for _, pattern := range []string{"", "(", strings.Repeat("a", recall.MaxPattern+1), "a{1001}"} {
		_, err := w.read.Grep(t.Context(), w.caller.Workspace.ID, recall.Grep{Account: "u", Pattern: pattern, Regex: true, Limit: 1})
		if !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
}
