package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// holdCommittedSQL is the fence of every step of a committed task: it holds the row to the commit.
const holdCommittedSQL = `
SELECT generation FROM tasks
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'committed'
   FOR NO KEY UPDATE`

// scrubPlanSQL removes the body of a plan whose effects are all there.
const scrubPlanSQL = `UPDATE plans SET body = NULL WHERE task_id = @task AND body IS NOT NULL`

// resultEventsSQL reads what the commit did, to name the outcome.
const resultEventsSQL = `SELECT event FROM task_results WHERE task_id = @task ORDER BY ordinal`

// Settle implements worker.Steps.
func (db *DB) Settle(ctx context.Context, items []worker.Settle) []worker.Done {
	answers := make([]worker.Done, len(items))
	for i, item := range items {
		if db.steps != nil {
			answers[i] = db.steps.settle(ctx, item)
			continue
		}
		answers[i] = db.settle(ctx, item)
	}
	return answers
}

func (db *DB) settle(ctx context.Context, item worker.Settle) worker.Done {
	done, err := db.trySettle(ctx, item, db.lockTimeout)
	if errors.Is(err, errNotHere) {
		return db.ended(ctx, item.Lease)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	return done
}

// trySettle settles one task or answers what is in its way: errNotHere, or what the database says.
func (db *DB) trySettle(ctx context.Context, item worker.Settle, patience string) (worker.Done, error) {
	l := item.Lease
	err := db.inTx(ctx, db.opening(openSQL, l.WorkspaceID, patience), func(ctx context.Context, tx *Tx) error {
		now := tx.db.now()
		held := false
		var results []memory.Result
		b := &batch{}
		b.query("hold committed", holdCommittedSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token}, fence(&held))
		b.query("results", resultEventsSQL, pgx.NamedArgs{"task": l.TaskID}, func(rows pgx.Rows) error {
			results = nil
			for rows.Next() {
				var r memory.Result
				if err := rows.Scan(&r.Change); err != nil {
					return err
				}
				results = append(results, r)
			}
			return nil
		})
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !held {
			return errNotHere
		}
		failpoint.Hit("settle.in_tx")
		b = &batch{}
		addVectors(b, l.WorkspaceID, item.VectorModel, item.Projected, now)
		addFinish(b, l, outcomeOf(results), now)
		b.exec("scrub plan", scrubPlanSQL, pgx.NamedArgs{"task": l.TaskID}, nil)
		addAttempt(b, l, endedSucceeded, "", 0, item.Work, now)
		addCloseRun(b, l.TaskID, l.Generation, task.Succeeded, now)
		return tx.send(ctx, b)
	})
	if err != nil {
		return worker.Done{}, err
	}
	failpoint.Hit("settle.committed")
	return worker.Done{Ended: true}, nil
}

// ended tells what became of a last step that touched nothing: the task has ended, under this lease or another,
// or it goes on under another.
func (db *DB) ended(ctx context.Context, l worker.Lease) worker.Done {
	done := db.moved(ctx, l)
	if done.Err == nil { // still under this lease: the fence's predicate and ours disagree about the stage
		return worker.Done{Err: fault.ErrLeaseLost}
	}
	return done
}
