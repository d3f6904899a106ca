package holdfast_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

// patience bounds what a test waits for on a busy machine.
const patience = time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// must is for calls that have to succeed.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// TestLostAnswers is what the client is for: the answer to a write gets lost after it was accepted.
func TestLostAnswers(t *testing.T) {
	t.Parallel()

	t.Run("AreOneEventAndOneCharge", func(t *testing.T) {
		t.Parallel()
		ctx := within(t)
		direct, team := working.workspace(t, 100)
		proxy := newCutter(t, working.API, 2)
		client := must[*holdfast.Client](t)(holdfast.New(proxy.url(), working.key(t, team), holdfast.WithBackoff(time.Millisecond, time.Millisecond)))
		event := must[*holdfast.Event](t)(client.AddAndWait(ctx, holdfast.AddRequest{Scope: holdfast.User("ada"), Content: "I live in Lisbon."}))
		if event.Status != holdfast.Succeeded || event.Outcome != holdfast.Stored || proxy.losses() != 2 {
			t.Fatalf("%+v after %d lost answers", event, proxy.losses())
		}
		events := must[*holdfast.Page[holdfast.Event]](t)(direct.Events.List(ctx, holdfast.EventFilter{}, holdfast.PageOptions{}))
		memories := must[*holdfast.Page[holdfast.Memory]](t)(direct.Memories.List(ctx, holdfast.User("ada"), holdfast.PageOptions{}))
		if len(events.Results) != 1 || events.Results[0].ID != event.ID || len(memories.Results) != 1 {
			t.Fatalf("one event and one memory, not %d and %d", len(events.Results), len(memories.Results))
		}
		chargedOnce(ctx, t, direct, event.ID)
	})

	t.Run("OfAServiceThatWasKilledAreOneEventAndOneCharge", func(t *testing.T) {
		t.Parallel()
		ctx := within(t)
		direct, team := mortal.workspace(t, 100)
		proxy := newCutter(t, mortal.API, 1)
		restarted := make(chan struct{})
		var broken error
		proxy.first = func() {
			mortal.kill()
			go func() {
				defer close(restarted)
				if broken = mortal.start(); broken == nil {
					broken = mortal.ready()
				}
			}()
		}
		// Until the service is back the proxy ends every connection at once.
		client := must[*holdfast.Client](t)(holdfast.New(proxy.url(), mortal.key(t, team), holdfast.WithMaxRetries(1000),
			holdfast.WithBackoff(50*time.Millisecond, 200*time.Millisecond)))
		event, err := client.AddAndWait(ctx, holdfast.AddRequest{Scope: holdfast.User("ada"), Content: "I live in Lisbon."})
		if proxy.losses() != 1 {
			t.Fatalf("%d lost answers: %v", proxy.losses(), err)
		}
		if <-restarted; broken != nil || err != nil {
			t.Fatalf("restart: %v, event: %v", broken, err)
		}
		page := must[*holdfast.Page[holdfast.Memory]](t)(direct.Memories.List(ctx, holdfast.User("ada"), holdfast.PageOptions{}))
		if event.Status != holdfast.Succeeded || len(page.Results) != 1 {
			t.Fatalf("one memory, not %d: %+v", len(page.Results), event)
		}
		chargedOnce(ctx, t, direct, event.ID)
	})

	t.Run("AreUnknownUntilTheSameKeyIsSentAgain", func(t *testing.T) {
		t.Parallel()
		ctx := within(t)
		direct, team := working.workspace(t, 100)
		proxy := newCutter(t, working.API, 1000)
		client := must[*holdfast.Client](t)(holdfast.New(proxy.url(), working.key(t, team), holdfast.WithBackoff(time.Millisecond, time.Millisecond)))
		add := holdfast.AddRequest{Scope: holdfast.User("ada"), Content: "I live in Lisbon."}
		_, err := client.Add(ctx, add)
		var unknown *holdfast.UnknownError
		if !errors.As(err, &unknown) || unknown.Attempts != 5 || proxy.losses() != 5 {
			t.Fatalf("after %d lost answers: %v", proxy.losses(), err)
		}
		found, known, err := direct.Events.ByKey(ctx, unknown.Key)
		if err != nil || !known || found.Key != unknown.Key {
			t.Fatalf("what became of it: %+v %t %v", found, known, err)
		}
		receipt := must[*holdfast.Receipt](t)(direct.Add(ctx, add, holdfast.WithKey(unknown.Key)))
		if receipt.EventID != found.ID || !receipt.Replayed || receipt.Key != unknown.Key {
			t.Fatalf("the same event, not %+v", receipt)
		}
		must[*holdfast.Event](t)(direct.Events.Wait(ctx, receipt.EventID))
		chargedOnce(ctx, t, direct, receipt.EventID)
		if _, known, err := direct.Events.ByKey(ctx, holdfast.NewKey()); known || err != nil {
			t.Fatalf("a key that nobody sent: %t %v", known, err)
		}
	})

	t.Run("OfVerbatimAddsUpdatesAndItemsChangeNothingTwice", func(t *testing.T) {
		t.Parallel()
		ctx := within(t)
		direct, team := working.workspace(t, 100)
		key := working.key(t, team)
		losing := func() *holdfast.Client {
			proxy := newCutter(t, working.API, 1)
			return must[*holdfast.Client](t)(holdfast.New(proxy.url(), key, holdfast.WithBackoff(time.Millisecond, time.Millisecond)))
		}
		stored := must[*holdfast.Verbatim](t)(losing().AddVerbatim(ctx, holdfast.AddRequest{Scope: holdfast.User("ada"), Content: "one"}))
		if !stored.Replayed || len(stored.Results) != 1 {
			t.Fatalf("got %+v", stored)
		}
		id := stored.Results[0].ID
		changed := must[*holdfast.Changed](t)(losing().Memories.Update(ctx, id, holdfast.Change{Content: "two", Version: 1}))
		if !changed.Replayed || changed.Version != 2 {
			t.Fatalf("the first result and no VERSION_CONFLICT: %+v", changed)
		}
		receipt := must[*holdfast.ItemsReceipt](t)(losing().Items("ada").Add(ctx, []holdfast.NewItem{{Text: "I have a cat called Rex."}}))
		if len(receipt.Items) != 1 || receipt.Items[0].ID != receipt.Key+":0" {
			t.Fatalf("got %+v", receipt)
		}
		must[*holdfast.Event](t)(direct.Events.Wait(ctx, receipt.Items[0].EventID))
		if deleted := must[*holdfast.Changed](t)(losing().Memories.Delete(ctx, id)); !deleted.Replayed || deleted.Event != "DELETE" {
			t.Fatalf("got %+v", deleted)
		}
		if balance := must[*holdfast.Balance](t)(direct.Credits.Balance(ctx)); balance.Available != 97 || balance.Held != 0 {
			t.Fatalf("1 for the verbatim add, 2 for the item: %+v", balance)
		}
	})
}

