package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/repair"
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

// expiredLease is one finding of the expiry scan.
type expiredLease struct {
	id, workspace, token uuid.UUID
	until                time.Time
	exhausted            bool
}

func (e expiredLease) place() repair.Cursor { return repair.Cursor{ID: e.id} }

// Rescue implements worker.Claims. Every call looks at the page behind the one before and begins anew after the last,
// so that no number of rows that can't be moved hides those behind them.
func (db *DB) Rescue(ctx context.Context, maxAttempts, limit int) ([]worker.Rescued, error) {
	after := repair.Cursor{}
	if place := db.rescued.Load(); place != nil {
		after = *place
	}
	moved, page, err := db.RescueAfter(ctx, maxAttempts, after, limit)
	if page.More {
		db.rescued.Store(&page.Next)
	} else {
		db.rescued.Store(nil)
	}
	return moved, err
}

// RescueAfter implements repair.Leases.
func (db *DB) RescueAfter(ctx context.Context, maxAttempts int, after repair.Cursor, limit int) ([]worker.Rescued, repair.Swept, error) {
	found, err := db.expired(ctx, maxAttempts, after.ID, limit)
	if err != nil || len(found) == 0 {
		return nil, repair.Swept{}, err
	}
	page := repair.Swept{Next: found[len(found)-1].place(), More: len(found) == limit}
	return moveEach(ctx, db, found, page, func(ctx context.Context, e expiredLease) (*worker.Rescued, error) {
		if e.exhausted {
			return db.exhaust(ctx, e.id, maxAttempts)
		}
		return db.rescue(ctx, e, maxAttempts)
	})
}

func (db *DB) expired(ctx context.Context, maxAttempts int, after uuid.UUID, limit int) ([]expiredLease, error) {
	var found []expiredLease
	err := db.read(ctx, unbound, "expired leases", expiredSQL, pgx.NamedArgs{
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
	err := db.alone(ctx, unbound, "rescue", rescueSQL, pgx.NamedArgs{
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
