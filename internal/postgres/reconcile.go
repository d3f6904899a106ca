package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	randv2 "math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// booksBound is how long one look at a workspace's books may take and so hold back vacuum. Without a checkpoint it
// reads the whole journal, at some millions of movements a second.
const booksBound = 2 * time.Minute

// ledgersSQL leaves fresh books out before it limits, so that no number of them hides others: fewer answers than the
// limit are all there are.
const ledgersSQL = `
WITH fresh AS (
  SELECT workspace_id FROM credit_checkpoints
   WHERE @fresh > 0
     AND checked_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @fresh)
)
SELECT l.id FROM (
  (SELECT w.id FROM workspaces w
    WHERE w.id > @after AND NOT EXISTS (SELECT FROM fresh f WHERE f.workspace_id = w.id)
    ORDER BY w.id LIMIT @limit)
  UNION
  (SELECT a.workspace_id FROM credit_accounts a
    WHERE a.workspace_id > @after AND NOT EXISTS (SELECT FROM fresh f WHERE f.workspace_id = a.workspace_id)
    ORDER BY a.workspace_id LIMIT @limit)) l
 ORDER BY l.id
 LIMIT @limit`

// sumBooksSQL is one statement and so one snapshot, like the transactions that move money: a run, its closing and its
// account change together, so that the sums agree in every snapshot, whatever goes on beside it.
//
// A movement carries the id of the transaction that wrote it. Those ids are not in commit order: a transaction with a
// small id may commit after one with a large id. Below xmin of a snapshot, however, every transaction has ended, so
// that a movement with a smaller id is either visible in this snapshot or never will be; and every later movement has
// an id of at least xmin. So the sums of the movements below xmin are final: they are the next checkpoint, with xmin
// as its horizon, and the next look starts there. (An open transaction anywhere in the cluster holds xmin back; then
// the checkpoint stays behind and the next look reads more, no less.)
//
// xmin never falls. A horizon beyond it comes from another cluster: the database was restored into one whose ids
// start lower, and movements yet to come may be below that horizon. Such a checkpoint counts as none.
const sumBooksSQL = `
WITH snap AS MATERIALIZED (
  SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin
), stored AS MATERIALIZED (
  SELECT horizon, granted, settled FROM credit_checkpoints WHERE workspace_id = @workspace
), base AS MATERIALIZED (
  SELECT horizon, granted, settled FROM stored WHERE NOT @full AND horizon <= (SELECT xmin FROM snap)
  UNION ALL
  SELECT '0'::xid8, 0, 0
  ORDER BY horizon DESC LIMIT 1
), g AS (
  SELECT coalesce(sum(amount), 0) AS all_of, coalesce(sum(amount) FILTER (WHERE xid < (SELECT xmin FROM snap)), 0) AS final
    FROM credit_grants WHERE workspace_id = @workspace AND xid >= (SELECT horizon FROM base)
), s AS (
  SELECT coalesce(sum(settled), 0) AS all_of, coalesce(sum(settled) FILTER (WHERE xid < (SELECT xmin FROM snap)), 0) AS final
    FROM credit_closings WHERE workspace_id = @workspace AND xid >= (SELECT horizon FROM base)
), o AS (
  SELECT coalesce(sum(amount), 0) AS amount FROM task_runs WHERE workspace_id = @workspace AND outcome IS NULL
)
SELECT coalesce((SELECT available FROM credit_accounts WHERE workspace_id = @workspace), 0),
       coalesce((SELECT held FROM credit_accounts WHERE workspace_id = @workspace), 0),
       (base.granted + g.all_of)::bigint, (base.settled + s.all_of)::bigint, o.amount::bigint,
       base.horizon <> '0'::xid8, coalesce((SELECT horizon::text FROM stored), ''),
       snap.xmin::text, (base.granted + g.final)::bigint, (base.settled + s.final)::bigint
  FROM base, snap, g, s, o`

// saveCheckpointSQL is a CAS on the horizon that the sums were made from.
const saveCheckpointSQL = `
INSERT INTO credit_checkpoints AS c (workspace_id, horizon, granted, settled, checked_at)
VALUES (@workspace, @horizon::text::xid8, @granted::bigint, @settled::bigint,
        (SELECT coalesce(@now::timestamptz, clock_timestamp())))
ON CONFLICT (workspace_id) DO UPDATE
   SET horizon = excluded.horizon, granted = excluded.granted, settled = excluded.settled, checked_at = excluded.checked_at
 WHERE c.horizon = nullif(@was::text, '')::xid8
RETURNING workspace_id`

