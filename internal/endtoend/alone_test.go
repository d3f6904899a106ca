package endtoend

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// neighboursSQL counts the claims that were in the same process when a task that had crashed twice ended.
const neighboursSQL = `
SELECT count(*)
  FROM task_attempts a
  JOIN tasks t ON t.id = a.task_id
  JOIN task_attempts b ON b.worker = a.worker AND (b.task_id, b.claim) <> (a.task_id, a.claim)
                      AND b.claimed_at < a.ended_at AND b.ended_at > a.ended_at
 WHERE t.user_id LIKE 'poison-%' AND a.ending = 'succeeded'`

// TestCrashedTasksWaitInNoCircle lets twelve tasks be in hand when their worker dies, twice, and brings forty others. Each
// of the twelve then runs alone in its process, claimed once more and never given back, and nobody waits for long.
func TestCrashedTasksWaitInNoCircle(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("Workers=%d", workers), func(t *testing.T) {
			t.Parallel()
			const poison, healthy = 12, 40
			s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_LEASE_TTL=5s", "HOLDFAST_WORKER_POLL=2s") // a lease that a busy machine loses is a claim more
			s.startAPI()
			hold := s.stub.HoldAll(stubmodel.At(stubmodel.Chat))
			ids := s.addMany("poison", poison)
			for range 2 {
				doomed := s.startWorker()
				s.until("all are in its hands", func() bool {
					return one[int64](s, `SELECT count(*) FROM tasks WHERE status = 'running' AND worker_incarnation LIKE $1`, fmt.Sprintf("%%-%d-%%", doomed.PID())) == poison
				})
				doomed.Kill()
				doomed.Wait(patience)
			}
			hold.Release()
			s.until("their leases have expired", func() bool {
				return one[bool](s, `SELECT bool_and(lease_until < clock_timestamp()) FROM tasks`)
			})
			if n := one[int64](s, `SELECT count(*) FROM tasks WHERE crashes = 2`); n != poison {
				t.Fatalf("%d of %d have crashed twice", n, poison)
			}
			ids = append(ids, s.addMany("healthy", healthy)...)
			began := time.Now()
			for range workers {
				s.startWorker()
			}
			s.allSucceeded(ids)
			t.Logf("%d that crashed and %d others have ended after %s", poison, healthy, time.Since(began).Round(time.Millisecond))
			if n := one[int64](s, `SELECT count(*) FROM task_attempts WHERE ending = 'given_back'`); n != 0 {
				t.Errorf("%d claims were given back", n)
			}
			if got := one[string](s, `SELECT min(claims) || '-' || max(claims) FROM tasks WHERE user_id LIKE 'poison-%'`); got != "3-3" {
				t.Errorf("those that crashed were claimed %s times", got)
			}
			if n := one[int64](s, neighboursSQL); n != 0 {
				t.Errorf("%d claims were in the same process as a task that runs alone", n)
			}
			s.sound(2 * (poison + healthy))
		})
	}
}

// TestInlineEraseWithoutItsAPI kills the API behind the first piece of an erase: a worker goes on after the lease of an
// inline run, which is shorter than the workers'.
func TestInlineEraseWithoutItsAPI(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_LEASE_TTL=10m")
	s.startAPI()
	first := s.startWorker()
	s.succeeded(s.add("stored", conversation(gone, "FACT: "+gone)))
	first.Kill()
	first.Wait(patience)
	doomed := s.startAPI(point("worker.after_piece", "kill"))
	if a, err := s.try("DELETE", "/v1/memories?user_id="+gone, "e", nil); err == nil {
		t.Fatalf("the API answered %d %s", a.status, a.body)
	}
	doomed.Wait(patience)
	if lease := one[float64](s, `SELECT extract(epoch FROM lease_until - claimed_at)::float8 FROM tasks WHERE kind = 'scope_erase'`); lease > 120 { // heartbeats lengthen it
		t.Errorf("a worker has to wait for %.1f s", lease)
	}
	s.startAPI()
	s.startWorker()
	s.until("the erase has ended", func() bool {
		return one[string](s, `SELECT status FROM tasks WHERE kind = 'scope_erase'`) == "succeeded"
	})
	s.wantGone(t)
}
