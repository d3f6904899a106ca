package repair_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestBooks(t *testing.T) {
	t.Parallel()

	t.Run("EveryDisagreementIsDriftAndNamed", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[repair.Check]struct {
			damage string // $1 is a succeeded, $2 a waiting, $3 a running, $4 a failed task
			event  int
		}{
			repair.CheckBalance: {`UPDATE credit_accounts SET available = available + 5`, 0},
			repair.CheckHeld:    {`UPDATE credit_accounts SET available = available - 1, held = held + 1`, 0},
			repair.CheckResults: {`DELETE FROM task_results WHERE task_id = $1`, 1},
			repair.CheckKey:     {`DELETE FROM tasks WHERE id = $4`, 4},
			repair.CheckTaskRun: {`UPDATE task_runs SET task_id = gen_random_uuid() WHERE task_id = $2`, 2},
			repair.CheckOpenRun: {`UPDATE tasks SET status = 'failed', head = false, lease_token = NULL, lease_until = NULL,
			                              completed_at = clock_timestamp() WHERE id = $3`, 3},
			repair.CheckOutcome: {`UPDATE tasks SET generation = 2 WHERE id = $4`, 4},
			repair.CheckClosing: {`ALTER TABLE task_runs DROP CONSTRAINT task_runs_closing;
			                       DELETE FROM credit_closings WHERE outcome = 'failed'`, 4},
		} {
			w := setup(t)
			events := map[int]uuid.UUID{1: w.succeed("a"), 2: w.accept(w.main, "b"), 3: w.accept(w.main, "c"), 4: w.fail("d")}
			w.mustClaim(events[3])
			require.Zero(t, w.once()[repair.PassBooks].Found, name)
			w.damage(c.damage, events)
			lines := &safeBuffer{}
			r := w.repairer(func(_ *repair.Deps, cfg *repair.Config) { cfg.Log = zerolog.New(lines) })
			report, err := r.Once(t.Context())
			require.NoError(t, err, "what is found is no failure of the look")
			require.True(t, report.Drift, name)
			books := byPass(report)[repair.PassBooks]
			require.Positive(t, books.Failed, name)
			require.Equal(t, books.Found, books.Failed, name)
			var found *repair.Finding
			for _, f := range report.Findings {
				if f.Check == name {
					found = &f
				}
			}
			require.NotNil(t, found, "%s is not among %+v", name, report.Findings)
			require.Equal(t, w.main.Workspace.ID, found.Workspace, name)
			if c.event > 0 {
				require.Contains(t, found.Events, events[c.event], name)
				require.Contains(t, lines.String(), events[c.event].String())
			}
			require.Contains(t, lines.String(), `"check":"`+string(name)+`","workspace_id":"`+w.main.Workspace.ID.String())
		}
	})

	t.Run("DriftStaysUntilItIsPutRight", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.succeed("a")
		w.once()
		checkpoint := one[string](w, `SELECT c::text FROM credit_checkpoints c`)
		w.exec(`UPDATE credit_accounts SET available = available + 5`)
		for range 2 {
			report, err := w.repairer(nil).Once(t.Context())
			require.NoError(t, err)
			require.Equal(t, []repair.Finding{{
				Check: repair.CheckBalance, Workspace: w.main.Workspace.ID, Count: 1, Want: 998, Have: 1003,
			}}, report.Findings)
		}
		require.Equal(t, checkpoint, one[string](w, `SELECT c::text FROM credit_checkpoints c`))
		w.exec(`UPDATE credit_accounts SET available = available - 5`)
		w.once()
	})

	t.Run("AnotherWorkspacesDriftIsItsOwn", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		other := w.workspace()
		w.exec(`DELETE FROM credit_accounts WHERE workspace_id = $1`, other.Workspace.ID)
		report, err := w.repairer(nil).Once(t.Context())
		require.NoError(t, err)
		require.Len(t, report.Findings, 1)
		require.Equal(t, other.Workspace.ID, report.Findings[0].Workspace)
		require.EqualValues(t, 1, one[int64](w, `SELECT count(*) FROM credit_checkpoints`), "the first one's is kept")
	})

	t.Run("FreshBooksHideNoOthers", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.once() // the first one's are fresh
		var stale []uuid.UUID
		for range 3 {
			stale = append(stale, w.workspace().Workspace.ID)
		}
		w.exec(`DELETE FROM workspaces WHERE id = $1`, stale[2]) // only its account is left
		found, err := w.db.Ledgers(t.Context(), uuid.Nil, time.Hour, 1)
		require.NoError(t, err)
		require.Equal(t, stale[:1], found)
		found, err = w.db.Ledgers(t.Context(), stale[0], time.Hour, 5)
		require.NoError(t, err)
		require.Equal(t, stale[1:], found)
		found, err = w.db.Ledgers(t.Context(), uuid.Nil, 0, 5)
		require.NoError(t, err)
		require.Equal(t, append([]uuid.UUID{w.main.Workspace.ID}, stale...), found)
		w.advance(2 * time.Hour)
		found, err = w.db.Ledgers(t.Context(), uuid.Nil, time.Hour, 1)
		require.NoError(t, err)
		require.Equal(t, w.main.Workspace.ID, found[0])
	})

	t.Run("CorrectBooksAreFoundCorrectUnderTraffic", func(t *testing.T) {
		t.Parallel()
		w := setupAlone(t)
		stop := make(chan struct{})
		var clients sync.WaitGroup
		for i := range 4 {
			clients.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						w.traffic(fmt.Sprintf("%d-%d", i, n%5), n)
					}
				}
			})
		}
		r := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.HintLimit = 1 })
		for range 30 {
			report, err := r.Once(t.Context())
			require.NoError(t, err)
			require.Empty(t, report.Findings)
			incremental, err := w.db.SumBooks(t.Context(), w.main.Workspace.ID, false)
			require.NoError(t, err)
			require.True(t, incremental.Incremental)
			require.Equal(t, incremental.Granted-incremental.Settled, incremental.Available+incremental.Held)
			require.Equal(t, incremental.Open, incremental.Held)
		}
		close(stop)
		clients.Wait()
		incremental, err := w.db.SumBooks(t.Context(), w.main.Workspace.ID, false)
		require.NoError(t, err)
		full, err := w.db.SumBooks(t.Context(), w.main.Workspace.ID, true)
		require.NoError(t, err)
		full.Incremental = incremental.Incremental
		require.Equal(t, incremental, full, "the checkpoint has lost nothing and counted nothing twice")
		require.Positive(t, full.Settled)
	})
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()

	t.Run("ATransactionThatCommitsLateIsNotPassedOver", func(t *testing.T) {
		t.Parallel()
		w := setupAlone(t)
		ws := w.main.Workspace.ID
		late, err := w.sql.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = late.Rollback(t.Context()) }()
		_, err = late.Exec(t.Context(), `WITH g AS (
			INSERT INTO credit_grants (id, workspace_id, reference, amount) VALUES (gen_random_uuid(), $1, 'late', 7))
			UPDATE credit_accounts SET available = available + 7 WHERE workspace_id = $1`, ws)
		require.NoError(t, err)
		w.workspace() // a later transaction that commits earlier
		w.once()
		require.EqualValues(t, 1000, one[int64](w, `SELECT granted::bigint FROM credit_checkpoints WHERE workspace_id = $1`, ws))
		require.NoError(t, late.Commit(t.Context()))
		require.Zero(t, w.once()[repair.PassBooks].Found, "the checkpoint had not passed it over")
		require.EqualValues(t, 1007, one[int64](w, `SELECT granted::bigint FROM credit_checkpoints WHERE workspace_id = $1`, ws))
	})

	t.Run("AClosedPeriodIsNotReadAgain", func(t *testing.T) {
		t.Parallel()
		w := setupAlone(t)
		w.succeed("a")
		w.once()
		w.exec(`UPDATE credit_closings SET xid = '0'`) // below every horizon
		sums, err := w.db.SumBooks(t.Context(), w.main.Workspace.ID, false)
		require.NoError(t, err)
		require.True(t, sums.Incremental)
		require.EqualValues(t, 2, sums.Settled)
		w.succeed("b")
		w.once()
		require.EqualValues(t, 4, one[int64](w, `SELECT settled::bigint FROM credit_checkpoints`))
	})

	t.Run("OfTwoAtOnceOneMovesIt", func(t *testing.T) {
		t.Parallel()
		w := setupAlone(t)
		ws := w.main.Workspace.ID
		first, err := w.db.SumBooks(t.Context(), ws, false)
		require.NoError(t, err)
		for _, want := range []bool{true, false} {
			saved, err := w.db.SaveCheckpoint(t.Context(), ws, first.Checkpoint)
			require.NoError(t, err)
			require.Equal(t, want, saved)
		}
		w.succeed("a")
		two, err := w.db.SumBooks(t.Context(), ws, false)
		require.NoError(t, err)
		stale := two.Checkpoint
		for _, want := range []bool{true, false} {
			saved, err := w.db.SaveCheckpoint(t.Context(), ws, two.Checkpoint)
			require.NoError(t, err)
			require.Equal(t, want, saved, "from %s to %s", stale.Was, stale.Horizon)
		}
	})

	t.Run("ARestoredDatabaseStartsAnew", func(t *testing.T) {
		t.Parallel()
		w := setupAlone(t)
		w.succeed("a")
		w.once()
		// In the cluster it was restored into the ids start over, so that the stored horizon lies in the future.
		w.exec(`UPDATE credit_checkpoints SET horizon = (pg_current_xact_id()::text::bigint + 1000000)::text::xid8`)
		w.succeed("b")
		sums, err := w.db.SumBooks(t.Context(), w.main.Workspace.ID, false)
		require.NoError(t, err)
		require.False(t, sums.Incremental)
		require.Zero(t, w.once()[repair.PassBooks].Found)
		require.True(t, one[bool](w, `SELECT horizon < pg_current_xact_id() AND settled = 4 FROM credit_checkpoints`))
	})

	t.Run("AWrongOneIsMadeAnewAndIsNoDrift", func(t *testing.T) {
		t.Parallel()
		w := setupAlone(t)
		w.succeed("a")
		w.once()
		w.exec(`UPDATE credit_checkpoints SET settled = 17`)
		require.Equal(t, repair.Result{Pass: repair.PassBooks, Found: 1, Fixed: 1}, w.once()[repair.PassBooks])
		require.Zero(t, w.once()[repair.PassBooks].Found)
		require.EqualValues(t, 2, one[int64](w, `SELECT settled::bigint FROM credit_checkpoints`))
	})

	t.Run("NoSnapshotIsLeftOpen", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.succeed("a")
		w.once()
		require.Zero(t, one[int64](w, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR xact_start IS NOT NULL)`))
	})
}

// damage runs the statements, which name tasks by their place.
func (w *world) damage(sql string, events map[int]uuid.UUID) {
	w.t.Helper()
	for place, id := range events {
		sql = strings.ReplaceAll(sql, fmt.Sprintf("$%d", place), "'"+id.String()+"'")
	}
	_, err := w.sql.Exec(w.t.Context(), sql)
	require.NoError(w.t, err)
}

// traffic does one round of a client's and a worker's work, ending in one of four ways.
func (w *world) traffic(user string, n int) {
	id := w.accept(w.main, user)
	lease := w.claim(id)
	switch {
	case lease == nil: // behind another in its lane
		return
	case n%4 == 0:
		class := task.ExtractionRejected
		ask := []worker.Fail{{Lease: *lease, Class: class, Code: task.CodeOf(class)}}
		if err := w.db.Fail(context.WithoutCancel(w.t.Context()), ask)[0].Err; err != nil {
			w.t.Errorf("fail: %v", err)
		}
		if n%8 == 0 {
			if err := w.retry(id); err != nil {
				w.t.Errorf("retry: %v", err)
			}
		}
	case n%4 == 1:
		w.commitOnly(*lease)
	default:
		w.complete(*lease)
	}
	if n%10 == 0 {
		if _, err := w.db.Grant(context.WithoutCancel(w.t.Context()), w.main.Workspace.ID, id.String(), 100); err != nil {
			w.t.Errorf("grant: %v", err)
		}
	}
}

// safeBuffer is a log that may be written to from several goroutines.
type safeBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	return len(p), nil
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
