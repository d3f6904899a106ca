package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func TestDeliveries(t *testing.T) {
	t.Parallel()
	t.Run("TheyAreNoWorkOfOthers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		id := w.deliveries(e.ID)[0].TaskID
		who := claimant("worker")
		who.Kinds = task.Kinds()
		if ids, _, err := w.db.Due(t.Context(), who, 10); err != nil || len(ids) != 0 {
			t.Fatalf("due for memory work: %v %v", ids, err)
		}
		if ids, _, err := w.db.DueDeliveries(t.Context(), courier("c"), 10, 4); err != nil || len(ids) != 1 || ids[0] != id {
			t.Fatalf("due: %v %v", ids, err)
		}
	})
	t.Run("ASlowReceiverLeavesPlacesToOthers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		slow, fast := w.hook(wanted(endpoint.Succeeded)), w.hook(wanted(endpoint.Succeeded))
		for i := range 6 {
			w.succeed(keyName(i))
		}
		w.dispatched(12)
		for _, d := range w.deliveries(slow.ID)[:3] {
			w.carry(d.TaskID)
		}
		ids, more, err := w.db.DueDeliveries(t.Context(), courier("c"), 100, 4)
		if err != nil || more || len(ids) != 1+4 {
			t.Fatalf("%d due, %v, %v", len(ids), more, err)
		}
		ids, more, err = w.db.DueDeliveries(t.Context(), courier("c"), 2, 4)
		if err != nil || !more || len(ids) != 2 {
			t.Fatalf("%d due, %v, %v", len(ids), more, err)
		}
		_ = fast
	})
	t.Run("FiveDaysWithoutASuccessDisableTheWebhook", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.succeed("b")
		w.dispatched(2)
		all := w.deliveries(e.ID)
		refuse := func(id uuid.UUID) (bool, worker.Lease, endpoint.Parcel) {
			lease := w.carry(id)
			parcel, err := w.db.Parcel(t.Context(), lease)
			if err != nil || parcel == nil || !parcel.Active || len(parcel.Secrets) != 1 {
				t.Fatal(parcel, err)
			}
			disabled, err := w.db.Undelivered(t.Context(), lease, *parcel, endpoint.Receipt{Status: 500, Error: endpoint.Refused})
			if err != nil {
				t.Fatal(err)
			}
			return disabled, lease, *parcel
		}
		w.advance(0)
		if disabled, lease, _ := refuse(all[0].TaskID); disabled {
			t.Fatal("disabled by the first failure")
		} else {
			wantDone(t, "later", w.later(lease, task.DeliveryFailed, time.Second))
		}
		w.advance(4 * 24 * time.Hour)
		disabled, lease, parcel := refuse(all[0].TaskID)
		if disabled {
			t.Fatal("disabled after four days")
		}
		wantDone(t, "delivered", w.db.Delivered(t.Context(), lease, parcel, endpoint.Receipt{Status: 200}, worker.Work{}))
		w.advance(4 * 24 * time.Hour)
		if disabled, lease, _ := refuse(all[1].TaskID); disabled {
			t.Fatal("disabled although one was taken meanwhile")
		} else {
			wantDone(t, "later", w.later(lease, task.DeliveryFailed, time.Second))
		}
		w.advance(5*24*time.Hour + time.Minute)
		if disabled, _, _ := refuse(all[1].TaskID); !disabled {
			t.Fatal("not disabled after five days")
		}
		got, err := w.db.Endpoint(t.Context(), w.caller.Workspace.ID, e.ID)
		if err != nil || got.Active || got.Reason != endpoint.Failing || got.FailingSince == nil {
			t.Fatalf("%+v %v", got, err)
		}
		if d := w.deliveries(e.ID); *d[0].LastStatus != 500 && *d[1].LastStatus != 500 {
			t.Fatalf("%+v", d)
		}
	})
	t.Run("GoneIsGoneAtOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		lease := w.carry(w.deliveries(e.ID)[0].TaskID)
		parcel, _ := w.db.Parcel(t.Context(), lease)
		moved := *parcel
		moved.URL += "/before"
		disabled, err := w.db.Undelivered(t.Context(), lease, moved, endpoint.Receipt{Status: 410, Error: endpoint.Refused})
		if err != nil || disabled {
			t.Fatal("disabled by what an earlier URL has answered", err)
		}
		disabled, err = w.db.Undelivered(t.Context(), lease, *parcel, endpoint.Receipt{Status: 410, Error: endpoint.Refused})
		if err != nil || !disabled {
			t.Fatal(disabled, err)
		}
		got, err := w.db.Endpoint(t.Context(), w.caller.Workspace.ID, e.ID)
		if err != nil || got.Active || got.Reason != endpoint.Gone {
			t.Fatalf("%+v %v", got, err)
		}
	})
	t.Run("ALostLeaseNotesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		id := w.deliveries(e.ID)[0].TaskID
		old := w.carry(id)
		parcel, _ := w.db.Parcel(t.Context(), old)
		w.advance(2 * time.Minute)
		heir := w.carry(id)
		wantLost(t, "delivered", w.db.Delivered(t.Context(), old, *parcel, endpoint.Receipt{Status: 200}, worker.Work{}))
		if _, err := w.db.Undelivered(t.Context(), old, *parcel, endpoint.Receipt{Status: 500, Error: endpoint.Refused}); err != nil {
			t.Fatal(err)
		}
		if d := w.deliveries(e.ID)[0]; d.LastStatus != nil || d.Status != task.EventRunning {
			t.Fatalf("%+v", d)
		}
		wantDone(t, "delivered", w.db.Delivered(t.Context(), heir, *parcel, endpoint.Receipt{Status: 200}, worker.Work{}))
		w.books()
	})
	t.Run("CrashesEndIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		id := w.deliveries(e.ID)[0].TaskID
		for range maxAttempts {
			w.carry(id)
			w.advance(2 * time.Minute)
			if _, err := w.db.Rescue(t.Context(), maxAttempts, 10); err != nil {
				t.Fatal(err)
			}
		}
		if d := w.deliveries(e.ID)[0]; d.Status != task.EventFailed || d.ErrorCode != task.CodeAttemptsExhausted || d.Attempts != maxAttempts {
			t.Fatalf("%+v", d)
		}
		w.books()
	})
	t.Run("RotationSignsWithBothForADay", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		made, first, err := w.endpoints().Create(t.Context(), w.caller, wanted(endpoint.Succeeded))
		if err != nil {
			t.Fatal(err)
		}
		_, second, err := w.endpoints().Rotate(t.Context(), w.caller, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		tested, err := w.endpoints().Test(t.Context(), w.caller, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		lease := w.carry(tested.TaskID)
		parcel, err := w.db.Parcel(t.Context(), lease)
		if err != nil || len(parcel.Secrets) != 2 || parcel.Secrets[0] != second || parcel.Secrets[1] != first {
			t.Fatal(err, len(parcel.Secrets))
		}
		w.advance(24*time.Hour + time.Second)
		parcel, err = w.db.Parcel(t.Context(), lease)
		if err != nil || len(parcel.Secrets) != 1 || parcel.Secrets[0] != second {
			t.Fatal(err, len(parcel.Secrets))
		}
	})
	t.Run("DeletedWithTheirWebhook", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		id := w.deliveries(e.ID)[0].TaskID
		wantDone(t, "later", w.later(w.carry(id), task.DeliveryFailed, time.Hour))
		if err := w.endpoints().Delete(t.Context(), w.caller, e.ID); err != nil {
			t.Fatal(err)
		}
		if n := one[int64](w, `SELECT (SELECT count(*) FROM webhooks) + (SELECT count(*) FROM webhook_deliveries)`); n != 0 {
			t.Fatalf("%d rows left", n)
		}
		lease := w.carry(id) // it is due at once
		if parcel, err := w.db.Parcel(t.Context(), lease); err != nil || parcel != nil {
			t.Fatal(parcel, err)
		}
		wantDone(t, "fail", w.fail(lease, task.Cancelled))
		w.books()
	})
}

