package postgres_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/write"
)

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

	t.Run("WhatIsSentDuringAnEraseStays", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("landed", "one"), input("queued", "two"))
		w.land("landed", "one")
		record := one[uuid.UUID](w.world, `SELECT id FROM memories`)
		erase := w.fenceOf("u")
		if _, err := w.items.Correct(t.Context(), w.caller, "u", record, nil); !fault.Is(err, fault.MemoryNotFound) {
			t.Fatalf("correct: %v", err)
		}
		wantReceipt(t, w.keep(input("landed", "one"), input("queued", "two")), 2, 2, false, false)
		w.endErase(erase)
		wantReceipt(t, w.keep(input("landed", "one"), input("queued", "two")), 0, 2, false, false)
		w.wantLive("")
		w.land("landed", "one")
		w.land("queued", "two")
		w.wantLive("one|two")
		w.books()
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
