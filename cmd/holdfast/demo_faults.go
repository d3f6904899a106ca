package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

// The facts that the stub model answers, and what is said for them.
const (
	killedSaid = "My sister Mia moved to Porto in May."
	killedFact = "The user's sister Mia moved to Porto in May"
	purgedSaid = "I prefer trains to planes."
	// natsBound is how long the demo waits for its own NATS.
	natsBound = 5 * time.Second
)

// killedWorker kills a worker while the model thinks. The model is a stub in this process that waits until told.
func (d *demo) killedWorker(ctx context.Context) error {
	d.title("A worker is killed in the middle of the model call")
	if err := d.world.workers[0].end(); err != nil {
		return err
	}
	stub, err := stubmodel.Start("")
	if err != nil {
		return err
	}
	d.world.stub = stub
	stub.Always(stubmodel.Match{}, func(stubmodel.Call) stubmodel.Answer { return stubmodel.Facts(killedFact) })
	hold := stub.Hold(stubmodel.Match{})
	model := map[string]string{"EXTRACTOR": "openai", "OPENAI_BASE_URL": stub.OpenAIURL(), "OPENAI_MODEL": "stub"}
	victim, err := d.world.worker("worker-2", model)
	if err != nil {
		return err
	}
	got, err := d.post(ctx, "demo-killed-worker", map[string]any{"user_id": demoUser, "messages": killedSaid})
	if err != nil {
		return err
	}
	d.charged++
	select {
	case <-hold.Arrived():
	case <-victim.Exited():
		return fmt.Errorf("the worker ended: %s", d.world.logTail("worker-2"))
	case <-ctx.Done():
		return ctx.Err()
	}
	during, err := d.event(ctx, got.EventID)
	if err != nil {
		return err
	}
	d.say("   A local stub model has the request of worker %d and does not answer. %s is %s.", victim.PID(), got.EventID, during.Status)
	victim.kill()
	killed := time.Now()
	d.say("   SIGKILL to worker %d. Another worker starts.", victim.PID())
	if _, err := d.world.worker("worker-3", model); err != nil {
		return err
	}
	e, err := d.await(ctx, got.EventID)
	if err != nil {
		return err
	}
	d.say("   %.1f s later, when the lease of 2 s had expired: %s, %d attempts, %d model calls", time.Since(killed).Seconds(), e.Status, e.Attempts, stub.Count(stubmodel.Match{}))
	return d.killedOnce(ctx, during, e, stub.Count(stubmodel.Match{}))
}

// killedOnce checks what the kill left behind.
func (d *demo) killedOnce(ctx context.Context, during, after seenEvent, calls int) error {
	memories, err := d.memories(ctx)
	if err != nil {
		return err
	}
	stored := 0
	for _, text := range memories {
		if text == killedFact {
			stored++
		}
	}
	settled, err := d.entries(ctx, after.ID, "settle")
	if err != nil {
		return err
	}
	if err := firstOf(
		claim(during.Status == "RUNNING", "the event was RUNNING during the call, not %s", during.Status),
		claim(after.Status == "SUCCEEDED" && after.Attempts == 2, "it succeeded in the second attempt, not %s in %d", after.Status, after.Attempts),
		claim(calls == 2, "the model was asked twice, not %d times", calls),
		claim(stored == 1, "the memory is there once, not %d times", stored),
		claim(len(settled) == 1, "it is charged once, not %d times", len(settled)),
		d.balance(ctx, 0, 2),
	); err != nil {
		return err
	}
	d.proves("a crash costs time and a second model call, never a second memory or charge")
	return nil
}

// purgedHint throws the hint away and lets repair find the task.
func (d *demo) purgedHint(ctx context.Context) error {
	d.title("The hint is lost, and nobody polls")
	if err := d.world.workers[len(d.world.workers)-1].end(); err != nil {
		return err
	}
	got, err := d.post(ctx, "demo-purged-hint", map[string]any{"user_id": demoUser, "messages": purgedSaid})
	if err != nil {
		return err
	}
	d.charged++
	if err := d.purge(ctx); err != nil {
		return err
	}
	if _, err := d.world.worker("worker-4", map[string]string{"WORKER_POLL": "0"}); err != nil {
		return err
	}
	waited, err := d.get(ctx, "/v1/events/"+url.PathEscape(got.EventID)+"?wait=2")
	if err != nil {
		return err
	}
	d.say("   The stream of hints was purged, and the worker polls nothing: after 2 s %s is %s.", got.EventID, waited.Status)
	if err := claim(waited.Status == "PENDING", "without hint and poll it stays PENDING, not %s", waited.Status); err != nil {
		return err
	}
	printed, err := d.world.repair(ctx)
	if err != nil {
		return err
	}
	d.say("   repair --once:")
	for line := range strings.Lines(printed) {
		d.say("     %s", strings.TrimRight(line, "\n"))
	}
	e, err := d.await(ctx, got.EventID)
	if err != nil {
		return err
	}
	d.say("   The worker got the new hint: %s is %s.", got.EventID, e.Status)
	hinted := slices.ContainsFunc(strings.Split(printed, "\n"), func(line string) bool {
		fields := strings.Fields(line)
		return len(fields) == 5 && fields[0] == "hints" && fields[2] == "1"
	})
	if err := firstOf(
		claim(hinted, "repair made a new hint for the task"),
		claim(e.Status == "SUCCEEDED" && e.Attempts == 1, "it succeeded in one attempt, not %s in %d", e.Status, e.Attempts),
		d.balance(ctx, 0, 3),
	); err != nil {
		return err
	}
	d.proves("PostgreSQL is the truth: a hint only makes it faster, and repair makes a new one")
	return nil
}

// purge removes every hint from the stream.
func (d *demo) purge(ctx context.Context) error {
	hints, err := wakeup.Connect(ctx, wakeup.Config{URL: d.world.running.NATSURL, Name: "holdfast-demo", Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() { _ = hints.Stop(context.WithoutCancel(ctx)) }()
	limited, cancel := context.WithTimeout(ctx, natsBound)
	defer cancel()
	waiting, err := hints.Waiting(limited, wakeup.Interactive)
	if err != nil {
		return err
	}
	// The killed worker's hint may still be out for work beside the new one.
	if err := claim(waiting >= 1, "the hint waits in NATS before it is purged"); err != nil {
		return err
	}
	return hints.Purge(limited)
}

// receipt is the answer to a post.
type receipt struct {
	EventID  string `json:"event_id"`
	Status   string `json:"status"`
	status   int
	replayed bool
}

func (d *demo) post(ctx context.Context, key string, body map[string]any) (receipt, error) {
	got, err := d.api.call(ctx, http.MethodPost, "/v1/memories", key, body)
	if err != nil {
		return receipt{}, err
	}
	r := receipt{status: got.status, replayed: got.header.Get("Idempotent-Replayed") == "true"}
	return r, got.read(&r)
}
