package repair_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// raceFor is long enough for some ten thousand moves of each kind.
const raceFor = 30 * time.Second

func TestRaces(t *testing.T) {
	t.Parallel()

	t.Run("RepairRetentionAndWorkAgainstEachOther", func(t *testing.T) {
		t.Parallel()
		w := setupAlone(t)
		w.exec(`UPDATE credit_accounts SET available = 1000000`)
		w.exec(`UPDATE credit_grants SET amount = 1000000`)
		until := time.Now().Add(raceFor)
		together(8, func(i int) {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for n := 0; time.Now().Before(until); n++ {
				var err error
				if i < 5 {
					err = w.workStep(random, fmt.Sprintf("%d-%d", i, n))
				} else {
					err = w.repairStep(random)
				}
				if err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
			}
		})
		require.Zero(t, one[int64](w, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
		w.once()
		require.True(t, one[bool](w, `SELECT n_tup_ins > 0 AND n_tup_del > 0 FROM pg_stat_user_tables WHERE relname = 'tasks_archive'`),
			"tasks were archived and retired meanwhile")
		// Every lane that has somebody waiting has a head.
		require.Zero(t, one[int64](w, `SELECT count(*) FROM tasks t WHERE t.completed_at IS NULL AND t.stage = 'accepted'
			AND NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = t.workspace_id AND h.lane = t.lane AND h.head)`))
	})
}

// workStep does one thing that a client or a worker does, to a random task.
func (w *world) workStep(random *rand.Rand, name string) error {
	ctx := w.t.Context()
	var id uuid.UUID
	var generation int
	err := w.sql.QueryRow(ctx, `SELECT id, generation FROM tasks ORDER BY random() LIMIT 1`).Scan(&id, &generation)
	switch what := random.IntN(8); {
	case what < 2 || err != nil:
		w.accept(w.main, fmt.Sprintf("user-%d", random.IntN(6)))
		return nil
	case what < 3:
		canceller, err := write.NewCanceller(w.db, w.post, w.post)
		if err != nil {
			return err
		}
		return refusedAtMost(canceller.Cancel(ctx, w.main, id))
	case what < 4:
		retrier, err := write.NewRetrier(w.db, w.post, credit.DefaultPrices())
		if err != nil {
			return err
		}
		_, err = retrier.Retry(ctx, w.main, id, &generation, nil)
		return refusedAtMost(err)
	}
	who := claimant()
	who.Worker, who.TTL, who.MaxAttempts = name, time.Duration(1+random.IntN(40))*time.Millisecond, 3
	claimed := w.db.Claim(ctx, who, []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, true)[0]
	if claimed.Err != nil || claimed.Lease == nil {
		return claimed.Err
	}
	lease, class := *claimed.Lease, task.ExtractionRejected
	switch random.IntN(4) {
	case 0: // dies without a word
		return nil
	case 1:
		if lease.Stage == task.Accepted {
			return refusedAtMost(w.db.Fail(ctx, []worker.Fail{{Lease: lease, Class: class, Code: task.CodeOf(class)}})[0].Err)
		}
		return refusedAtMost(w.db.Settle(ctx, []worker.Settle{{Lease: lease, VectorModel: "m"}})[0].Err)
	default:
		if lease.Stage != task.Accepted {
			return refusedAtMost(w.db.Settle(ctx, []worker.Settle{{Lease: lease, VectorModel: "m"}})[0].Err)
		}
		return refusedAtMost(w.db.Commit(ctx, []worker.Commit{{Lease: lease}})[0].Err)
	}
}

// refusedAtMost lets pass what a loser of a race is told.
func refusedAtMost(err error) error {
	for _, code := range []fault.Code{fault.EventNotFound, fault.NotCancellable, fault.NotRetryable, fault.InputExpired} {
		if fault.Is(err, code) {
			return nil
		}
	}
	if errors.Is(err, fault.ErrLeaseLost) {
		return nil
	}
	return err
}

// repairStep does one thing that a repairer does, with retention times that are over at once.
func (w *world) repairStep(random *rand.Rand) error {
	ctx := w.t.Context()
	var begin repair.Cursor
	var err error
	age := time.Duration(random.IntN(50)) * time.Millisecond
	switch random.IntN(9) {
	case 0, 1:
		_, _, err = w.db.RescueAfter(ctx, 3, begin, 20)
	case 2:
		_, _, err = w.db.ExhaustAfter(ctx, 3, begin, 100)
	case 3:
		_, _, err = w.db.Rehint(ctx, repair.Rehint{MaxAttempts: 3, Age: age, Limit: 10})
	case 4:
		_, err = w.db.ExpireInput(ctx, age, begin, 20)
	case 5:
		_, err = w.db.ArchiveEnded(ctx, age, begin, 20)
	case 6:
		_, err = w.db.RetireArchived(ctx, age, begin, 5)
	case 7:
		return w.agree(w.db.CheckWorkspace(ctx, w.main.Workspace.ID, 5000))
	case 8:
		var sums repair.Sums
		if sums, err = w.db.SumBooks(ctx, w.main.Workspace.ID, random.IntN(2) == 0); err != nil {
			return err
		}
		if sums.Available+sums.Held != sums.Granted-sums.Settled || sums.Held != sums.Open {
			return fmt.Errorf("the books do not agree: %+v", sums)
		}
		if _, err = w.db.SaveCheckpoint(ctx, w.main.Workspace.ID, sums.Checkpoint); err != nil {
			return err
		}
		return w.agree(w.db.CheckRecent(ctx, time.Hour, 5000))
	}
	return err
}

func (w *world) agree(found []repair.Finding, err error) error {
	if err == nil && len(found) > 0 {
		return fmt.Errorf("found %+v", found)
	}
	return err
}
