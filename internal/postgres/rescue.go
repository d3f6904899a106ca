package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// expiredSQL filters before it limits, so that no number of live leases hides an expired one.
const expiredSQL = `
SELECT id, workspace_id, lease_token, lease_until, stage = 'accepted' AND crashes >= @max_attempts
  FROM tasks
 WHERE status = 'running' AND lease_until <= (SELECT coalesce(@now::timestamptz, clock_timestamp()))
   AND id > @after
 ORDER BY id
 LIMIT @limit`

// rescueSQL is a CAS on what was observed: a task that ended, beat or changed hands meanwhile stays as it is, and so
// does one whose row somebody holds, so that a frozen transaction never holds up the rest. The crash stays counted.
const rescueSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), old AS (
  SELECT id FROM tasks WHERE id = @task FOR UPDATE SKIP LOCKED
), t AS (
  UPDATE tasks AS t SET status = 'pending', lease_token = NULL, lease_until = NULL, run_after = clock.at,
         hint_seq = hint_seq + 1, hint_at = clock.at, updated_at = clock.at
    FROM clock, old
   WHERE t.id = old.id AND status = 'running' AND lease_token = @token AND lease_until = @until
     AND lease_until <= clock.at AND (stage <> 'accepted' OR crashes < @max_attempts)
  RETURNING t.id, workspace_id, generation, claims, worker_incarnation, claimed_at, hint_seq, priority
), a AS (
  INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class)
  SELECT t.id, t.claims, t.workspace_id, t.generation, t.worker_incarnation, t.claimed_at, clock.at, 'crashed', 'crash' FROM t, clock
)
SELECT hint_seq, priority FROM t`

// tryLaneSQL takes the lane's row if nobody holds it: who holds it may be frozen, and another round comes.
const tryLaneSQL = `SELECT 1 FROM lanes WHERE workspace_id = @workspace AND lane = @lane FOR UPDATE SKIP LOCKED`

// exhaustSQL fails a task that crashed too often before its canonical commit.
const exhaustSQL = `
WITH old AS (
  SELECT id, status, worker_incarnation, claimed_at FROM tasks WHERE id = @task FOR UPDATE SKIP LOCKED
)
UPDATE tasks AS t SET status = 'failed', head = false, lease_token = NULL, lease_until = NULL,
       error_class = 'crash', error_code = 'ATTEMPTS_EXHAUSTED',
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM old
 WHERE t.id = old.id AND t.stage = 'accepted' AND t.crashes >= @max_attempts
   AND (t.status = 'pending'
        OR t.status = 'running' AND t.lease_until <= (SELECT coalesce(@now::timestamptz, clock_timestamp())))
RETURNING t.generation, t.claims, old.status = 'running', old.worker_incarnation, old.claimed_at`

// expiredLease is one finding of the expiry scan.
type expiredLease struct {
	id, workspace, token uuid.UUID
	until                time.Time
	exhausted            bool
}

// Rescue implements worker.Claims. Each row has a transaction of its own and its own error: one poisoned row
// never stops the rest. The answer holds what was moved even when there is an error.
func (db *DB) Rescue(ctx context.Context, maxAttempts, limit int) ([]worker.Rescued, error) {
	var rescued []worker.Rescued
	var failures []error
	after := uuid.UUID{}
	for range rescuePages {
		found, err := db.expired(ctx, maxAttempts, after, limit)
		if err != nil {
			return rescued, errors.Join(append(failures, err)...)
		}
		for _, lease := range found {
			after = lease.id
			one, err := db.moveOn(ctx, lease, maxAttempts)
			if err != nil {
				failures = append(failures, fmt.Errorf("rescue %s: %w", lease.id, err))
			}
			if one != nil {
				rescued = append(rescued, *one)
			}
		}
		if len(found) < limit || len(rescued) > 0 {
			break
		}
	}
	return rescued, errors.Join(failures...)
}

// rescuePages bounds how many pages of rows that could not be moved one call looks past.
const rescuePages = 10

func (db *DB) moveOn(ctx context.Context, lease expiredLease, maxAttempts int) (*worker.Rescued, error) {
	if lease.exhausted {
		return db.exhaust(ctx, lease.id, maxAttempts)
	}
	return db.rescue(ctx, lease, maxAttempts)
}

func (db *DB) expired(ctx context.Context, maxAttempts int, after uuid.UUID, limit int) ([]expiredLease, error) {
	var found []expiredLease
	err := db.alone(ctx, "expired leases", expiredSQL, pgx.NamedArgs{
		"now": db.now(), "max_attempts": maxAttempts, "after": after, "limit": limit,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var e expiredLease
			if err := rows.Scan(&e.id, &e.workspace, &e.token, &e.until, &e.exhausted); err != nil {
				return err
			}
			found = append(found, e)
		}
		return nil
	})
	return found, err
}

func (db *DB) rescue(ctx context.Context, e expiredLease, maxAttempts int) (*worker.Rescued, error) {
	var moved *worker.Rescued
	err := db.alone(ctx, "rescue", rescueSQL, pgx.NamedArgs{
		"now": db.now(), "task": e.id, "token": e.token, "until": e.until, "max_attempts": maxAttempts,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			hint := task.Hint{TaskID: e.id, WorkspaceID: e.workspace}
			if err := rows.Scan(&hint.Seq, &hint.Priority); err != nil {
				return err
			}
			moved = &worker.Rescued{TaskID: e.id, WorkspaceID: e.workspace, Hints: []task.Hint{hint}}
		}
		return nil
	})
	return moved, err
}

// exhaust fails a task whose crashes are exhausted and releases its hold; nil when it no longer is.
func (db *DB) exhaust(ctx context.Context, id uuid.UUID, maxAttempts int) (*worker.Rescued, error) {
	at, err := db.placeOf(ctx, id)
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
		b.query("exhaust", exhaustSQL, pgx.NamedArgs{"task": id, "max_attempts": maxAttempts, "now": now},
			func(rows pgx.Rows) error {
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