// Ledgers implements repair.Books.
func (db *DB) Ledgers(ctx context.Context, after uuid.UUID, fresh time.Duration, limit int) ([]uuid.UUID, error) {
	var ids []uuid.UUID
	err := db.read(ctx, unbound, "ledgers", ledgersSQL, pgx.NamedArgs{
		"now": db.now(), "after": after, "fresh": inSeconds(fresh), "limit": limit,
	}, func(rows pgx.Rows) (err error) {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return ids, err
}

// SumBooks implements repair.Books.
func (db *DB) SumBooks(ctx context.Context, workspace uuid.UUID, full bool) (repair.Sums, error) {
	ctx, cancel := context.WithTimeout(ctx, booksBound)
	defer cancel()
	var s repair.Sums
	rows, err := db.pool.Query(ctx, sumBooksSQL, pgx.NamedArgs{"workspace": workspace, "full": full})
	if err == nil {
		s, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (s repair.Sums, err error) {
			err = row.Scan(&s.Available, &s.Held, &s.Granted, &s.Settled, &s.Open, &s.Incremental, &s.Checkpoint.Was,
				&s.Checkpoint.Horizon, &s.Checkpoint.Granted, &s.Checkpoint.Settled)
			return s, err
		})
	}
	if err != nil {
		return repair.Sums{}, fmt.Errorf("sum books: %w", classify(err))
	}
	return s, nil
}

// SaveCheckpoint implements repair.Books.
func (db *DB) SaveCheckpoint(ctx context.Context, workspace uuid.UUID, c repair.Checkpoint) (bool, error) {
	saved := false
	err := db.alone(ctx, of(workspace), "save checkpoint", saveCheckpointSQL, pgx.NamedArgs{
		"workspace": workspace, "was": c.Was, "horizon": c.Horizon, "granted": c.Granted, "settled": c.Settled,
		"now": db.now(),
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			saved = true
		}
		return nil
	})
	return saved, err
}

// checkRunsSQL compares runs with their closings and their tasks: the newest runs and some from a random place, and
// the oldest open ones, which are where something would be stuck.
const checkRunsSQL = `
WITH span AS MATERIALIZED (
  SELECT (SELECT opened_at FROM task_runs WHERE workspace_id = @workspace ORDER BY opened_at, task_id LIMIT 1) AS first,
         (SELECT opened_at FROM task_runs WHERE workspace_id = @workspace ORDER BY opened_at DESC, task_id DESC LIMIT 1) AS last
), page AS MATERIALIZED (
  (SELECT task_id, generation, outcome FROM task_runs
    WHERE workspace_id = @workspace AND opened_at >= (SELECT first + (last - first) * @random FROM span)
    ORDER BY opened_at, task_id LIMIT @look)
  UNION
  (SELECT task_id, generation, outcome FROM task_runs WHERE workspace_id = @workspace
    ORDER BY opened_at DESC, task_id DESC LIMIT @look)
), open_runs AS MATERIALIZED (
  SELECT task_id, generation FROM task_runs WHERE workspace_id = @workspace AND outcome IS NULL ORDER BY task_id LIMIT @look
)
SELECT 'run_without_closing', @workspace::uuid, count(*), (array_agg(p.task_id ORDER BY p.task_id))[1:20]
  FROM page p
 WHERE p.outcome IS NOT NULL
   AND NOT EXISTS (SELECT FROM credit_closings c WHERE c.task_id = p.task_id AND c.generation = p.generation)
UNION ALL
SELECT 'open_run_without_unfinished_task', @workspace::uuid, count(*), (array_agg(o.task_id ORDER BY o.task_id))[1:20]
  FROM open_runs o
 WHERE NOT EXISTS (SELECT FROM tasks t WHERE t.id = o.task_id AND t.generation = o.generation
                      AND t.status IN ('pending', 'running'))`

