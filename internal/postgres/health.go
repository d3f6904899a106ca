package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// healthCount is where counting ends: beyond it the number tells nobody more.
	healthCount = 1_000
	// healthRows bounds the rows that are looked at where no index holds what is counted: ten milliseconds' worth.
	healthRows = 10_000
	// healthWindow is how far back failures are looked for (API.md, health).
	healthWindow = 10 * time.Minute
)

// factsSQL costs the same however large the tables are. The oldest due task is the oldest of the first rows of
// each workspace's range of the index, found by skipping from workspace to workspace.
const factsSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), due AS (
  (SELECT t.workspace_id, t.run_after FROM task_states t
    WHERE t.status = 'pending' AND t.ready
    ORDER BY t.workspace_id, t.run_after, t.id LIMIT 1)
  UNION ALL
  SELECT next.workspace_id, next.run_after FROM due
   CROSS JOIN LATERAL (
         SELECT t.workspace_id, t.run_after FROM task_states t
          WHERE t.status = 'pending' AND t.ready AND t.workspace_id > due.workspace_id
          ORDER BY t.workspace_id, t.run_after, t.id LIMIT 1) next
), first_due AS (
  SELECT d.run_after FROM (SELECT workspace_id, run_after FROM due LIMIT @count) d
    LEFT JOIN workspaces w ON w.id = d.workspace_id
   WHERE w.suspended_at IS NULL AND w.paused_at IS NULL
), leases AS (
  SELECT lease_until FROM task_states WHERE status = 'running' LIMIT @rows
), ended AS (
  SELECT status, error_class FROM task_states
   WHERE completed_at > (SELECT at FROM clock) - make_interval(secs => @window)
   ORDER BY completed_at DESC, id DESC LIMIT @rows
)
SELECT coalesce((SELECT extract(epoch FROM (SELECT at FROM clock) - min(run_after))::float8 FROM first_due), 0),
       (SELECT count(*) FROM (SELECT t.run_after FROM task_states t WHERE t.status = 'pending' AND t.ready
                               ORDER BY t.workspace_id, t.run_after, t.id LIMIT @rows) d
         WHERE d.run_after <= (SELECT at FROM clock)),
       (SELECT count(*) FROM leases),
       (SELECT count(*) FROM (SELECT FROM leases WHERE lease_until <= (SELECT at FROM clock) LIMIT @count) l),
       (SELECT count(*) FROM (SELECT FROM ended WHERE status = 'failed' AND coalesce(error_class, '') <> ALL(@theirs) LIMIT @count) f),
       (SELECT count(*) FROM (SELECT FROM skipped_vectors LIMIT @count) s),
       EXISTS (SELECT FROM provider_pauses WHERE paused_until > (SELECT at FROM clock) OR stopped_at IS NOT NULL)`

// Facts implements recall.HealthStore. A suspended or paused workspace's tasks are not due: nobody is to claim them.
func (db *DB) Facts(ctx context.Context) (recall.Facts, error) {
	var facts recall.Facts
	args := pgx.NamedArgs{
		"now": db.now(), "count": healthCount, "rows": healthRows, "window": inSeconds(healthWindow),
		"theirs": []string{
			string(task.Cancelled), string(task.ExtractionRejected), string(task.InputRejected),
			string(task.DeliveryFailed), string(task.EndpointDisabled),
		},
	}
	err := db.read(ctx, everyone, "read health", factsSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var due float64
			err := rows.Scan(&due, &facts.Due, &facts.Leased, &facts.ExpiredLeases, &facts.RecentFailures, &facts.SkippedVectors, &facts.PausedProvider)
			if err != nil {
				return err
			}
			facts.OldestDue = max(0, time.Duration(due*float64(time.Second)))
		}
		return nil
	})
	return facts, err
}
