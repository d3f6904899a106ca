package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// cancelSQL takes a task away from its worker, if it has one: the lease is gone, so that nothing the worker does
// from now on counts.
const cancelSQL = `
WITH old AS (
  SELECT id, status, worker_incarnation, claimed_at FROM tasks WHERE id = @task AND workspace_id = @workspace FOR UPDATE
)
UPDATE tasks AS t SET status = 'failed', head = false, lease_token = NULL, lease_until = NULL,
       error_class = 'cancelled', error_code = 'CANCELLED',
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM old
 WHERE t.id = old.id AND t.status IN ('pending', 'running') AND t.stage = 'accepted'
RETURNING t.generation, t.claims, old.status = 'running', old.worker_incarnation, old.claimed_at`

// stopPiecesSQL asks a task in pieces to end before its next piece. It is due at once, whatever it waits for.
const stopPiecesSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
)
UPDATE tasks AS t
   SET counts = coalesce(t.counts, '{}') || '{"cancel": true}', updated_at = clock.at,
       run_after = CASE t.status WHEN 'pending' THEN least(t.run_after, clock.at) ELSE t.run_after END,
       hint_seq = t.hint_seq + CASE t.status WHEN 'pending' THEN 1 ELSE 0 END,
       hint_at = CASE t.status WHEN 'pending' THEN clock.at ELSE t.hint_at END
  FROM clock
 WHERE t.id = @task AND t.workspace_id = @workspace AND t.kind = ANY(@kinds::text[]) AND t.stage = 'committed'
   AND t.status IN ('pending', 'running')
RETURNING t.status = 'pending', t.hint_seq, t.priority`

const cancelStateSQL = `
SELECT status, coalesce(error_code, ''), coalesce((counts ->> 'cancel')::boolean, false)
  FROM all_tasks WHERE id = @task AND workspace_id = @workspace`

// Cancel implements write.CancelStore.
func (db *DB) Cancel(ctx context.Context, workspace, id uuid.UUID) (write.Ended, error) {
	at, err := db.placeOf(ctx, &workspace, id)
	if err != nil {
		return write.Ended{}, err
	}
	if at == nil {
		return write.Ended{}, db.notCancelled(ctx, workspace, id)
	}
	var ended write.Ended
	err = db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		ended = write.Ended{}
		now := tx.db.now()
		var was *closed
		b := &batch{}
		addLockLane(b, workspace, at.lane)
		b.query("cancel", cancelSQL, pgx.NamedArgs{"task": id, "workspace": workspace, "now": now}, func(rows pgx.Rows) error {
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
		failpoint.Hit("cancel.in_tx")
		b = &batch{}
		addAct(ctx, b, now, act{workspace, operator.Cancel, eventSubject(id), nil})
		addClosing(b, id, *at, *was, endedFailed, task.Cancelled, now, func(h task.Hint) { ended.Hint = &h })
		return tx.send(ctx, b)
	})
	if errors.Is(err, errNotHere) {
		return db.stopPieces(ctx, workspace, id)
	}
	return ended, err
}

// stopPieces lets a task in pieces that has begun to commit end as it is: what is applied stays. It ends no task
// itself, so it needs no lane.
func (db *DB) stopPieces(ctx context.Context, workspace, id uuid.UUID) (write.Ended, error) {
	var ended write.Ended
	asked := false
	err := db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) (err error) {
		ended = write.Ended{}
		asked, err = tx.stopPieces(ctx, id, func(h task.Hint) { ended.Hint = &h })
		return err
	})
	if err != nil || asked {
		return ended, err
	}
	return write.Ended{}, db.notCancelled(ctx, workspace, id)
}

// stopPieces asks the task to end before its next piece, records it, and gives the hint of one that is due to found. It
// tells whether there was a task to ask.
func (tx *Tx) stopPieces(ctx context.Context, id uuid.UUID, found func(task.Hint)) (asked bool, err error) {
	now := tx.db.now()
	b := &batch{}
	b.query("stop pieces", stopPiecesSQL, pgx.NamedArgs{
		"task": id, "workspace": tx.workspace, "kinds": kindNames([]task.Kind{task.BatchUpdate, task.BatchDelete}), "now": now,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			asked = true
			var due bool
			hint := task.Hint{TaskID: id, WorkspaceID: tx.workspace}
			if err := rows.Scan(&due, &hint.Seq, &hint.Priority); err != nil {
				return err
			}
			if due {
				found(hint)
			}
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil || !asked {
		return asked, err
	}
	b = &batch{}
	addAct(ctx, b, now, act{tx.workspace, operator.Cancel, eventSubject(id), nil})
	return true, tx.send(ctx, b)
}

// notCancelled explains why there was nothing to cancel: nil when it had been cancelled before.
func (db *DB) notCancelled(ctx context.Context, workspace, id uuid.UUID) error {
	var status task.Status
	var code task.ErrorCode
	found, stopped := false, false
	err := db.read(ctx, of(workspace), "state of cancelled", cancelStateSQL, pgx.NamedArgs{"task": id, "workspace": workspace},
		func(rows pgx.Rows) error {
			for rows.Next() {
				found = true
				if err := rows.Scan(&status, &code, &stopped); err != nil {
					return err
				}
			}
			return nil
		})
	switch {
	case err != nil:
		return err
	case !found:
		return fault.New(fault.EventNotFound)
	case status == task.Failed && code == task.CodeCancelled, status == task.Succeeded && stopped:
		return nil
	default:
		return fault.New(fault.NotCancellable)
	}
}
