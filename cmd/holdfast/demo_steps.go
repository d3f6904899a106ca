package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

const (
	demoUser = "demo-user"
	firstKey = "demo-conversation-1"
	// price is what an inferred add costs.
	price = 2
	// repeats is how often the same request is sent at once.
	repeats = 20
	// eventBound is how long an event of the demo may take; it takes well under a second, or a lease.
	eventBound = 40 * time.Second
	// shown is how many memories are listed.
	shown = 12
)

// request is the conversation as it is posted, with a mark in a message and one in the instructions.
func (d *demo) request() map[string]any {
	messages := append(slices.Clone(d.conversation.messages), message{
		Role: "assistant", Content: "You're welcome! (This line of small talk holds the mark " + d.canaries[0] + ".)",
	})
	return map[string]any{
		"user_id": demoUser, "messages": messages, "instructions": "Ignore the mark " + d.canaries[1] + ".",
	}
}

func (d *demo) receipt(ctx context.Context) error {
	d.title("A receipt, before any work is done")
	before := time.Now()
	got, err := d.post(ctx, firstKey, d.request())
	if err != nil {
		return err
	}
	d.first, d.charged = got.EventID, 1
	d.say("   POST /v1/memories with Idempotency-Key %s: %d in %d ms, %s is %s", firstKey, got.status, time.Since(before).Milliseconds(), got.EventID, got.Status)
	found, tables, err := postgres.FindText(ctx, d.world.running.DatabaseURL, d.canaries[0])
	if err != nil {
		return err
	}
	d.say("   The raw text now waits in %s, and in none of the other %d tables.", names(found), tables-len(found))
	if err := firstOf(
		claim(got.status == http.StatusAccepted && got.Status == "PENDING", "the receipt is 202 PENDING, not %d %s", got.status, got.Status),
		claim(len(found) == 1 && found["tasks"] == 1, "the text waits in one row of tasks, not in %v", found),
		d.trace(ctx),
		d.balance(ctx, 1, 0),
	); err != nil {
		return err
	}
	d.proves("key, task and the hold of %d credits were committed before the answer; no worker had to run for that", price)
	return nil
}

func (d *demo) completion(ctx context.Context) error {
	d.title("A worker starts, and the event comes to its end")
	worker, err := d.world.worker("worker-1", nil)
	if err != nil {
		return err
	}
	e, err := d.await(ctx, d.first)
	if err != nil {
		return err
	}
	d.say("   Worker (process %d, offline model): %s, outcome %s, %d attempt", worker.PID(), e.Status, e.what(), e.Attempts)
	memories, err := d.memories(ctx)
	if err != nil {
		return err
	}
	for i, text := range memories {
		if i == shown {
			d.say("     … and %d more", len(memories)-shown)
			break
		}
		d.say("     - %s", text)
	}
	if err := firstOf(
		claim(e.Status == "SUCCEEDED" && e.Attempts == 1, "the event succeeded in one attempt, not %s in %d", e.Status, e.Attempts),
		claim(len(e.Results) == len(memories), "the event names all %d memories, not %d", len(memories), len(e.Results)),
		d.balance(ctx, 0, 1),
	); err != nil {
		return err
	}
	if len(memories) == 0 {
		d.say("   The offline model found nothing worth keeping in this conversation, so this step shows nothing about memories; steps 5")
		d.say("   and 6 store some.")
		d.proves("the event says so itself (%s), and its %d credits are charged: the model did run", e.what(), price)
		return nil
	}
	d.proves("an event that says SUCCEEDED names the memories that are there, all %d of them, and its %d credits are charged", len(memories), price)
	return nil
}

func (d *demo) sameRequest(ctx context.Context) error {
	d.title("The same request again, %d times at once", repeats)
	receipts := make([]receipt, repeats)
	errs := make([]error, repeats)
	var all sync.WaitGroup
	for i := range repeats {
		all.Go(func() { receipts[i], errs[i] = d.post(ctx, firstKey, d.request()) })
	}
	all.Wait()
	if err := firstOf(errs...); err != nil {
		return err
	}
	for _, r := range receipts {
		if err := claim(r.EventID == d.first && r.replayed && r.Status == "SUCCEEDED", "a repeat answers %s SUCCEEDED, not %s %s", d.first, r.EventID, r.Status); err != nil {
			return err
		}
	}
	memories, err := d.memories(ctx)
	if err != nil {
		return err
	}
	d.say("   %d answers: 202, Idempotent-Replayed, always %s", repeats, d.first)
	if err := firstOf(
		claim(len(slices.Compact(slices.Sorted(slices.Values(memories)))) == len(memories), "no memory is there twice"),
		d.balance(ctx, 0, 1),
	); err != nil {
		return err
	}
	if len(memories) == 0 {
		d.proves("one command is one event, whoever retries: still no memory, and nothing charged")
		return nil
	}
	d.proves("one command is one event, whoever retries: none of %d memories twice, nothing charged", len(memories))
	return nil
}

func (d *demo) otherBody(ctx context.Context) error {
	d.title("The same key with another body")
	before, err := d.event(ctx, d.first)
	if err != nil {
		return err
	}
	other := map[string]any{"user_id": demoUser, "messages": "I moved to Oslo."}
	got, err := d.api.send(ctx, http.MethodPost, "/v1/memories", firstKey, other)
	if err != nil {
		return err
	}
	var p problem
	if err := got.read(&p); err != nil {
		return err
	}
	d.say("   %d %s: %s", got.status, p.Code, p.Message)
	after, err := d.event(ctx, d.first)
	if err != nil {
		return err
	}
	if err := firstOf(
		claim(got.status == http.StatusConflict && p.Code == "IDEMPOTENCY_CONFLICT", "another body is refused with 409, not %d", got.status),
		claim(string(before.body) == string(after.body), "the first event is as it was, byte for byte"),
		d.balance(ctx, 0, 1),
	); err != nil {
		return err
	}
	d.proves("a key that is reused by mistake changes nothing about the first request")
	return nil
}

// names lists tables with their rows.
func names(found map[string]int) string {
	var list []string
	for table, n := range found {
		list = append(list, fmt.Sprintf("%s (%d row)", table, n))
	}
	slices.Sort(list)
	if len(list) == 0 {
		return "no table"
	}
	return strings.Join(list, ", ")
}

// firstOf returns the first error that is one.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
