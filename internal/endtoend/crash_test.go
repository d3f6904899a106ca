package endtoend

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestWorkerKilled kills a worker at each crash point and lets another one finish.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point string
		calls int // extractions that the stub sees, the killed worker's included
	}{
		{"claim.committed", 1},
		{"worker.before_inference", 1},
		{"worker.after_inference", 2},
		{"commit.in_tx", 2},
		{"commit.committed", 1},
		{"worker.after_commit", 1},
		{"settle.in_tx", 1},
		{"settle.committed", 1},
		{"worker.after_settle", 1},
	} {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t))
			s.startAPI()
			doomed := s.startWorker(point(c.point, "kill"))
			id := s.add("kill-"+c.point, conversation(c.point, "FACT: "+c.point+" one", "FACT: "+c.point+" two", "small talk"))
			announced(doomed, c.point)
			if code := doomed.Wait(patience); code == 0 {
				t.Fatal("the worker ended by itself")
			}
			heir := s.startWorker()
			e := s.succeeded(id)
			heir.Signal(syscall.SIGTERM)
			if code := heir.Wait(patience); code != 0 {
				t.Fatalf("the second worker ended with %d", code)
			}
			if got := s.texts(c.point); got != c.point+" one|"+c.point+" two" {
				t.Fatalf("records %q", got)
			}
			if len(e.Results) != 2 || e.Usage.Settled != 2 || e.Usage.Released != 0 {
				t.Fatalf("event %+v", e)
			}
			match := stubmodel.With(c.point + " one")
			match.Endpoint = stubmodel.Chat
			if n := s.stub.Count(match); n != c.calls {
				t.Fatalf("%d extractions, want %d", n, c.calls)
			}
			s.sound(2)
		})
	}
}

// TestFailingWorkerKilled kills a worker in the transaction that fails a task.
func TestFailingWorkerKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fail.in_tx", "fail.committed", "later.committed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			retries := "HOLDFAST_OUTPUT_RETRIES=0"
			if name == "later.committed" {
				retries = "HOLDFAST_OUTPUT_RETRIES=1"
			}
			s := newSystem(t, testkit.NewDatabase(t), retries)
			s.startAPI()
			s.stub.Always(stubmodel.With("nonsense"), stubmodel.Reply(stubmodel.Content(`{"no": "facts"}`)))
			doomed := s.startWorker(point(name, "kill"))
			id := s.add("fail-"+name, conversation(name, "nonsense "+name))
			announced(doomed, name)
			doomed.Wait(patience)
			heir := s.startWorker()
			e := s.ended(id)
			heir.Signal(syscall.SIGTERM)
			heir.Wait(patience)
			if e.Status != "FAILED" || e.Error == nil || e.Error.Code != "OUTPUT_INVALID" || e.Usage.Released != 2 || e.Usage.Settled != 0 {
				t.Fatalf("event %+v", e)
			}
			s.sound(0)
		})
	}
}

// TestAPIKilled kills the API around the acceptance: the same key resolves what the client cannot know.
func TestAPIKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"accept.in_tx", "accept.committed", "accept.before_hint"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t))
			s.startWorker()
			doomed := s.startAPI(point(name, "kill"))
			body := conversation(name, "FACT: "+name)
			if a, err := s.try("POST", "/v1/memories", name, body); err == nil {
				t.Fatalf("answered %d by a dead API", a.status)
			}
			doomed.Wait(patience)
			s.startAPI()
			a := s.do("POST", "/v1/memories", name, body)
			if a.status != http.StatusAccepted {
				t.Fatalf("the same key: %d %s", a.status, a.body)
			}
			if replayed := a.header.Get("Idempotent-Replayed") == "true"; replayed != (name != "accept.in_tx") {
				t.Fatalf("replayed: %v", replayed)
			}
			var receipt struct {
				EventID string `json:"event_id"`
			}
			a.into(t, &receipt)
			s.succeeded(receipt.EventID)
			if got := s.texts(name); got != name {
				t.Fatalf("records %q", got)
			}
			s.sound(2)
		})
	}
}

// TestCrashLoop lets every worker die on one task: it ends failed, and the others are not harmed.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_MAX_ATTEMPTS=3", "HOLDFAST_LEASE_TTL=1s")
	s.startAPI()
	id := s.add("loop", conversation("loop", "FACT: never"))
	for range 3 {
		doomed := s.startWorker(point("worker.after_inference", "kill"))
		announced(doomed, "worker.after_inference")
		doomed.Wait(patience)
	}
	other := s.add("other", conversation("other", "FACT: other"))
	s.startWorker()
	e := s.ended(id)
	if e.Status != "FAILED" || e.Error.Code != "ATTEMPTS_EXHAUSTED" || e.Attempts != 3 || e.Usage.Released != 2 {
		t.Fatalf("event %+v", e)
	}
	s.succeeded(other)
	s.sound(2)
}

// TestStoppedWorker freezes a worker past its lease: nothing that it does afterwards counts.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worker.after_inference", "worker.after_commit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t))
			s.startAPI()
			frozen := s.startWorker(point(name, "stop"))
			id := s.add("k", conversation("u", "FACT: one"))
			announced(frozen, name)
			heir := s.startWorker()
			s.succeeded(id)
			heir.Signal(syscall.SIGTERM)
			heir.Wait(patience)
			frozen.Thaw(patience)
			next := s.add("k2", conversation("u2", "FACT: two")) // the thawed worker is alive and does its work
			s.succeeded(next)
			frozen.Signal(syscall.SIGTERM)
			if code := frozen.Wait(patience); code != 0 {
				t.Fatalf("the thawed worker ended with %d", code)
			}
			if got := s.texts("u"); got != "one" {
				t.Fatalf("records %q", got)
			}
			s.sound(4)
		})
	}
}

// TestSIGTERM ends a worker in the middle of a model call: nothing is spent, another one finishes.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_LEASE_TTL=60s")
	s.startAPI()
	hold := s.stub.Hold(stubmodel.With("patience"))
	leaving := s.startWorker()
	id := s.add("k", conversation("u", "FACT: patience"))
	<-hold.Arrived()
	s.until("no transaction is open during the model call", func() bool { // that of a look for tasks is for a moment
		return one[int64](s, `SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`) == 0
	})
	if e := s.event(id); e.Status != "RUNNING" || len(e.Results) != 0 {
		t.Errorf("meanwhile %+v", e)
	}
	leaving.Signal(syscall.SIGTERM)
	if code := leaving.Wait(patience); code != 0 {
		t.Fatalf("the worker ended with %d", code)
	}
	if got := one[string](s, `SELECT status || ' ' || crashes || ' ' || spent FROM tasks`); got != "pending 0 {}" {
		t.Fatalf("after the shutdown: %s", got)
	}
	if e := s.event(id); e.Status != "PENDING" {
		t.Errorf("after the shutdown %+v", e)
	}
	hold.Release()
	s.startWorker()
	s.succeeded(id)
	s.sound(2)
}
