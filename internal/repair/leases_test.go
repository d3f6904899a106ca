package repair_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestLeases(t *testing.T) {
	t.Parallel()

	t.Run("AnExpiredLeaseGoesBackAndIsHinted", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id, live := w.accept(w.main, "a"), w.accept(w.main, "b")
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		w.mustClaim(live)
		require.Equal(t, repair.Result{Pass: repair.PassLeases, Found: 1, Fixed: 1}, w.once()[repair.PassLeases])
		require.Equal(t, "pending/accepted", w.status(id))
		require.Equal(t, "running/accepted", w.status(live))
		require.Equal(t, []uuid.UUID{id}, w.post.taken())
		require.Empty(t, w.post.noticed())
	})

	t.Run("ExhaustedCrashesFailReleaseNotifyAndPassTheLaneOn", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id, next := w.accept(w.main, "a"), w.accept(w.main, "a")
		for range 5 {
			w.mustClaim(id)
			w.advance(2 * time.Minute)
		}
		require.Equal(t, 1, w.once()[repair.PassLeases].Fixed)
		require.Equal(t, "failed/accepted", w.status(id))
		require.Equal(t, []uuid.UUID{id}, w.post.noticed())
		require.Equal(t, []uuid.UUID{next}, w.post.taken())
		require.EqualValues(t, 2, one[int64](w, `SELECT held FROM credit_accounts`), "the next task's hold is left")
		require.EqualValues(t, 1, one[int64](w, `SELECT count(*) FROM credit_closings WHERE released = 2`))
	})

	t.Run("PoisonedRowsStopNobody", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		ids := w.accepted(12)
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		for range 5 {
			for _, id := range ids {
				w.mustClaim(id)
			}
			w.advance(2 * time.Minute)
		}
		poisoned, healthy := ids[:5], ids[5:]
		w.exec(`DELETE FROM task_runs WHERE task_id = ANY($1)`, poisoned)
		// A batch smaller than the poisoned rows, which come first: the scan must go on behind them.
		r := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.Batch = 2 })
		report, err := r.Once(t.Context())
		require.ErrorContains(t, err, "repair leases: ")
		require.Equal(t, repair.Result{Pass: repair.PassLeases, Found: 12, Fixed: 7, Failed: 5}, byPass(report)[repair.PassLeases])
		for _, id := range healthy {
			require.Equal(t, "failed/accepted", w.status(id))
		}
		for _, id := range poisoned {
			require.Equal(t, "running/accepted", w.status(id), "without its run nothing of it is written")
		}
		require.Len(t, report.Results, 12, "every pass has run")
		require.True(t, report.Drift)
		require.Equal(t, r.Totals()[repair.PassLeases], byPass(report)[repair.PassLeases])
	})

	t.Run("FourRepairersMoveEachTaskOnce", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		ids := w.accepted(20)
		for _, id := range ids {
			w.mustClaim(id)
		}
		w.advance(2 * time.Minute)
		together(4, func(int) {
			_, err := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.Batch = 7 }).Once(w.t.Context())
			if err != nil {
				t.Errorf("once: %v", err)
			}
		})
		require.EqualValues(t, 20, one[int64](w, `SELECT count(*) FROM tasks WHERE status = 'pending' AND hint_seq = 2 AND crashes = 1`))
		require.EqualValues(t, 20, one[int64](w, `SELECT count(*) FROM task_attempts WHERE ending = 'crashed'`))
	})

	t.Run("AFrozenTransactionCostsOnlyItsOwnRow", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		ids := w.accepted(2)
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		for _, id := range ids {
			w.mustClaim(id)
		}
		w.advance(2 * time.Minute)
		tx, err := w.sql.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		_, err = tx.Exec(t.Context(), `SELECT FROM tasks WHERE id = $1 FOR UPDATE`, ids[0])
		require.NoError(t, err)
		require.Equal(t, repair.Result{Pass: repair.PassLeases, Found: 2, Fixed: 1, Skipped: 1}, w.once()[repair.PassLeases])
		require.Equal(t, "pending/accepted", w.status(ids[1]))
	})
}

func TestExhausted(t *testing.T) {
	t.Parallel()

	t.Run("AWaitingTaskWithTooManyCrashesFails", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id, fine := w.accept(w.main, "a"), w.accept(w.main, "b")
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		require.Equal(t, 1, w.once()[repair.PassLeases].Fixed)
		w.post.taken()
		report, err := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.MaxAttempts = 1 }).Once(t.Context())
		require.NoError(t, err)
		require.Equal(t, repair.Result{Pass: repair.PassExhausted, Found: 1, Fixed: 1}, byPass(report)[repair.PassExhausted])
		require.Equal(t, "failed/accepted", w.status(id))
		require.Equal(t, "pending/accepted", w.status(fine))
		require.Equal(t, []uuid.UUID{id}, w.post.noticed())
		require.NotContains(t, w.post.taken(), id)
	})

	t.Run("AProjectionIsNeverExhausted", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := w.accept(w.main, "a")
		w.commitOnly(w.mustClaim(id))
		for range 6 {
			w.advance(2 * time.Minute)
			require.Equal(t, 1, w.once()[repair.PassLeases].Fixed)
			require.Equal(t, "pending/committed", w.status(id))
			w.mustClaim(id)
		}
		require.Greater(t, one[int](w, `SELECT crashes FROM tasks`), task.DefaultPolicy().MaxAttempts)
	})
}
