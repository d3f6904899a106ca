package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// laterSQL gives a lease up. A recorded failure spends its class's budget; a give-back spends nothing and leaves
// no trace but its attempt row, so that the event reads as if the claim had not been made.
const laterSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), t AS (
  UPDATE tasks SET status = 'pending', lease_token = NULL, lease_until = NULL, crashes = greatest(crashes - 1, 0),
         starts = starts - CASE WHEN @class = '' THEN 1 ELSE 0 END,
         spent = CASE WHEN @class = '' THEN spent
                      ELSE jsonb_set(spent, ARRAY[@class::text], to_jsonb(coalesce((spent ->> @class::text)::int, 0) + 1)) END,
         run_after = clock.at + make_interval(secs => @delay), hint_seq = hint_seq + 1,
         hint_at = clock.at + make_interval(secs => @delay),
         error_class = CASE WHEN @class = '' THEN error_class ELSE @class END,
         error_code = CASE WHEN @class = '' THEN error_code ELSE @code END, updated_at = clock.at
    FROM clock
   WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = @stage
  RETURNING tasks.id, hint_seq, priority
), a AS (
  INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class,
                             delay_ms, model_ms, provider_calls, tokens_in, tokens_out)
  SELECT t.id, @claim, @workspace, @generation, @worker, @claimed_at, clock.at, @ending, nullif(@class, ''), @delay_ms,
         @model_ms, @provider_calls, @tokens_in, @tokens_out
    FROM t, clock
)
SELECT hint_seq, priority FROM t`

// Later implements worker.Steps.
func (db *DB) Later(ctx context.Context, items []worker.Later) []worker.Done {
	answers := make([]worker.Done, len(items))
	for i, item := range items {
		answers[i] = db.later(ctx, item)
	}
	return answers
}

func (db *DB) later(ctx context.Context, item worker.Later) worker.Done {
	l := item.Lease
	ending := endedRetry
	if item.Class == "" {
		ending = endedGivenBack
	}
	args := attemptArgs(l, ending, item.Class, item.Delay, item.Work, db.now())
	args["token"], args["stage"], args["code"] = l.Token, string(l.Stage), string(item.Code)
	args["class"], args["delay"] = string(item.Class), inSeconds(item.Delay)
	var done worker.Done
	held := false
	err := db.alone(ctx, of(item.Lease.WorkspaceID), "later", laterSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			held = true
			hint := task.Hint{TaskID: l.TaskID, WorkspaceID: l.WorkspaceID}
			if err := rows.Scan(&hint.Seq, &hint.Priority); err != nil {
				return err
			}
			if item.Delay <= 0 { // a hint before its time finds nothing to claim
				done.Hint = &hint
			}
		}
		return nil
	})
	failpoint.Hit("later.committed")
	switch {
	case err != nil:
		return worker.Done{Err: err}
	case !held:
		return worker.Done{Err: fault.ErrLeaseLost}
	}
	return done
}
