package endtoend

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// crowd gives the workspace ten thousand commands that are due, of so many users; 0 is a command without order each. They
// are copies of one that was accepted, and cost nothing.
func (s *system) crowd(users int) {
	s.t.Helper()
	s.add("seed", conversation("seed", "FACT: seed"))
	s.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, lane_seq, head, priority, command, payload_format,
                   policy, accepted_at, updated_at)
SELECT gen_random_uuid(), t.workspace_id, t.kind, 'pending', 'accepted', t.run_after, t.hint_at, 'u' || user_no, sha256(('u' || user_no)::bytea),
       CASE WHEN $2 > 0 THEN n END, $2 > 0 AND n <= $2, t.priority, t.command, t.payload_format, t.policy, t.accepted_at, t.updated_at
  FROM tasks t, (SELECT n, CASE WHEN $2 > 0 THEN n % $2 ELSE n END AS user_no FROM generate_series(1, 10000) n) c
 WHERE t.workspace_id = $1 AND t.user_id = 'seed'`, s.ws, users)
	s.exec(`
INSERT INTO lanes (workspace_id, lane, next_seq, last_accepted_at)
SELECT workspace_id, lane, 20000, max(accepted_at) FROM tasks WHERE user_id <> 'seed' GROUP BY 1, 2`)
	s.exec(`
INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
SELECT id, 1, workspace_id, 0, accepted_at FROM tasks WHERE user_id <> 'seed'`)
}

// TestOneAmongTenThousand adds one command of a workspace behind ten thousand of another: it begins before two more rounds
// of the slots have gone by. With hints, the crowd's own are in front of it; its cap sends them away unclaimed.
func TestOneAmongTenThousand(t *testing.T) {
	t.Parallel()
	const workers, slots = 2, 4
	for name, c := range map[string]struct {
		users int
		hints bool
	}{
		"WithoutOrder":     {0, false},
		"OfAThousandUsers": {1000, false},
		"BehindTheirHints": {1000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_EMBEDDER=offline", fmt.Sprint("HOLDFAST_WORKER_SLOTS=", slots))
			pace := time.NewTicker(6 * time.Millisecond) // the model answers so often in all, so that slots are what is scarce
			t.Cleanup(pace.Stop)
			s.stub.Always(stubmodel.At(stubmodel.Chat), func(call stubmodel.Call) stubmodel.Answer {
				select {
				case <-pace.C:
				case <-t.Context().Done():
				}
				return stubmodel.FactLines(call)
			})
			s.holdfast(0, "workspace", "limit", "test", "--lease-cap", "3")
			if listed := s.holdfast(0, "workspace", "list", "--json"); !strings.Contains(listed, `"lease_cap":3`) && !strings.Contains(listed, `"lease_cap": 3`) {
				t.Fatalf("workspaces %s", listed)
			}
			s.startAPI()
			s.crowd(c.users)
			other := s.purse(100)
			if c.hints {
				s.hintAll()
			}
			for range workers {
				s.startWorker()
			}
			s.until("the crowd is under way", func() bool {
				return one[int64](s, `SELECT count(*) FROM tasks WHERE started_at IS NOT NULL`) > 3*workers*slots
			})
			s.until("slots that nobody else wants go beyond the cap", func() bool {
				return one[int64](s, `SELECT count(*) FROM tasks WHERE status = 'running'`) > 3
			})
			id := other.add("one", conversation("one", "FACT: one"))
			other.succeeded(id)
			before := one[int64](s, `
