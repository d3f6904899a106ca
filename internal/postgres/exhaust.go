package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// tryLaneSQL takes the lane's row if nobody holds it: who holds it may be frozen, and another round comes.
const tryLaneSQL = `SELECT 1 FROM lanes WHERE workspace_id = @workspace AND lane = @lane FOR UPDATE SKIP LOCKED`

// idleSQL fails a task that nobody runs before its canonical commit, on a condition on t.
const idleSQL = `
WITH old AS (
  SELECT id, status, worker_incarnation, claimed_at FROM tasks WHERE id = @task FOR UPDATE SKIP LOCKED
)
UPDATE tasks AS t SET status = 'failed', head = false, lease_token = NULL, lease_until = NULL,
       error_class = @class, error_code = @code,
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM old
 WHERE t.id = old.id AND t.stage = 'accepted' AND %s
   AND (t.status = 'pending'
        OR t.status = 'running' AND t.lease_until <= (SELECT coalesce(@now::timestamptz, clock_timestamp())))
RETURNING t.generation, t.claims, old.status = 'running', old.worker_incarnation, old.claimed_at`

// waitingSQL reads a page of the index of waiting tasks and answers the exhausted ones of it, and its last row.
const waitingSQL = `
WITH page AS MATERIALIZED (
  SELECT t.workspace_id, t.run_after, t.id, t.stage = 'accepted' AND t.crashes >= @max_attempts AS exhausted
    FROM tasks t
   WHERE t.status = 'pending' AND t.ready AND (t.workspace_id, t.run_after, t.id) > (@workspace, @at, @after)
   ORDER BY t.workspace_id, t.run_after, t.id
   LIMIT @limit
), counted AS (
  SELECT page.*, count(*) OVER () AS total, row_number() OVER (ORDER BY workspace_id, run_after, id) AS place FROM page
)
SELECT workspace_id, run_after, id, exhausted, total FROM counted WHERE exhausted OR place = total ORDER BY place`

// waitingTask is the place of one finding in the index of waiting tasks.
type waitingTask repair.Cursor

func (t waitingTask) place() repair.Cursor { return repair.Cursor(t) }

// ExhaustAfter implements repair.Leases.
func (db *DB) ExhaustAfter(ctx context.Context, maxAttempts int, after repair.Cursor, limit int) ([]worker.Rescued, repair.Swept, error) {
	var found []waitingTask
	page := repair.Swept{Next: after}
	err := db.read(ctx, unbound, "waiting tasks", waitingSQL, pgx.NamedArgs{
		"max_attempts": maxAttempts, "workspace": after.Workspace, "at": after.At, "after": after.ID, "limit": limit,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var exhausted bool
			var total int
			if err := rows.Scan(&page.Next.Workspace, &page.Next.At, &page.Next.ID, &exhausted, &total); err != nil {
				return err
			}
			page.More = total == limit
			if exhausted {
				found = append(found, waitingTask(page.Next))
			}
		}
		return nil
	})
	if err != nil {
		return nil, repair.Swept{}, err
	}
	return moveEach(ctx, db, found, page, func(ctx context.Context, t waitingTask) (*worker.Rescued, error) {
		return db.exhaust(ctx, t.ID, maxAttempts)
	})
}

// idle says why a task ends failed that nobody runs.
type idle struct {
	name  string // of the step
	where string // the condition on the task t
	args  pgx.NamedArgs
	class task.Class
	also  func(b *batch, at place) // what goes with it, before the account; may be nil
}

// exhaust fails a task whose crashes are exhausted and releases its hold; nil when it no longer is.
func (db *DB) exhaust(ctx context.Context, id uuid.UUID, maxAttempts int) (*worker.Rescued, error) {
	return db.failIdle(ctx, id, idle{
		name: "exhaust", where: `t.crashes >= @max_attempts`, args: pgx.NamedArgs{"max_attempts": maxAttempts}, class: task.Crash,
	})
}

// failIdle fails a task that is not committed and that nobody runs, and releases its hold; nil when the condition doesn't
// hold, or when somebody has the task or its lane at this moment.
func (db *DB) failIdle(ctx context.Context, id uuid.UUID, why idle) (*worker.Rescued, error) {
	at, err := db.placeOf(ctx, nil, id)
	if err != nil || at == nil {
		return nil, err
	}
	moved := &worker.Rescued{TaskID: id, WorkspaceID: at.workspace, Failed: true}
	err = db.InTx(ctx, at.workspace, func(ctx context.Context, tx *Tx) error {
		moved.Hints = nil
		now := tx.db.now()
		var was *closed
		free := false
		b := &batch{}
		b.query("try lane", tryLaneSQL, pgx.NamedArgs{"workspace": at.workspace, "lane": at.lane[:]}, fence(&free))
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !free {
			return errNotHere
		}
		b = &batch{}
		args := pgx.NamedArgs{"task": id, "class": string(why.class), "code": string(task.CodeOf(why.class)), "now": now}
		maps.Copy(args, why.args)
		b.query(why.name, fmt.Sprintf(idleSQL, why.where), args, func(rows pgx.Rows) error {
			var err error
			was, err = scanClosed(rows)
			return err
		})
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if was == nil {
			return errNotHere
		}
		failpoint.Hit("exhaust.in_tx")
		b = &batch{}
		if why.also != nil {
			why.also(b, *at)
		}
		addClosing(b, id, *at, *was, "crashed", task.Crash, now, func(h task.Hint) { moved.Hints = append(moved.Hints, h) })
		return tx.send(ctx, b)
	})
	if errors.Is(err, errNotHere) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return moved, nil
}
