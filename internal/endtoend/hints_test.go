package endtoend

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// addMany posts n conversations of n users at once and returns the events.
func (s *system) addMany(prefix string, n int) []string {
	s.t.Helper()
	ids := make([]string, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			name := fmt.Sprintf("%s-%d", prefix, i)
			ids[i] = s.add(name, conversation(name, "FACT: "+name))
		})
	}
	wg.Wait()
	return ids
}

func (s *system) allSucceeded(ids []string) {
	s.t.Helper()
	for _, id := range ids {
		s.succeeded(id)
	}
}

// TestWithoutNATS runs with NATS off from the start; a worker dies with a lease on top.
func TestWithoutNATS(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	testkit.StopNATS(t, s.nats)
	s.startAPI()
	doomed := s.startWorker(point("worker.after_inference", "kill"))
	ids := s.addMany("off", 10)
	announced(doomed, "worker.after_inference")
	doomed.Wait(patience)
	s.startWorker()
	s.allSucceeded(ids)
	s.sound(20)
}

// TestStoreWiped wipes the NATS store and deletes the stream under load, with polling off: the hints that were
// lost come back through repair.
func TestStoreWiped(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_WORKER_POLL=0s", "HOLDFAST_HINT_AGE=1s")
	s.startAPI()
	s.startWorker()
	repair := testkit.StartProcess(t, testkit.ProcessConfig{
		Path: s.bin + "/repair", Args: []string{"--every", "1s"}, Env: s.environment("repair", "HOLDFAST_HINT_AGE=1s"),
	})
	ids := s.addMany("before", 20)
	s.nats = testkit.RestartNATS(t, s.nats, true)
	ids = append(ids, s.addMany("after", 20)...)
	if err := testkit.JetStream(t, s.nats).DeleteStream(context.Background(), "WAKE"); err != nil {
		t.Logf("the stream was not there to delete: %v", err)
	}
	ids = append(ids, s.addMany("deleted", 20)...)
	s.allSucceeded(ids)
	for i := range 20 {
		match := stubmodel.With(fmt.Sprintf("before-%d\n", i))
		match.Endpoint = stubmodel.Chat
		if n := s.stub.Count(match); n > 1 {
			t.Errorf("%d model calls for one task", n)
		}
	}
	repair.Signal(syscall.SIGTERM)
	if code := repair.Wait(patience); code != 0 {
		t.Errorf("repair ended with %d", code)
	}
	s.sound(120)
}

// TestPurgedHint loses the only hint with polling off: one round of repair is enough.
func TestPurgedHint(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_WORKER_POLL=0s")
	s.startAPI()
	id := s.add("k", conversation("u", "FACT: one"))
	stream, err := testkit.JetStream(t, s.nats).Stream(t.Context(), "WAKE")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.startWorker()
	s.repairOnce()
	s.succeeded(id)
	s.sound(2)
}

// TestReplayedHints delivers every hint again, twice and in another order, after everything is done.
func TestReplayedHints(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	worker := s.startWorker()
	ids := s.addMany("replay", 10)
	s.allSucceeded(ids)
	js := testkit.JetStream(t, s.nats)
	rows, err := s.sql.Query(t.Context(), `SELECT id::text, workspace_id::text FROM tasks, generate_series(1, 2) ORDER BY random()`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var id, workspace string
		if err := rows.Scan(&id, &workspace); err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"task":%q,"workspace":%q,"seq":1}`, id, workspace)
		if _, err := js.Publish(t.Context(), "wake.interactive", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	s.until("every hint is consumed", func() bool {
		stream, err := js.Stream(t.Context(), "WAKE")
		return err == nil && stream.CachedInfo().State.Msgs == 0
	})
	worker.Signal(syscall.SIGTERM)
	worker.Wait(patience)
	if n := s.stub.Count(stubmodel.At(stubmodel.Chat)); n != 10 {
		t.Errorf("%d extractions for 10 tasks", n)
	}
	if n := one[int64](s, `SELECT sum(claims)::bigint FROM tasks`); n != 10 {
		t.Errorf("%d claims for 10 tasks", n)
	}
	s.sound(20)
}
