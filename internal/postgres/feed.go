package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// feedSQL reads the ends of runs and the retries of one workspace in an order in which nothing can appear later behind
// a reader's place. Neither times nor ids of any kind are that order: a transaction takes both early and may commit
// late. What is below xmin of a snapshot, however, has ended: a row with a smaller xid is visible now or never, and
// whatever comes later has an xid of at least xmin. So a reader takes only what is below xmin, in the order of xids,
// and loses nothing. An open transaction that writes, anywhere in the server, holds xmin back; the feed then lags.
//
// Both scans begin at the place in their index and stop at the limit, whatever has gathered in the tables: a limit that
// the planner can't see makes it walk the index in order also where statistics are old or missing, when it would rather
// read and sort all that is behind the place. The rows of one transaction are in the order of the rest of the place, so
// that a page may end between them.
//
// A crash that ends its run is told as the run's end alone.
const feedSQL = `
WITH snap AS MATERIALIZED (
  SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin
), place AS MATERIALIZED (
  SELECT coalesce(@xid::text::xid8, xmin) AS xid FROM snap
), ended AS MATERIALIZED (
  SELECT c.xid, c.task_id, c.generation, 0 AS claim, c.outcome, c.closed_at AS at
    FROM credit_closings c
   WHERE c.workspace_id = @workspace AND c.xid < (SELECT xmin FROM snap)
     AND (c.xid, c.task_id, c.generation) > ((SELECT xid FROM place), @task::uuid, @generation::int)
   ORDER BY c.xid, c.task_id, c.generation
   LIMIT (SELECT @limit::bigint)
), retried AS MATERIALIZED (
  SELECT a.xid, a.task_id, a.generation, a.claim, 'retrying' AS outcome, a.ended_at AS at
    FROM task_attempts a
   WHERE a.workspace_id = @workspace AND a.ending IN ('retry', 'crashed') AND a.xid < (SELECT xmin FROM snap)
     AND (a.xid, a.task_id, a.generation, a.claim)
         > ((SELECT xid FROM place), @task::uuid, @generation::int, @claim::int)
   ORDER BY a.xid, a.task_id, a.generation, a.claim
   LIMIT (SELECT @limit::bigint)
), page AS MATERIALIZED (
  SELECT * FROM (SELECT * FROM ended UNION ALL SELECT * FROM retried) u
   ORDER BY xid, task_id, generation, claim
   LIMIT (SELECT @limit::bigint)
), held AS MATERIALIZED (
  SELECT c.closed_at FROM credit_closings c
   WHERE c.workspace_id = @workspace AND c.xid >= (SELECT xmin FROM snap)
   ORDER BY c.xid, c.task_id, c.generation
   LIMIT 1
), told AS (
  SELECT p.*, coalesce(k.kind, '') AS kind,
         p.claim > 0 AND EXISTS (SELECT FROM credit_closings c WHERE c.task_id = p.task_id
                                    AND c.generation = p.generation AND c.xid = p.xid) AS final
    FROM page p
    LEFT JOIN LATERAL (SELECT t.kind FROM all_tasks t WHERE t.id = p.task_id LIMIT 1) k ON true
)
SELECT snap.xmin::text,
       coalesce((SELECT greatest(extract(epoch FROM coalesce(@now::timestamptz, clock_timestamp()) - held.closed_at), 0)
                   FROM held), 0)::float8,
       told.xid::text, told.task_id, told.generation, told.claim, told.outcome, told.at, told.kind, told.final
  FROM snap
  LEFT JOIN told ON true
 ORDER BY told.xid, told.task_id, told.generation, told.claim`

// feedLimit bounds a page of the feed: with the events it tells of some megabytes at most.
const feedLimit = 1000

// Feed reads at most limit entries of the workspace behind a place; without one it answers the place "now" and no
// entry. A place ahead of what the database has seen is another database's and refused with INVALID_CURSOR. Deliveries
// of webhooks are not told.
func (db *DB) Feed(ctx context.Context, workspace uuid.UUID, after *task.FeedPlace, limit int) (task.FeedPage, error) {
	var page task.FeedPage
	args := feedArgs(workspace, after, limit, db.now())
	err := db.read(ctx, of(workspace), "read feed", feedSQL, args, scanFeed(after, limit, &page))
	return page, err
}

// addFeed adds the reading of Feed to a batch; page is there once the batch has been sent. The transaction needs no
// stricter isolation: the statement's own snapshot decides.
func addFeed(b *batch, workspace uuid.UUID, after *task.FeedPlace, limit int, now *time.Time, page *task.FeedPage) {
	b.query("read feed", feedSQL, feedArgs(workspace, after, limit, now), scanFeed(after, limit, page))
}

func feedArgs(workspace uuid.UUID, after *task.FeedPlace, limit int, now *time.Time) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"workspace": workspace, "limit": pageOf(limit), "now": now, "xid": nil, "task": uuid.Nil, "generation": 0, "claim": 0,
	}
	if after != nil {
		args["xid"] = strconv.FormatUint(after.XID, 10)
		args["task"], args["generation"], args["claim"] = after.TaskID, after.Generation, after.Claim
	}
	return args
}

// pageOf is limit within what a page of the feed may have.
func pageOf(limit int) int { return min(max(limit, 1), feedLimit) }

// scanFeed reads the rows of feedSQL: at least one, which says where the horizon is.
func scanFeed(after *task.FeedPlace, limit int, page *task.FeedPage) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		*page = task.FeedPage{}
		read := 0
		for rows.Next() {
			var r feedRow
			if err := r.scan(rows); err != nil {
				return err
			}
			if ahead(after, r.horizon) {
				return fault.New(fault.InvalidCursor)
			}
			page.Held = time.Duration(r.held * float64(time.Second))
			page.Next = task.FeedPlace{XID: r.horizon}
			if r.entry.Place.XID == 0 { // nothing but the horizon
				return nil
			}
			read++
			if read == pageOf(limit) {
				page.Next, page.More = r.entry.Place, true
			}
			if !r.final && r.entry.Kind != "" && r.entry.Kind != task.Webhook {
				page.Entries = append(page.Entries, r.entry)
			}
		}
		return nil
	}
}

// ahead tells whether a place is beyond the horizon: no reader of this database was ever told of it.
func ahead(after *task.FeedPlace, horizon uint64) bool {
	return after != nil && after.XID >= horizon && *after != task.FeedPlace{XID: horizon}
}

// feedRow is one row of feedSQL. Final marks a crash that has ended its run.
type feedRow struct {
	horizon uint64
	held    float64
	entry   task.FeedEntry
	final   bool
}

func (r *feedRow) scan(rows pgx.Rows) error {
	var horizon string
	var xid, outcome, kind *string
	var id *uuid.UUID
	var generation, claim *int
	var at *time.Time
	var final *bool
	err := rows.Scan(&horizon, &r.held, &xid, &id, &generation, &claim, &outcome, &at, &kind, &final)
	if err != nil {
		return err
	}
	if r.horizon, err = strconv.ParseUint(horizon, 10, 64); err != nil || xid == nil {
		return err
	}
	r.entry.Place = task.FeedPlace{TaskID: *id, Generation: *generation, Claim: *claim}
	r.entry.Kind, r.entry.Outcome, r.entry.At, r.final = task.Kind(*kind), task.FeedOutcome(*outcome), at.UTC(), *final
	r.entry.Place.XID, err = strconv.ParseUint(*xid, 10, 64)
	return err
}
