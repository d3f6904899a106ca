package endtoend

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestPostgresRestart restarts the database in the middle of 200 tasks.
func TestPostgresRestart(t *testing.T) {
	t.Parallel()
	pg := testkit.PrivatePostgres(t, true)
	if err := testkit.Migrate(t.Context(), pg.URL()); err != nil {
		t.Fatal(err)
	}
	s := newSystem(t, pg.URL())
	s.startAPI()
	workers := []*testkit.Process{s.startWorker(), s.startWorker()}
	ids := s.addMany("restart", 200)
	testkit.RestartPostgres(t, pg, true)
	s.allSucceeded(ids)
	for _, w := range workers {
		w.Signal(syscall.SIGTERM)
		if code := w.Wait(patience); code != 0 {
			t.Errorf("a worker ended with %d", code)
		}
	}
	s.sound(400)
	if got := one[int64](s, `SELECT count(*) FROM memories`); got != 200 {
		t.Errorf("%d records of 200 facts", got)
	}
}

// TestProviderOutage takes the provider away for many times the first backoff: no task is lost, and after the
// failures in a row the provider is left alone.
func TestProviderOutage(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_RETRY_BASE=50ms")
	s.startAPI()
	s.startWorker()
	s.startWorker()
	s.stub.Always(stubmodel.At(stubmodel.Chat), stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "down")))
	ids := s.addMany("outage", 20)
	s.until("the provider is paused", func() bool {
		return one[int64](s, `SELECT count(*) FROM provider_pauses WHERE in_a_row >= 5 AND paused_until > updated_at`) > 0
	})
	e := s.event(ids[0])
	if e.Status != "RETRYING" && e.Status != "PENDING" && e.Status != "RUNNING" {
		t.Errorf("meanwhile %+v", e)
	}
	s.stub.Always(stubmodel.At(stubmodel.Chat), stubmodel.FactLines)
	s.allSucceeded(ids)
	if failed := one[int64](s, `SELECT count(*) FROM tasks WHERE status = 'failed'`); failed != 0 {
		t.Errorf("%d tasks lost", failed)
	}
	s.sound(40)
}

// TestRateLimited answers one call with 429 and Retry-After: no worker sends anything before it ends.
func TestRateLimited(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	const floor = 3 * time.Second
	s.stub.Queue(stubmodel.With("first"), stubmodel.Reply(stubmodel.RateLimited(floor)))
	s.startWorker()
	s.startWorker()
	ids := []string{s.add("first", conversation("u0", "FACT: first"))}
	if err := s.stub.Await(t.Context(), stubmodel.With("first"), 1); err != nil {
		t.Fatal(err)
	}
	s.until("the provider is paused", func() bool {
		return one[int64](s, `SELECT count(*) FROM provider_pauses WHERE paused_until > clock_timestamp()`) > 0
	})
	ids = append(ids, s.addMany("limited", 10)...)
	s.allSucceeded(ids)
	times := s.stub.Times(stubmodel.At(stubmodel.Chat))
	if gap := times[1].Sub(times[0]); gap < floor {
		t.Errorf("the second call came %s after the 429, the floor is %s", gap, floor)
	}
	s.sound(22)
}
