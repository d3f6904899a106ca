package endtoend

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestUnreadableCommand corrupts the payload of one of ten waiting commands: nine succeed, and the one ends.
func TestUnreadableCommand(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	ids := s.addMany("readable", 10)
	s.exec(`UPDATE tasks SET command = '\x7b00ff' WHERE user_id = 'readable-4'`)
	s.startWorker()
	for i, id := range ids {
		e := s.ended(id)
		if want := map[bool]string{false: "SUCCEEDED", true: "FAILED"}[i == 4]; e.Status != want {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	s.sound(18)
}

// TestLongCall lets a model call take five times the lease: heartbeats keep the task where it is, however many wait for it.
func TestLongCall(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_LEASE_TTL=1s")
	s.startAPI()
	hold := s.stub.Hold(stubmodel.With("patience"))
	s.startWorker()
	s.startWorker()
	id := s.add("k", conversation("u", "FACT: patience"))
	<-hold.Arrived()
	s.until("the lease was extended five times over", func() bool {
		return one[bool](s, `SELECT lease_until > claimed_at + interval '5 seconds' FROM tasks`)
	})
	hold.Release()
	if e := s.succeeded(id); e.Attempts != 1 {
		t.Errorf("event %+v", e)
	}
	match := stubmodel.With("patience")
	match.Endpoint = stubmodel.Chat
	if n := s.stub.Count(match); n != 1 {
		t.Errorf("%d model calls", n)
	}
	s.sound(2)
}

// TestTwoFrozenWorkers freezes one worker after another with the same task in their hands, each with an answer of its own
// from the model, and thaws both at once: one plan is committed, and who comes second writes nothing.
func TestTwoFrozenWorkers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	var calls atomic.Int64
	s.stub.Always(stubmodel.At(stubmodel.Chat), func(stubmodel.Call) stubmodel.Answer {
		return stubmodel.Facts(fmt.Sprintf("answer %d", calls.Add(1)))
	})
	const where = "worker.after_inference"
	first := s.startWorker(point(where, "stop"))
	id := s.add("k", conversation("u", "one"))
	announced(first, where)
	second := s.startWorker(point(where, "stop"))
	announced(second, where)
	first.Thaw(patience)
	second.Thaw(patience)
	e := s.succeeded(id)
	s.succeeded(s.add("k2", conversation("u2", "two"))) // both are alive
	if len(e.Results) != 1 || one[int64](s, `SELECT count(*) FROM plans p JOIN tasks t ON t.id = p.task_id WHERE t.user_id = 'u'`) != 1 {
		t.Errorf("event %+v", e)
	}
	if n := one[int64](s, `SELECT count(*) FROM memories WHERE user_id = 'u'`); n != 1 {
		t.Errorf("%d records: %s", n, s.texts("u"))
	}
	for _, w := range []*testkit.Process{first, second} {
		w.Signal(syscall.SIGTERM)
		if code := w.Wait(patience); code != 0 {
			t.Errorf("a thawed worker ended with %d", code)
		}
	}
	s.sound(4)
}

// TestPostgresRestartDuringRepair restarts the database three times under repairers that are the only ones who bring the
// tasks of a dead worker back: they go on, and nothing is stranded.
func TestPostgresRestartDuringRepair(t *testing.T) {
	t.Parallel()
	pg := testkit.PrivatePostgres(t, true)
	s := newSystem(t, pg.URL(), "HOLDFAST_WORKER_POLL=0s", "HOLDFAST_HINT_AGE=100ms", "HOLDFAST_LEASE_TTL=1s")
	s.startAPI()
	var repairers []*testkit.Process
	for range 2 {
		repairers = append(repairers, testkit.StartProcess(t, testkit.ProcessConfig{
			Path: s.bin + "/repair", Args: []string{"--every", "100ms"}, Env: s.environment("repair"),
		}))
	}
	doomed := s.startWorker(point("worker.after_inference", "kill"))
	ids := s.addMany("stranded", 10)
	announced(doomed, "worker.after_inference")
	doomed.Wait(patience)
	for range 3 {
		testkit.RestartPostgres(t, pg, true)
	}
	s.startWorker()
	s.allSucceeded(ids)
	for _, r := range repairers {
		r.Signal(syscall.SIGTERM)
		if code := r.Wait(patience); code != 0 {
			t.Errorf("a repairer ended with %d", code)
		}
	}
	s.sound(20)
}
