package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/repair"
)

// endedSQL reads ended tasks in the order they ended, and whether each is a failed one that still has its input.
const endedSQL = `
SELECT t.id, t.completed_at, t.status = 'failed' AND t.command IS NOT NULL
  FROM %s t
 WHERE t.completed_at <= (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @older)
   AND (t.completed_at, t.id) > (@at, @after)
 ORDER BY t.completed_at, t.id
 LIMIT @limit`

// expireInputSQL takes a task only while it is still failed. A manual retry that holds the row is not waited for: the
// task is its own then. One that waits for us finds no input and answers INPUT_EXPIRED.
const expireInputSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), old AS (
  SELECT t.id FROM tasks t
   WHERE t.id = ANY(@ids::uuid[]) AND t.status = 'failed' AND t.command IS NOT NULL
     AND t.completed_at <= (SELECT at FROM clock) - make_interval(secs => @older)
   ORDER BY t.id
     FOR UPDATE SKIP LOCKED
), t AS (
  UPDATE tasks AS t SET command = NULL, updated_at = clock.at FROM old, clock WHERE t.id = old.id RETURNING t.id
), p AS (
  UPDATE plans SET body = NULL WHERE task_id IN (SELECT id FROM t) AND body IS NOT NULL
), parts AS (
  DELETE FROM task_parts WHERE task_id IN (SELECT id FROM t)
)
SELECT id FROM t`

// movedColumnsSQL lists every column of a task but the generated one, which the archive makes for itself.
const movedColumnsSQL = `id, workspace_id, kind, status, stage, generation, claims, starts, crashes, spent, run_after, lease_token,
       lease_until, worker_incarnation, claimed_at, hint_seq, hint_at, user_id, agent_id, run_id, app_id, lane, lane_seq,
       head, priority, command, payload_format, policy, cursor, key_hash, item_key, item_revision, counts, outcome, error_class, error_code, erased, trace,
       accepted_at, updated_at, started_at, committed_at, completed_at`

// archiveSQL moves a task in one statement, so that every reader's snapshot has it in exactly one of the two tables.
// It takes what can't change any more: a failed task that still has its input can be retried.
const archiveSQL = `
WITH old AS (
  SELECT t.id FROM tasks t
   WHERE t.id = ANY(@ids::uuid[]) AND (t.status = 'succeeded' OR t.status = 'failed' AND t.command IS NULL)
     AND t.completed_at <= (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @older)
   ORDER BY t.id
     FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM tasks AS t USING old WHERE t.id = old.id RETURNING t.*
)
INSERT INTO tasks_archive (` + movedColumnsSQL + `)
SELECT ` + movedColumnsSQL + ` FROM gone
RETURNING id`

// retireSQL forgets a task with all that tells of it, and its key in the same moment, so that no key is ever without
// its task. A key that belongs to another task by now stays. The journal (runs, closings, grants), the records and
// their history stay, and the latest task of an item as long as the item: it is what says that the item has landed.
const retireSQL = `
WITH old AS (
  SELECT t.id, t.workspace_id, t.key_hash FROM tasks_archive t
   WHERE t.id = ANY(@ids::uuid[])
     AND NOT EXISTS (SELECT FROM items i
                      WHERE i.workspace_id = t.workspace_id AND i.item_key = t.item_key AND i.task_id = t.id)
     AND t.completed_at <= (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @older)
   ORDER BY t.id
     FOR UPDATE SKIP LOCKED
), own_keys AS (
  DELETE FROM idempotency_keys k USING old
   WHERE k.workspace_id = old.workspace_id AND k.key_hash = old.key_hash AND k.task_id = old.id
), retry_keys AS (
  DELETE FROM idempotency_keys k USING old WHERE k.task_id = old.id AND k.retry
), results AS (
  DELETE FROM task_results r USING old WHERE r.task_id = old.id
), attempts AS (
  DELETE FROM task_attempts a USING old WHERE a.task_id = old.id
), bodies AS (
  DELETE FROM plans p USING old WHERE p.task_id = old.id
), parts AS (
  DELETE FROM task_parts p USING old WHERE p.task_id = old.id
), deliveries AS (
  DELETE FROM webhook_deliveries d USING old WHERE d.task_id = old.id
)
DELETE FROM tasks_archive AS t USING old WHERE t.id = old.id RETURNING t.id`

// ended is a task whose time may be over.
type ended struct {
	ID          uuid.UUID
	CompletedAt time.Time
	Input       bool
}

// outdated is one kind of retention: which rows it looks through, which of them it is about, and what it does.
type outdated struct {
	name   string
	table  string
	wanted func(e ended) bool
	move   string
}

// ExpireInput implements repair.Retention.
func (db *DB) ExpireInput(ctx context.Context, older time.Duration, after repair.Cursor, limit int) (repair.Swept, error) {
	return db.sweep(ctx, outdated{
		name: "expire input", table: "tasks", wanted: func(e ended) bool { return e.Input }, move: expireInputSQL,
	}, older, after, limit)
}

// ArchiveEnded implements repair.Retention.
func (db *DB) ArchiveEnded(ctx context.Context, older time.Duration, after repair.Cursor, limit int) (repair.Swept, error) {
	return db.sweep(ctx, outdated{
		name: "archive", table: "tasks", wanted: func(e ended) bool { return !e.Input }, move: archiveSQL,
	}, older, after, limit)
}

// RetireArchived implements repair.Retention.
func (db *DB) RetireArchived(ctx context.Context, older time.Duration, after repair.Cursor, limit int) (repair.Swept, error) {
	return db.sweep(ctx, outdated{
		name: "retire", table: "tasks_archive", wanted: func(ended) bool { return true }, move: retireSQL,
	}, older, after, limit)
}

// sweep looks at the next rows behind after and moves those that are wanted in one transaction. When that fails each
// row is tried alone, so that one poisoned row never stops the rest.
func (db *DB) sweep(ctx context.Context, what outdated, older time.Duration, after repair.Cursor, limit int) (repair.Swept, error) {
	var page []ended
	err := db.read(ctx, unbound, what.name, fmt.Sprintf(endedSQL, what.table), pgx.NamedArgs{
		"now": db.now(), "older": inSeconds(older), "at": after.At, "after": after.ID, "limit": limit,
	}, func(rows pgx.Rows) (err error) {
		page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ended])
		return err
	})
	if err != nil || len(page) == 0 {
		return repair.Swept{}, err
	}
	var ids []uuid.UUID
	for _, e := range page {
		if what.wanted(e) {
			ids = append(ids, e.ID)
		}
	}
	last := page[len(page)-1]
	swept := repair.Swept{Found: len(ids), Next: repair.Cursor{At: last.CompletedAt, ID: last.ID}, More: len(page) == limit}
	if len(ids) == 0 {
		return swept, nil
	}
	swept.Fixed, err = db.moveOutdated(ctx, what, ids, older)
	if err == nil {
		return swept, nil
	}
	if len(ids) == 1 || db.away(ctx, err) {
		swept.Failed, swept.More = len(ids), swept.More && len(ids) == 1
		return swept, err
	}
	return db.sweepEach(ctx, what, ids, older, swept)
}

// sweepEach moves rows one by one after they failed together.
func (db *DB) sweepEach(ctx context.Context, what outdated, ids []uuid.UUID, older time.Duration, swept repair.Swept) (repair.Swept, error) {
	var failed failures
	for _, id := range ids {
		moved, err := db.moveOutdated(ctx, what, []uuid.UUID{id}, older)
		swept.Fixed += moved
		if err == nil {
			continue
		}
		swept.Failed++
		failed.add(fmt.Errorf("task %s: %w", id, err))
		if db.away(ctx, err) {
			swept.More = false
			break
		}
	}
	return swept, failed.join()
}

func (db *DB) moveOutdated(ctx context.Context, what outdated, ids []uuid.UUID, older time.Duration) (int, error) {
	moved := 0
	err := db.alone(ctx, unbound, what.name, what.move, pgx.NamedArgs{"now": db.now(), "ids": ids, "older": inSeconds(older)},
		func(rows pgx.Rows) error {
			for rows.Next() {
				moved++
			}
			return nil
		})
	if err != nil {
		return 0, err // rolled back, or unknown: the next round finds what is left
	}
	return moved, nil
}
