package postgres

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// attemptsSQL is attemptSQL for the successes of a group.
const attemptsSQL = `
INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending,
                           delay_ms, model_ms, provider_calls, tokens_in, tokens_out)
SELECT i.task, i.claim, i.workspace, i.generation, i.worker, i.claimed_at,
       (SELECT coalesce(@now::timestamptz, clock_timestamp())), 'succeeded', 0, i.model_ms, i.provider_calls, i.tokens_in, i.tokens_out
  FROM unnest(@tasks::uuid[], @claims::int[], @workspaces::uuid[], @generations::int[], @workers::text[],
              @claimed_ats::timestamptz[], @model_ms::bigint[], @provider_calls::int[], @tokens_in::bigint[], @tokens_out::bigint[])
       AS i (task, claim, workspace, generation, worker, claimed_at, model_ms, provider_calls, tokens_in, tokens_out)`

// settleRunsSQL is closeRunSQL for the successes of a group: each account moves once.
const settleRunsSQL = `
WITH r AS (
  UPDATE task_runs AS r SET outcome = 'succeeded'
    FROM unnest(@tasks::uuid[], @generations::int[]) AS i (task, generation)
   WHERE r.task_id = i.task AND r.generation = i.generation AND r.outcome IS NULL
  RETURNING r.task_id, r.generation, r.workspace_id, r.amount
), c AS (
  INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
  SELECT task_id, generation, workspace_id, 'succeeded', amount, amount, 0,
         (SELECT coalesce(@now::timestamptz, clock_timestamp()))
    FROM r
  RETURNING workspace_id, amount
), a AS (
  UPDATE credit_accounts AS a SET held = a.held - s.amount
    FROM (SELECT workspace_id, sum(amount)::bigint AS amount FROM c GROUP BY workspace_id) s
   WHERE a.workspace_id = s.workspace_id AND s.amount > 0
)
SELECT count(*) FROM c`

// taskEnd is a task that a group ends with success.
type taskEnd struct {
	lease worker.Lease
	work  worker.Work
}

// addEnds writes the attempts of tasks that succeed and settles their runs, the accounts last and in order.
func addEnds(b *batch, ends []taskEnd, now *time.Time) {
	n := len(ends)
	if n == 0 {
		return
	}
	tasks, workspaces := make([]uuid.UUID, n), make([]uuid.UUID, n)
	claims, generations, calls := make([]int32, n), make([]int32, n), make([]int32, n)
	tokensIn, tokensOut, times := make([]int64, n), make([]int64, n), make([]int64, n)
	workers, claimed := make([]string, n), make([]time.Time, n)
	for i, e := range ends {
		tasks[i], workspaces[i], workers[i], claimed[i] = e.lease.TaskID, e.lease.WorkspaceID, e.lease.Worker, e.lease.ClaimedAt
		claims[i], generations[i] = int32(e.lease.Claim), int32(e.lease.Generation)     // #nosec G115 -- small numbers
		calls[i], times[i] = int32(e.work.Usage.Calls), e.work.ModelTime.Milliseconds() // #nosec G115 -- a small number
		tokensIn[i], tokensOut[i] = e.work.Usage.TokensIn, e.work.Usage.TokensOut
	}
	b.exec("attempts", attemptsSQL, pgx.NamedArgs{
		"tasks": tasks, "claims": claims, "workspaces": workspaces, "generations": generations, "workers": workers,
		"claimed_ats": claimed, "model_ms": times, "provider_calls": calls, "tokens_in": tokensIn, "tokens_out": tokensOut, "now": now,
	}, nil)
	b.exec("lock accounts", lockAccountsSQL, pgx.NamedArgs{"workspaces": distinct(slices.Clone(workspaces))}, nil)
	b.query("settle runs", settleRunsSQL, pgx.NamedArgs{"tasks": tasks, "generations": generations, "now": now},
		func(rows pgx.Rows) error {
			closed, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
			if err == nil && closed != int64(n) {
				return errNoRun
			}
			return err
		})
}
