package postgres

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// lockLaneSQL takes the lane's row, which is older than any task of the lane and never goes away.
const lockLaneSQL = `SELECT 1 FROM lanes WHERE workspace_id = @workspace AND lane = @lane FOR UPDATE`

func addLockLane(b *batch, workspace uuid.UUID, lane memory.Lane) {
	b.exec("lock lane", lockLaneSQL, pgx.NamedArgs{"workspace": workspace, "lane": lane[:]}, nil)
}

// nextHeadSQL makes the lowest waiting task of the lane its head, if it has none. It runs under the lane's lock,
// in a statement after the one that cleared the head.
const nextHeadSQL = `
UPDATE tasks SET head = true, hint_seq = hint_seq + 1,
       hint_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = (SELECT w.id FROM tasks w
              WHERE w.workspace_id = @workspace AND w.lane = @lane AND w.lane_seq IS NOT NULL AND NOT w.head
                AND w.stage = 'accepted' AND w.completed_at IS NULL
              ORDER BY w.lane_seq LIMIT 1)
   AND NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = @workspace AND h.lane = @lane AND h.head)
RETURNING id, hint_seq, priority`

// addNextHead passes the lane on and gives the new head's hint to found.
func addNextHead(b *batch, workspace uuid.UUID, lane memory.Lane, now *time.Time, found func(task.Hint)) {
	b.query("pass head", nextHeadSQL, pgx.NamedArgs{"workspace": workspace, "lane": lane[:], "now": now},
		func(rows pgx.Rows) error {
			for rows.Next() {
				hint := task.Hint{WorkspaceID: workspace}
				if err := rows.Scan(&hint.TaskID, &hint.Seq, &hint.Priority); err != nil {
					return err
				}
				found(hint)
			}
			return nil
		})
}

// closeRunSQL ends the open run of a task: its outcome, its closing and the move on the account, the account
// last. The amount comes from the run, never from a price.
const closeRunSQL = `
WITH r AS (
  UPDATE task_runs SET outcome = @outcome
   WHERE task_id = @task AND generation = @generation AND outcome IS NULL
  RETURNING task_id, generation, workspace_id, amount
), c AS (
  INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
  SELECT task_id, generation, workspace_id, @outcome, amount,
         CASE WHEN @outcome = 'succeeded' THEN amount ELSE 0 END,
         CASE WHEN @outcome = 'succeeded' THEN 0 ELSE amount END,
         (SELECT coalesce(@now::timestamptz, clock_timestamp()))
    FROM r
  RETURNING workspace_id, amount, released
), a AS (
  UPDATE credit_accounts AS a SET held = a.held - c.amount, available = a.available + c.released
    FROM c
   WHERE a.workspace_id = c.workspace_id AND c.amount > 0
)
SELECT count(*) FROM c`

// addCloseRun settles (succeeded) or releases (failed) the hold of the run. It is the last step of its
// transaction.
func addCloseRun(b *batch, id uuid.UUID, generation int, outcome task.Status, now *time.Time) {
	b.query("close run", closeRunSQL, pgx.NamedArgs{
		"task": id, "generation": generation, "outcome": string(outcome), "now": now,
	}, func(rows pgx.Rows) error {
		closed, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		if err == nil && closed != 1 {
			return errNoRun
		}
		return err
	})
}

// attemptSQL writes the row of a claim that ends. A claim that was ended by somebody else already has its row.
const attemptSQL = `
INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class,
                           delay_ms, model_ms, provider_calls, tokens_in, tokens_out)
VALUES (@task, @claim, @workspace, @generation, @worker, @claimed_at,
        (SELECT coalesce(@now::timestamptz, clock_timestamp())), @ending, nullif(@class, ''), @delay_ms, @model_ms,
        @provider_calls, @tokens_in, @tokens_out)`

// How a claim ended.
const (
	endedSucceeded = "succeeded"
	endedRetry     = "retry"
	endedFailed    = "failed"
	endedGivenBack = "given_back"
)

func attemptArgs(l worker.Lease, ending string, class task.Class, delay time.Duration, w worker.Work, now *time.Time) pgx.NamedArgs {
	return pgx.NamedArgs{
		"task": l.TaskID, "claim": l.Claim, "workspace": l.WorkspaceID, "generation": l.Generation, "worker": l.Worker,
		"claimed_at": l.ClaimedAt, "now": now, "ending": ending, "class": string(class),
		"delay_ms": delay.Milliseconds(), "model_ms": w.ModelTime.Milliseconds(), "provider_calls": w.Usage.Calls,
		"tokens_in": w.Usage.TokensIn, "tokens_out": w.Usage.TokensOut,
	}
}

func addAttempt(b *batch, l worker.Lease, ending string, class task.Class, delay time.Duration, w worker.Work, now *time.Time) {
	b.exec("attempt", attemptSQL, attemptArgs(l, ending, class, delay, w, now), nil)
}

// fence reads the answer of a fenced update: no row means that the lease is lost.
func fence(touched *bool) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		*touched = rows.Next()
		return nil
	}
}