// chargedOnce fails unless the workspace's 100 credits are less the price of this one event.
func chargedOnce(ctx context.Context, t *testing.T, client *holdfast.Client, event string) {
	t.Helper()
	balance := must[*holdfast.Balance](t)(client.Credits.Balance(ctx))
	if balance.Available != 98 || balance.Held != 0 || !balance.Metered {
		t.Fatalf("100 less 2: %+v", balance)
	}
	kinds := map[string]int{}
	for entry, err := range client.Credits.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Type != "grant" && entry.EventID != event {
			t.Fatalf("another event in the journal: %+v", entry)
		}
		kinds[entry.Type]++
	}
	if kinds["grant"] != 1 || kinds["hold"] != 1 || kinds["settle"] != 1 || len(kinds) != 3 {
		t.Fatalf("one grant, one hold, one settle: %v", kinds)
	}
}

// TestIdle uses a service without a worker: whatever is accepted waits.
func TestIdle(t *testing.T) {
	t.Parallel()

	t.Run("WaitEndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		client := idle.client(t, 100)
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		event, err := client.AddAndWait(ctx, tea, holdfast.WithKey("order-17"))
		var wait *holdfast.WaitError
		if !errors.As(err, &wait) || !errors.Is(err, context.DeadlineExceeded) || wait.Key != "order-17" {
			t.Fatalf("got %v", err)
		}
		if event != nil && event.Status != holdfast.Pending {
			t.Fatalf("got %+v", event)
		}
	})

	t.Run("CancelFailsAndRetryOpensARun", func(t *testing.T) {
		t.Parallel()
		ctx := within(t)
		client := idle.client(t, 100)
		receipt := must[*holdfast.Receipt](t)(client.Add(ctx, tea))
		for range 2 {
			if event := must[*holdfast.Event](t)(client.Events.Cancel(ctx, receipt.EventID)); event.Status != holdfast.Failed {
				t.Fatalf("got %+v", event)
			}
		}
		event, err := client.Events.Wait(ctx, receipt.EventID)
		var failed *holdfast.EventFailedError
		if !errors.As(err, &failed) || failed.Code != "CANCELLED" || failed.Event != event {
			t.Fatalf("got %v", err)
		}
		for range 2 {
			again := must[*holdfast.Event](t)(client.Events.Retry(ctx, receipt.EventID, event.Generation))
			if again.Status != holdfast.Pending || again.Generation != 2 {
				t.Fatalf("got %+v", again)
			}
		}
		if balance := must[*holdfast.Balance](t)(client.Credits.Balance(ctx)); balance.Available != 98 || balance.Held != 2 {
			t.Fatalf("one hold: %+v", balance)
		}
		must[*holdfast.Event](t)(client.Events.Cancel(ctx, receipt.EventID))
		if again := must[*holdfast.Event](t)(client.Events.Retry(ctx, receipt.EventID, 0)); again.Generation != 3 || again.Key == "" {
			t.Fatalf("a retry under a key: %+v", again)
		}
	})

	t.Run("CreditsRunOutAndTheSameKeyGoesOn", func(t *testing.T) {
		t.Parallel()
		ctx := within(t)
		client, team := idle.workspace(t, 0)
		_, err := client.Add(ctx, tea)
		var refused *holdfast.Error
		if !errors.As(err, &refused) || refused.Code != "INSUFFICIENT_CREDITS" || refused.Status != 402 || refused.Attempts != 1 || refused.RequestID == "" {
			t.Fatalf("got %v", err)
		}
		if refused.Details["required"] != 2.0 || refused.Details["available"] != 0.0 {
			t.Fatalf("got %v", refused.Details)
		}
		idle.grant(t, team, "top-up", 2)
		if receipt := must[*holdfast.Receipt](t)(client.Add(ctx, tea, holdfast.WithKey(refused.Key))); receipt.Replayed {
			t.Fatalf("got %+v", receipt)
		}
		_, err = client.Add(ctx, holdfast.AddRequest{Scope: tea.Scope, Content: "I like coffee."}, holdfast.WithKey(refused.Key))
		if !errors.As(err, &refused) || refused.Code != "IDEMPOTENCY_CONFLICT" || refused.Retryable {
			t.Fatalf("got %v", err)
		}
	})
}

