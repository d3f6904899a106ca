package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// racer does one random thing after another to the tasks of a few lanes.
type racer struct {
	w      *world
	random *rand.Rand
	name   string
}

func (r *racer) randomTask(ctx context.Context) (uuid.UUID, int, bool) {
	var id uuid.UUID
	var generation int
	err := r.w.sql.QueryRow(ctx, `SELECT id, generation FROM tasks ORDER BY random() LIMIT 1`).Scan(&id, &generation)
	return id, generation, err == nil
}

func (r *racer) step(n int) error {
	w, ctx := r.w, r.w.t.Context()
	id, generation, found := r.randomTask(ctx)
	switch what := r.random.IntN(10); {
	case what < 2 || !found:
		_, err := w.accepter(w.db).Accept(ctx, w.caller, key(w.t, fmt.Sprintf("%s-%d", r.name, n)),
			say(fmt.Sprintf("u%d", r.random.IntN(5)), "x"))
		return err
	case what < 6:
		return r.work(id, n)
	case what < 7:
		_, err := w.db.Rescue(ctx, 5, 100)
		return err
	case what < 8:
		return w.canceller().Cancel(ctx, w.caller, id)
	case what < 9:
		_, err := w.retrier().Retry(ctx, w.caller, id, &generation, nil)
		return err
	default:
		if _, err := w.db.ExpireInput(ctx, time.Second, repair.Cursor{}, 20); err != nil {
			return err
		}
		_, err := w.db.ArchiveEnded(ctx, 2*time.Second, repair.Cursor{}, 20)
		return err
	}
}

// work claims the task under a lease that may well expire, and ends the claim in a random way.
func (r *racer) work(id uuid.UUID, n int) error {
	w := r.w
	who := claimant(r.name)
	who.TTL = time.Duration(1+r.random.IntN(100)) * time.Millisecond
	c := w.db.Claim(w.t.Context(), who, []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, r.random.IntN(2) == 0)[0]
	if c.Err != nil || c.Lease == nil {
		return c.Err
	}
	l := *c.Lease
	fact := fmt.Sprintf("%s %d", r.name, n%7)
	switch r.random.IntN(6) {
	case 0:
		return w.fail(l, task.OutputInvalid).Err
	case 1:
		return w.later(l, task.ProviderTimeout, 0).Err
	case 2:
		return w.later(l, "", 0).Err
	case 3:
		return nil // dies
	case 4:
		if l.Stage == task.Accepted {
			return w.complete(l, fact).Err
		}
		return w.settle(l).Err
	default:
		if l.Stage == task.Accepted {
			if done := w.commit(l, fact); done.Err != nil {
				return done.Err
			}
		}
		return w.settle(l).Err
	}
}

// allowed are the answers that a race may have.
func allowed(err error) bool {
	if err == nil || errors.Is(err, fault.ErrLeaseLost) {
		return true
	}
	switch fault.CodeOf(err) {
	case fault.NotCancellable, fault.NotRetryable, fault.InputExpired, fault.InsufficientCredits:
		return true
	default:
		return false
	}
}

// TestRaces sets accept, claim, commit, settle, fail, retry, cancel, rescue and the retention against each
// other on five lanes.
func TestRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5_000)
	moves := watchMoves(w)
	length := 30 * time.Second
	if testing.Short() {
		length = 3 * time.Second
	}
	end := time.Now().Add(length)
	together(9, func(i int) {
		if i == 8 {
			w.soundUntil(end)
			return
		}
		r := &racer{w: w, random: rand.New(rand.NewPCG(uint64(i), 7)), name: fmt.Sprintf("racer%d", i)} // #nosec G404
		for n := 0; time.Now().Before(end); n++ {
			if err := r.step(n); !allowed(err) {
				t.Errorf("%s, step %d: %v", r.name, n, err)
				return
			}
		}
	})
	quiet(w)
	checkRaces(w)
	w.sound()
	moves()
}

// quiet brings every task to its end.
func quiet(w *world) {
	w.t.Helper()
	for range 20_000 { // far above the number of tasks
		if _, err := w.db.Rescue(w.t.Context(), 5, 1_000); err != nil {
			w.t.Fatal(err)
		}
		ids, _, err := w.db.Due(w.t.Context(), claimant("last"), 500)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, id := range ids {
			if l := w.claim(id, "last"); l != nil {
				if l.Stage == task.Accepted {
					wantDone(w.t, "complete", w.complete(*l, "last"))
				} else {
					wantDone(w.t, "settle", w.settle(*l))
				}
			}
		}
		if one[int64](w, `SELECT count(*) FROM tasks WHERE completed_at IS NULL`) == 0 {
			return
		}
	}
	w.t.Fatal("tasks are stuck")
}

func checkRaces(w *world) {
	w.t.Helper()
	w.books()
	for what, sql := range map[string]string{
		"deadlocks":                          `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`,
		"heads of ended tasks":               `SELECT count(*) FROM tasks WHERE head`,
		"results of tasks without success":   `SELECT count(*) FROM task_results r JOIN all_tasks t ON t.id = r.task_id WHERE t.status <> 'succeeded'`,
		"records without a result":           `SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM task_results r WHERE r.record_id = m.id AND r.event = 'ADD')`,
		"records of tasks without success":   `SELECT count(*) FROM memories m JOIN all_tasks t ON t.id = m.task_id WHERE t.status <> 'succeeded'`,
		"records without history":            `SELECT count(*) FROM memories m WHERE (SELECT count(*) FROM memory_history h WHERE h.memory_id = m.id) <> 1`,
		"live repeats in a lane":             `SELECT count(*) FROM (SELECT 1 FROM memories GROUP BY lane, content_key HAVING count(*) > 1) x`,
		"input or plans left after success":  `SELECT count(*) FROM all_tasks t LEFT JOIN plans p ON p.task_id = t.id WHERE t.status = 'succeeded' AND (t.command IS NOT NULL OR p.body IS NOT NULL)`,
		"claims without exactly one attempt": `SELECT count(*) FROM all_tasks t WHERE t.claims <> (SELECT count(*) FROM task_attempts a WHERE a.task_id = t.id)`,
		"crashes left after the end":         `SELECT count(*) FROM all_tasks t WHERE t.status = 'succeeded' AND t.crashes < 0`,
		"commits out of their lane's order": `SELECT count(*) FROM (SELECT lane_seq < lag(lane_seq) OVER (PARTITION BY lane ORDER BY committed_at) AS wrong
			FROM all_tasks WHERE committed_at IS NOT NULL) x WHERE wrong`,
		"runs that are not generations": `SELECT count(*) FROM all_tasks t WHERE t.generation <> (SELECT count(*) FROM task_runs r WHERE r.task_id = t.id)`,
	} {
		if n := one[int64](w, sql); n != 0 {
			w.t.Errorf("%s: %d", what, n)
		}
	}
	if done := one[int64](w, `SELECT count(*) FROM all_tasks WHERE status = 'succeeded'`); done == 0 {
		w.t.Error("nothing succeeded")
	}
}
