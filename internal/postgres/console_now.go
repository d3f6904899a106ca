package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// pulseRows bounds the events of each kind that are looked at: ten milliseconds' worth.
	pulseRows = 5_000
	// pulseMinutes is the hour that is drawn.
	pulseMinutes = 60
)

// pulseSQL walks the ranges of open and of newly accepted events of each kind, both bounded.
const pulseSQL = `
WITH clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), unfinished AS MATERIALIZED (
  SELECT top.* FROM unnest(@kinds::text[]) AS wanted (kind) CROSS JOIN ` + openStagesSQL + `
   CROSS JOIN LATERAL (
         SELECT ` + eventStatusSQL + ` AS status, t.run_after, t.ready, t.status = 'pending' AS waits
           FROM tasks t
          WHERE t.workspace_id = @workspace AND t.stage = open.stage AND t.kind = wanted.kind AND t.stage = open.stage AND t.completed_at IS NULL
          ORDER BY t.accepted_at DESC, t.id DESC
          LIMIT @rows) top
), recent AS MATERIALIZED (
  SELECT top.* FROM unnest(@kinds::text[]) AS wanted (kind)
   CROSS JOIN LATERAL (
         SELECT t.status, t.accepted_at, t.completed_at
           FROM tasks t
          WHERE t.workspace_id = @workspace AND t.kind = wanted.kind
            AND t.accepted_at > (SELECT at FROM clock) - make_interval(mins => @minutes)
          ORDER BY t.accepted_at DESC, t.id DESC
          LIMIT @rows) top
), minutes AS (
  SELECT floor(extract(epoch FROM (SELECT at FROM clock) - accepted_at) / 60)::int AS ago, count(*)::int AS accepted,
         count(*) FILTER (WHERE status = 'succeeded')::int AS succeeded, count(*) FILTER (WHERE status = 'failed')::int AS failed
    FROM recent GROUP BY 1
), done AS (
  SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - accepted_at)::float8) AS at
    FROM recent WHERE status = 'succeeded'
)
SELECT (SELECT count(*) FROM unfinished WHERE status = 'PENDING'), (SELECT count(*) FROM unfinished WHERE status = 'RUNNING'),
       (SELECT count(*) FROM unfinished WHERE status = 'RETRYING'),
       coalesce((SELECT extract(epoch FROM (SELECT at FROM clock) - min(run_after))::float8 FROM unfinished WHERE waits AND ready), 0),
       coalesce((SELECT at[1] FROM done), 0), coalesce((SELECT at[2] FROM done), 0),
       (SELECT count(*) FROM recent) >= @rows OR (SELECT count(*) FROM unfinished) >= @rows,
       (SELECT coalesce(array_agg(ago ORDER BY ago), '{}') FROM minutes), (SELECT coalesce(array_agg(accepted ORDER BY ago), '{}') FROM minutes),
       (SELECT coalesce(array_agg(succeeded ORDER BY ago), '{}') FROM minutes), (SELECT coalesce(array_agg(failed ORDER BY ago), '{}') FROM minutes)`

// Pulse answers what happens in the workspace, at a cost that doesn't grow with it.
func (db *DB) Pulse(ctx context.Context, workspace uuid.UUID) (recall.Pulse, error) {
	pulse := recall.Pulse{Minutes: make([]recall.PulseMinute, pulseMinutes)}
	kinds := make([]string, 0, len(task.Kinds()))
	for _, kind := range task.Kinds() {
		kinds = append(kinds, string(kind))
	}
	args := pgx.NamedArgs{"workspace": workspace, "kinds": kinds, "rows": pulseRows, "minutes": pulseMinutes, "now": db.now()}
	err := db.read(ctx, of(workspace), "read pulse", pulseSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var due, p50, p99 float64
			var ago, accepted, succeeded, failed []int
			err := rows.Scan(&pulse.Pending, &pulse.Running, &pulse.Retrying, &due, &p50, &p99, &pulse.More, &ago, &accepted, &succeeded, &failed)
			if err != nil {
				return err
			}
			pulse.OldestDue, pulse.DoneP50, pulse.DoneP99 = fromSeconds(due), fromSeconds(p50), fromSeconds(p99)
			for i, minutes := range ago {
				if minutes >= 0 && minutes < pulseMinutes {
					pulse.Minutes[pulseMinutes-1-minutes] = recall.PulseMinute{Accepted: accepted[i], Succeeded: succeeded[i], Failed: failed[i]}
				}
			}
		}
		return nil
	})
	return pulse, err
}

// fromSeconds is a duration that is never negative.
func fromSeconds(s float64) time.Duration { return max(0, time.Duration(s*float64(time.Second))) }