func TestReplay(t *testing.T) {
	t.Parallel()
	t.Run("SendsTheSameMessageAgain", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		for i := range 3 {
			w.succeed(keyName(i))
		}
		w.dispatched(3)
		all := w.deliveries(e.ID)
		first := w.carry(all[0].TaskID)
		sent, _ := w.db.Parcel(t.Context(), first)
		wantDone(t, "delivered", w.db.Delivered(t.Context(), first, *sent, endpoint.Receipt{Status: 200}, worker.Work{}))
		failed := w.carry(all[1].TaskID)
		wantDone(t, "fail", w.fail(failed, task.DeliveryFailed))
		wantDone(t, "later", w.later(w.carry(all[2].TaskID), task.DeliveryFailed, time.Hour))

		replayed, err := w.endpoints().Replay(t.Context(), w.caller, e.ID, endpoint.Selection{FailedOnly: true}, nil)
		if err != nil || replayed.Count != 1 || replayed.Next != nil {
			t.Fatalf("failed only: %+v %v", replayed, err)
		}
		since := all[0].CreatedAt.Add(-time.Second)
		replayed, err = w.endpoints().Replay(t.Context(), w.caller, e.ID, endpoint.Selection{Since: &since}, nil)
		if err != nil || replayed.Count != 3 {
			t.Fatalf("%+v %v", replayed, err)
		}
		again := map[uuid.UUID]endpoint.Delivery{}
		for _, d := range w.deliveries(e.ID) {
			again[d.Message] = d
		}
		if again[all[0].Message].TaskID == all[0].TaskID || again[all[1].Message].TaskID == all[1].TaskID || again[all[2].Message].TaskID != all[2].TaskID {
			t.Fatal("what has ended has a new task, what waits has its own")
		}
		ids, _, err := w.db.DueDeliveries(t.Context(), courier("c"), 10, 10)
		if err != nil || len(ids) != 3 {
			t.Fatalf("%d due: %v", len(ids), err)
		}
		resent, err := w.db.Parcel(t.Context(), w.carry(again[all[0].Message].TaskID))
		if err != nil || resent.Message != sent.Message || string(resent.Body) != string(sent.Body) {
			t.Fatal("another message is sent", err)
		}
	})
	t.Run("GoesOnInPages", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		for i := range 5 {
			w.succeed(keyName(i))
		}
		w.dispatched(5)
		for _, d := range w.deliveries(e.ID) {
			wantDone(t, "fail", w.fail(w.carry(d.TaskID), task.DeliveryFailed))
		}
		counts := []int{}
		var after *write.ReplayPlace
		since := time.Now().Add(-time.Hour)
		for range 4 {
			page, err := w.db.Replay(t.Context(), w.caller.Workspace.ID, e.ID, endpoint.Selection{Since: &since}, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, page.Count)
			if after = page.Next; after == nil {
				break
			}
		}
		if fmt.Sprint(counts) != "[2 2 1]" {
			t.Fatal(counts)
		}
	})
	t.Run("AFailedDeliveryIsRetriedLikeAnyEvent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		d := w.deliveries(e.ID)[0]
		wantDone(t, "fail", w.fail(w.carry(d.TaskID), task.DeliveryFailed))
		w.accept("b", say("u", "b"))
		w.exec(`UPDATE workspaces SET max_pending = 1`) // it is full, which a delivery has nothing to do with
		w.advance(time.Minute)                          // what is known of how much waits is too old
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, d.TaskID, &generation, nil); err != nil {
			t.Fatal(err)
		}
		lease := w.carry(d.TaskID)
		parcel, err := w.db.Parcel(t.Context(), lease)
		if err != nil || parcel == nil || parcel.Message != d.Message || lease.Generation != 2 {
			t.Fatal(parcel, err)
		}
	})
}
