package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// fenceFailSQL ends a run before its canonical commit. The input stays for the retry window.
const fenceFailSQL = `
UPDATE tasks SET status = 'failed', head = false, lease_token = NULL, lease_until = NULL,
       crashes = greatest(crashes - 1, 0), error_class = @class, error_code = @code,
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'accepted'
RETURNING generation`

// Fail implements worker.Steps.
func (db *DB) Fail(ctx context.Context, items []worker.Fail) []worker.Done {
	answers := make([]worker.Done, len(items))
	for i, item := range items {
		answers[i] = db.fail(ctx, item)
	}
	return answers
}

func (db *DB) fail(ctx context.Context, item worker.Fail) worker.Done {
	l := item.Lease
	var done worker.Done
	err := db.InTx(ctx, l.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		done = worker.Done{Ended: true}
		now := tx.db.now()
		held := false
		b := &batch{}
		addLockLane(b, l.WorkspaceID, l.Lane)
		b.query("fence fail", fenceFailSQL, pgx.NamedArgs{
			"task": l.TaskID, "token": l.Token, "class": string(item.Class), "code": string(item.Code), "now": now,
		}, fence(&held))
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !held {
			return errNotHere
		}
		failpoint.Hit("fail.in_tx")
		b = &batch{}
		addNextHead(b, l.WorkspaceID, l.Lane, now, func(h task.Hint) { done.Head = &h })
		addAttempt(b, l, endedFailed, item.Class, 0, item.Work, now)
		addCloseRun(b, l.TaskID, l.Generation, task.Failed, now)
		return tx.send(ctx, b)
	})
	if errors.Is(err, errNotHere) {
		return db.ended(ctx, l)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	failpoint.Hit("fail.committed")
	return done
}

// laneOfSQL reads where a task belongs, without a lock: a lane never changes.
const laneOfSQL = `
SELECT workspace_id, kind, lane FROM tasks
 WHERE id = @task AND (@workspace::uuid IS NULL OR workspace_id = @workspace)`

// place is what of a task never changes.
type place struct {
	workspace uuid.UUID
	kind      task.Kind
	lane      memory.Lane
}

// placeOf answers the place of a task of the hot table, nil if the workspace has no such task. Without a workspace it is
// a task of any.
func (db *DB) placeOf(ctx context.Context, workspace *uuid.UUID, id uuid.UUID) (*place, error) {
	var found *place
	within := unbound
	if workspace != nil {
		within = of(*workspace)
	}
	err := db.read(ctx, within, "place of task", laneOfSQL, pgx.NamedArgs{"task": id, "workspace": workspace}, func(rows pgx.Rows) error {
		for rows.Next() {
			var lane []byte
			p := place{}
			if err := rows.Scan(&p.workspace, &p.kind, &lane); err != nil {
				return err
			}
			copy(p.lane[:], lane)
			found = &p
		}
		return nil
	})
	return found, err
}

// closed is a task that somebody without its lease has just failed.
type closed struct {
	generation int
	claim      int
	wasRunning bool
	worker     string
	claimedAt  *time.Time
}

// scanClosed reads the answer of a statement that failed a task from outside, nil if it touched nothing.
func scanClosed(rows pgx.Rows) (*closed, error) {
	var found *closed
	for rows.Next() {
		c := closed{}
		var name *string
		if err := rows.Scan(&c.generation, &c.claim, &c.wasRunning, &name, &c.claimedAt); err != nil {
			return nil, err
		}
		if name != nil {
			c.worker = *name
		}
		found = &c
	}
	return found, nil
}

// addClosing adds what follows the end of a task from outside: its lane goes on, its claim gets its attempt row
// and its hold is released.
func addClosing(b *batch, id uuid.UUID, at place, c closed, ending string, class task.Class, now *time.Time, head func(task.Hint)) {
	addNextHead(b, at.workspace, at.lane, now, head)
	if c.wasRunning && c.claimedAt != nil {
		l := worker.Lease{
			TaskID: id, WorkspaceID: at.workspace, Claim: c.claim, Generation: c.generation, Worker: c.worker,
			ClaimedAt: *c.claimedAt,
		}
		addAttempt(b, l, ending, class, 0, worker.Work{}, now)
	}
	addCloseRun(b, id, c.generation, task.Failed, now)
}