SELECT count(*) FROM tasks t, tasks mine
 WHERE mine.workspace_id = $1 AND t.workspace_id = $2 AND t.started_at BETWEEN mine.accepted_at AND mine.started_at`, other.ws, s.ws)
			waiting := one[int64](s, `SELECT count(*) FROM tasks WHERE workspace_id = $1 AND status = 'pending'`, s.ws)
			if before > 2*workers*slots || waiting == 0 {
				t.Errorf("%d of the crowd began before it, %d wait", before, waiting)
			}
			if c.hints {
				s.until("the hints are gone", func() bool { return s.hintsLeft() == 0 })
				if left := one[int64](s, `SELECT count(*) FROM tasks WHERE workspace_id = $1 AND status = 'pending'`, s.ws); left < 1000 {
					t.Errorf("the hints went with the work: %d wait", left)
				}
			}
		})
	}
}

// hintAll publishes a hint for every task that is due.
func (s *system) hintAll() {
	s.t.Helper()
	js := testkit.JetStream(s.t, s.nats)
	rows, err := s.sql.Query(s.t.Context(), `SELECT id::text, workspace_id::text FROM tasks WHERE status = 'pending' AND ready`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, workspace string
		if err := rows.Scan(&id, &workspace); err != nil {
			s.t.Fatal(err)
		}
		if _, err := js.PublishAsync("wake.interactive", fmt.Appendf(nil, `{"task":%q,"workspace":%q,"seq":1}`, id, workspace)); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	<-js.PublishAsyncComplete()
}

func (s *system) hintsLeft() uint64 {
	s.t.Helper()
	stream, err := testkit.JetStream(s.t, s.nats).Stream(s.t.Context(), "WAKE")
	if err != nil {
		s.t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

// TestKilledWorkersLeaveNoPlaces kills four workers with twenty leases between them, all of one workspace whose cap is
// five: when the leases' time is over, everything is there again.
func TestKilledWorkersLeaveNoPlaces(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_WORKSPACE_LEASES=5", "HOLDFAST_WORKER_SLOTS=5")
	s.startAPI()
	hold := s.stub.HoldAll(stubmodel.At(stubmodel.Chat))
	var doomed []*testkit.Process
	for range 4 {
		doomed = append(doomed, s.startWorker())
	}
	ids := s.addMany("held", 20)
	s.until("twenty leases are held", func() bool {
		return one[int64](s, `SELECT count(*) FROM tasks WHERE status = 'running'`) == 20
	})
	for _, p := range doomed {
		p.Kill()
	}
	hold.Release()
	s.startWorker()
	s.allSucceeded(append(ids, s.addMany("later", 10)...))
	if n := one[int64](s, `SELECT count(*) FROM task_attempts WHERE ending = 'crashed'`); n != 20 {
		t.Errorf("%d crashes of twenty", n)
	}
	s.sound(60)
}

// TestRateLimitStorm has a provider refuse every call for a while: between three workers, nobody calls before Retry-After
// is over, nobody holds a slot meanwhile, and each pause costs at most a call for each slot.
func TestRateLimitStorm(t *testing.T) {
	t.Parallel()
	const (
		workers, slots = 3, 2
		refused        = 8
		floor          = 2 * time.Second
		inFlight       = 1500 * time.Millisecond // calls that were under way when the first was refused
	)
	s := newSystem(t, testkit.NewDatabase(t), fmt.Sprint("HOLDFAST_WORKER_SLOTS=", slots))
	var calls atomic.Int64
	s.stub.Always(stubmodel.At(stubmodel.Chat), func(call stubmodel.Call) stubmodel.Answer {
		if calls.Add(1) <= refused {
			return stubmodel.RateLimited(floor)
		}
		return stubmodel.FactLines(call)
	})
	s.startAPI()
	ids := s.addMany("storm", 50)
	for range workers {
		s.startWorker()
	}
	s.until("the provider is paused and no slot is held", func() bool {
		return one[bool](s, `
SELECT EXISTS (SELECT FROM provider_pauses WHERE paused_until > clock_timestamp()) AND NOT EXISTS (SELECT FROM tasks WHERE status = 'running')`)
	})
	s.allSucceeded(ids)
	times := s.stub.Times(stubmodel.At(stubmodel.Chat))
	for i := 0; i < refused; {
		began, burst := times[i], 0
		for i < len(times) && times[i].Sub(began) < inFlight {
			i, burst = i+1, burst+1
		}
		if i > refused {
			break // the last pause ended in this burst
		}
		if burst > workers*slots {
			t.Errorf("%d calls in a burst, there are %d slots", burst, workers*slots)
		}
		if i < len(times) && times[i].Sub(began) < floor {
			t.Errorf("a call came %s after a 429, the floor is %s", times[i].Sub(began), floor)
		}
	}
	if n := one[int64](s, `SELECT count(*) FROM task_attempts WHERE class = 'provider_rate_limited'`); n != refused {
		t.Errorf("%d attempts were refused, the provider refused %d", n, refused)
	}
	s.sound(100)
}