// TestSnapshotsMove goes from one workspace to another.
func TestSnapshotsMove(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	from, to := working.client(t, 100), working.client(t, 0)
	must[*holdfast.Verbatim](t)(from.AddVerbatim(ctx, holdfast.AddRequest{Scope: holdfast.User("ada"), Content: "one"}))
	receipt := must[*holdfast.Receipt](t)(from.Snapshots.Export(ctx))
	event := must[*holdfast.Event](t)(from.Events.Wait(ctx, receipt.EventID))
	if event.Progress == nil || event.Progress.Done != 1 || event.Progress.Total != 1 {
		t.Fatalf("got %+v", event.Progress)
	}
	body := must[io.ReadCloser](t)(from.Snapshots.Read(ctx, receipt.EventID))
	snapshot := must[[]byte](t)(io.ReadAll(body))
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	erased := must[*holdfast.Erasure](t)(from.Memories.EraseScope(ctx, holdfast.User("ada")))
	if !erased.Done || erased.Deleted != 1 || erased.EventID == "" || erased.Key == "" {
		t.Fatalf("got %+v", erased)
	}
	_, err := from.Snapshots.Read(ctx, receipt.EventID)
	var refused *holdfast.Error
	if !errors.As(err, &refused) || refused.Status != 410 || refused.Code != "INPUT_EXPIRED" {
		t.Fatalf("an erase removes exports: %v", err)
	}
	receipt = must[*holdfast.Receipt](t)(to.Snapshots.Import(ctx, newPipe(snapshot)))
	must[*holdfast.Event](t)(to.Events.Wait(ctx, receipt.EventID))
	page := must[*holdfast.Page[holdfast.Memory]](t)(to.Memories.List(ctx, holdfast.User("ada"), holdfast.PageOptions{}))
	if len(page.Results) != 1 || page.Results[0].Memory != "one" {
		t.Fatalf("got %+v", page.Results)
	}

	other := working.client(t, 0)
	receipt = must[*holdfast.Receipt](t)(other.Snapshots.Import(ctx, newPipe([]byte("{}\n"))))
	event, err = other.Events.Wait(ctx, receipt.EventID)
	var failed *holdfast.EventFailedError
	if !errors.As(err, &failed) || failed.Code != "INPUT_UNREADABLE" || event.Progress == nil || event.Progress.Line != 1 {
		t.Fatalf("got %v", err)
	}
}
