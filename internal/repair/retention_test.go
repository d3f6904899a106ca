package repair_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const day = 24 * time.Hour

func TestInput(t *testing.T) {
	t.Parallel()

	t.Run("AFailedTaskKeepsItsInputForTheRetryWindow", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := w.fail("a")
		w.exec(`INSERT INTO plans (task_id, workspace_id, generation, body, created_at) VALUES ($1, $2, 1, 'x', now())`,
			id, w.main.Workspace.ID)
		w.advance(7*day - time.Minute)
		require.Zero(t, w.once()[repair.PassInput].Found)
		require.True(t, one[bool](w, `SELECT command IS NOT NULL FROM tasks WHERE id = $1`, id))
		w.advance(2 * time.Minute)
		require.Equal(t, repair.Result{Pass: repair.PassInput, Found: 1, Fixed: 1}, w.once()[repair.PassInput])
		require.True(t, one[bool](w, `SELECT command IS NULL FROM all_tasks WHERE id = $1`, id))
		require.True(t, one[bool](w, `SELECT body IS NULL FROM plans WHERE task_id = $1`, id))
		require.True(t, fault.Is(w.retry(id), fault.InputExpired))
		event, err := w.db.EventReader(5).Event(t.Context(), w.main.Workspace.ID, id)
		require.NoError(t, err)
		require.True(t, event.InputGone)
	})

	t.Run("ADefinitionOfAnExportGoesAfterAWeek", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		filter, err := memory.ParseFilter([]byte(`{"user_id":"u"}`))
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, w.db.DefineMemoryExport(t.Context(), w.main.Workspace.ID, uuid.New(), *filter))
		}
		w.advance(7*day - time.Minute)
		require.Zero(t, w.once()[repair.PassInput].Found)
		w.advance(2 * time.Minute)
		require.Equal(t, repair.Result{Pass: repair.PassInput, Found: 3, Fixed: 3}, w.once()[repair.PassInput])
		require.Zero(t, one[int64](w, `SELECT count(*) FROM memory_exports`))
	})

	t.Run("AnUnfinishedTaskKeepsItsInput", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		old, retried := w.accept(w.main, "a"), w.fail("b")
		w.advance(8 * day)
		require.NoError(t, w.retry(retried))
		require.Zero(t, w.once()[repair.PassInput].Found)
		for _, id := range []uuid.UUID{old, retried} {
			require.True(t, one[bool](w, `SELECT command IS NOT NULL FROM tasks WHERE id = $1`, id))
		}
	})

	t.Run("ARetryAndTheEndOfTheWindowHaveOneWinner", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		const n = 40
		ids := make([]uuid.UUID, n)
		for i := range ids {
			ids[i] = w.fail("u")
		}
		w.advance(7*day + time.Minute)
		errs := make([]error, n)
		results := make([]repair.Result, 2)
		together(n+2, func(i int) {
			if i < n {
				errs[i] = w.retry(ids[i])
				return
			}
			r := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.Batch = 5 })
			report, err := r.Once(context.WithoutCancel(t.Context()))
			if err != nil || report.Drift {
				t.Errorf("once: %v %+v", err, report.Findings)
			}
			results[i-n] = byPass(report)[repair.PassInput]
		})
		retried := 0
		for i, err := range errs {
			if err != nil {
				require.True(t, fault.Is(err, fault.InputExpired), "%v", err)
			} else {
				retried++
			}
			require.Equal(t, err == nil, one[bool](w, `SELECT command IS NOT NULL FROM all_tasks WHERE id = $1`, ids[i]))
			require.Equal(t, err == nil, w.status(ids[i]) == "pending/accepted")
		}
		require.Equal(t, n-retried, results[0].Fixed+results[1].Fixed)
		require.EqualValues(t, 2*retried, one[int64](w, `SELECT held FROM credit_accounts`))
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()

	t.Run("EndedTasksLeaveTheHotTableUnchanged", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		done, failed, open := w.succeed("a"), w.fail("b"), w.accept(w.main, "c")
		before := one[string](w, `SELECT to_jsonb(t)::text FROM tasks t WHERE id = $1`, done)
		event, err := w.db.EventReader(5).Event(t.Context(), w.main.Workspace.ID, done)
		require.NoError(t, err)
		w.advance(72*time.Hour - time.Minute)
		require.Zero(t, w.once()[repair.PassArchive].Found)
		w.advance(2 * time.Minute)
		require.Equal(t, repair.Result{Pass: repair.PassArchive, Found: 1, Fixed: 1}, w.once()[repair.PassArchive])
		require.Equal(t, before, one[string](w, `SELECT to_jsonb(t)::text FROM tasks_archive t WHERE id = $1`, done))
		require.EqualValues(t, 2, one[int64](w, `SELECT count(*) FROM tasks`), "a failed task can still be retried")
		after, err := w.db.EventReader(5).Event(t.Context(), w.main.Workspace.ID, done)
		require.NoError(t, err)
		require.Equal(t, event, after)
		w.advance(4*day + time.Minute)
		report := w.once() // the input goes first, in the same round
		require.Equal(t, 1, report[repair.PassInput].Fixed)
		require.Equal(t, 1, report[repair.PassArchive].Fixed)
		require.Equal(t, []uuid.UUID{open}, all[uuid.UUID](w, `SELECT id FROM tasks`))
		require.Equal(t, "failed/accepted", w.status(failed))
	})

	t.Run("EveryReaderSeesATaskExactlyOnce", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		const n = 30
		for range n {
			w.succeed("u")
		}
		w.advance(73 * time.Hour)
		stop := make(chan struct{})
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for {
					var seen int
					err := w.sql.QueryRow(context.WithoutCancel(t.Context()), `SELECT count(*) FROM all_tasks`).Scan(&seen)
					if err != nil || seen != n {
						t.Errorf("a reader saw %d of %d tasks: %v", seen, n, err)
						return
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		together(4, func(int) {
			_, err := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.Batch = 3 }).Once(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Errorf("once: %v", err)
			}
		})
		w.once() // what all four had skipped because another held it
		close(stop)
		readers.Wait()
		require.EqualValues(t, n, one[int64](w, `SELECT count(*) FROM tasks_archive`))
		require.Zero(t, one[int64](w, `SELECT count(*) FROM tasks`))
	})

	t.Run("APoisonedRowStopsNobody", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		ids := []uuid.UUID{w.succeed("a"), w.succeed("b"), w.succeed("c")}
		w.exec(`INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, priority,
		                                   payload_format, outcome, accepted_at, updated_at, completed_at)
		        SELECT id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, outcome,
		               accepted_at, updated_at, completed_at FROM tasks WHERE id = $1`, ids[0])
		w.advance(73 * time.Hour)
		report, err := w.repairer(nil).Once(t.Context())
		require.ErrorContains(t, err, "database error 23505")
		require.Equal(t, repair.Result{Pass: repair.PassArchive, Found: 3, Fixed: 2, Failed: 1}, byPass(report)[repair.PassArchive])
		require.Equal(t, ids[:1], all[uuid.UUID](w, `SELECT id FROM tasks`))
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()

	t.Run("AnEventLivesAsLongAsItsKeyAndTheJournalForEver", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		retried := w.fail("b")
		require.NoError(t, w.retry(retried))
		w.complete(w.mustClaim(retried))
		done := w.succeed("a")
		w.advance(20 * day)
		young := w.succeed("c")
		w.once()
		w.advance(10*day - time.Minute)
		require.Zero(t, w.once()[repair.PassKeys].Found)
		require.EqualValues(t, 4, one[int64](w, `SELECT count(*) FROM idempotency_keys`))
		journal := all[string](w, `SELECT e::text FROM credit_entries e ORDER BY 1`)
		memories := all[string](w, `SELECT m::text FROM memories m ORDER BY 1`)
		w.advance(2 * time.Minute)
		require.Equal(t, repair.Result{Pass: repair.PassKeys, Found: 2, Fixed: 2}, w.once()[repair.PassKeys])
		require.Equal(t, []uuid.UUID{young}, all[uuid.UUID](w, `SELECT id FROM all_tasks`))
		for _, table := range []string{"idempotency_keys", "task_results", "task_attempts", "plans"} {
			for _, id := range all[uuid.UUID](w, `SELECT task_id FROM `+table) {
				require.Equal(t, young, id, table)
			}
		}
		require.Equal(t, journal, all[string](w, `SELECT e::text FROM credit_entries e ORDER BY 1`))
		require.Equal(t, memories, all[string](w, `SELECT m::text FROM memories m ORDER BY 1`))
		_, err := w.db.EventReader(5).Event(t.Context(), w.main.Workspace.ID, done)
		require.True(t, fault.Is(err, fault.EventNotFound))
	})

	t.Run("AKeyThatBelongsToAnotherTaskStays", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		old, other := w.succeed("a"), uuid.Must(uuid.NewV7())
		w.exec(`UPDATE idempotency_keys SET task_id = $1 WHERE task_id = $2`, other, old)
		w.advance(31 * day)
		_, err := w.repairer(nil).Once(t.Context())
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{other}, all[uuid.UUID](w, `SELECT task_id FROM idempotency_keys`))
		require.Zero(t, one[int64](w, `SELECT count(*) FROM all_tasks`))
	})

	t.Run("AFailedTaskWithItsInputKeepsItsKey", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := w.fail("a")
		w.advance(29 * day)
		r := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.FailedInputRetention = 30 * day })
		_, err := r.Once(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.retry(id))
		require.Equal(t, string(task.Pending)+"/accepted", w.status(id))
		require.EqualValues(t, 2, one[int64](w, `SELECT count(*) FROM idempotency_keys`))
	})
}

// all reads a column.
func all[T any](w *world, sql string, args ...any) []T {
	w.t.Helper()
	rows, err := w.sql.Query(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
	defer rows.Close()
	values := []T{}
	for rows.Next() {
		var v T
		require.NoError(w.t, rows.Scan(&v))
		values = append(values, v)
	}
	require.NoError(w.t, rows.Err())
	return values
}