// checkTasksSQL compares waiting tasks with their runs, those next in the queue and those behind in their lanes, and
// keys with their tasks, the first and some from a random place.
const checkTasksSQL = `
WITH waiting AS MATERIALIZED (
  (SELECT id, generation FROM tasks WHERE workspace_id = @workspace AND status = 'pending' AND ready
    ORDER BY run_after, id LIMIT @look)
  UNION
  (SELECT id, generation FROM tasks WHERE workspace_id = @workspace AND lane_seq IS NOT NULL AND NOT head
      AND stage = 'accepted' AND completed_at IS NULL
    ORDER BY lane, lane_seq LIMIT @look)
), known AS MATERIALIZED (
  (SELECT task_id FROM idempotency_keys WHERE workspace_id = @workspace AND key_hash >= @key ORDER BY key_hash LIMIT @look)
  UNION
  (SELECT task_id FROM idempotency_keys WHERE workspace_id = @workspace ORDER BY key_hash LIMIT @look)
)
SELECT 'unfinished_task_without_open_run', @workspace::uuid, count(*), (array_agg(w.id ORDER BY w.id))[1:20]
  FROM waiting w
 WHERE NOT EXISTS (SELECT FROM task_runs r WHERE r.task_id = w.id AND r.generation = w.generation AND r.outcome IS NULL)
UNION ALL
SELECT 'key_without_task', @workspace::uuid, count(*), (array_agg(k.task_id ORDER BY k.task_id))[1:20]
  FROM known k
 WHERE NOT EXISTS (SELECT FROM tasks t WHERE t.id = k.task_id)
   AND NOT EXISTS (SELECT FROM tasks_archive t WHERE t.id = k.task_id)`

// checkRecentSQL compares what runs, and what ended lately, over all workspaces.
const checkRecentSQL = `
WITH ended AS MATERIALIZED (
  SELECT id, workspace_id, kind, status, generation, outcome, erased FROM tasks
   WHERE completed_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @window)
   ORDER BY completed_at DESC, id DESC LIMIT @look
), running AS MATERIALIZED (
  SELECT id, workspace_id, generation FROM tasks WHERE status = 'running' ORDER BY id LIMIT @look
)
SELECT 'success_without_results', e.workspace_id, count(*), (array_agg(e.id ORDER BY e.id))[1:20]
  FROM ended e
 WHERE e.status = 'succeeded' AND e.outcome <> 'NO_MEMORY' AND e.kind = ANY(@kinds) AND NOT e.erased
   AND NOT EXISTS (SELECT FROM task_results r WHERE r.task_id = e.id)
 GROUP BY e.workspace_id
UNION ALL
SELECT 'ended_task_without_same_outcome', e.workspace_id, count(*), (array_agg(e.id ORDER BY e.id))[1:20]
  FROM ended e
 WHERE NOT EXISTS (SELECT FROM task_runs r WHERE r.task_id = e.id AND r.generation = e.generation AND r.outcome = e.status)
 GROUP BY e.workspace_id
UNION ALL
SELECT 'unfinished_task_without_open_run', t.workspace_id, count(*), (array_agg(t.id ORDER BY t.id))[1:20]
  FROM running t
 WHERE NOT EXISTS (SELECT FROM task_runs r WHERE r.task_id = t.id AND r.generation = t.generation AND r.outcome IS NULL)
 GROUP BY t.workspace_id`

// CheckWorkspace implements repair.Books. Each statement has a snapshot of its own and compares only what one
// transaction changes together.
func (db *DB) CheckWorkspace(ctx context.Context, workspace uuid.UUID, look int) ([]repair.Finding, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("check workspace: %w", err)
	}
	args := pgx.NamedArgs{
		"workspace": workspace, "look": look, "key": key, "random": randv2.Float64(), // #nosec G404 -- a sample
	}
	found, err := db.findings(ctx, "check runs", checkRunsSQL, args)
	if err != nil {
		return nil, err
	}
	more, err := db.findings(ctx, "check tasks", checkTasksSQL, args)
	return append(found, more...), err
}

// CheckRecent implements repair.Books.
func (db *DB) CheckRecent(ctx context.Context, window time.Duration, look int) ([]repair.Finding, error) {
	return db.findings(ctx, "check recent tasks", checkRecentSQL, pgx.NamedArgs{
		"now": db.now(), "window": inSeconds(window), "look": look, "kinds": kindNames([]task.Kind{task.Infer, task.Add}),
	})
}

func (db *DB) findings(ctx context.Context, name, sql string, args pgx.NamedArgs) ([]repair.Finding, error) {
	var found []repair.Finding
	err := db.read(ctx, unbound, name, sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var f repair.Finding
			if err := rows.Scan(&f.Check, &f.Workspace, &f.Count, &f.Events); err != nil {
				return err
			}
			if f.Count > 0 {
				found = append(found, f)
			}
		}
		return nil
	})
	return found, err
}
