package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/operator"
)

const (
	// sceneWorkers and sceneFailures are more than a screen shows.
	sceneWorkers  = 50
	sceneFailures = 50
)

// busySQL reads the few rows that run.
const busySQL = `
WITH clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
)
SELECT coalesce(t.worker_incarnation, ''), count(*), count(*) FILTER (WHERE t.lease_until <= clock.at),
       coalesce(extract(epoch FROM max(clock.at - t.claimed_at))::float8, 0)
  FROM (SELECT worker_incarnation, lease_until, claimed_at FROM tasks WHERE status = 'running' LIMIT @rows) t, clock
 GROUP BY 1 ORDER BY 2 DESC, 1
 LIMIT @limit`

// lateFailuresSQL looks at a bounded number of ends, the newest first.
const lateFailuresSQL = `
SELECT e.completed_at, e.id, coalesce(w.name, ''), coalesce(e.error_code, '')
  FROM (SELECT t.completed_at, t.id, t.workspace_id, t.error_code, t.status FROM tasks t
         WHERE t.completed_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @window)
         ORDER BY t.completed_at DESC, t.id DESC LIMIT @rows) e
  LEFT JOIN workspaces w ON w.id = e.workspace_id
 WHERE e.status = 'failed'
 ORDER BY e.completed_at DESC, e.id DESC
 LIMIT @limit`

// Scene answers who works and what failed, at a cost that doesn't grow with the tables. It is for the owner of the
// database: it names every workspace's.
func (db *DB) Scene(ctx context.Context) (operator.Scene, error) {
	scene := operator.Scene{}
	args := pgx.NamedArgs{"now": db.now(), "rows": healthRows, "limit": sceneWorkers}
	err := db.read(ctx, unbound, "read busy workers", busySQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			w, longest := operator.BusyWorker{}, 0.0
			if err := rows.Scan(&w.Name, &w.Leases, &w.Expired, &longest); err != nil {
				return err
			}
			w.Longest = fromSeconds(longest)
			scene.Workers = append(scene.Workers, w)
		}
		return nil
	})
	if err != nil {
		return scene, err
	}
	args = pgx.NamedArgs{"now": db.now(), "rows": healthRows, "limit": sceneFailures, "window": inSeconds(healthWindow)}
	err = db.read(ctx, unbound, "read late failures", lateFailuresSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			f, id := operator.RecentFailure{}, uuid.UUID{}
			if err := rows.Scan(&f.At, &id, &f.Workspace, &f.Code); err != nil {
				return err
			}
			f.At, f.Event = f.At.UTC(), eventSubject(id)
			scene.Failures = append(scene.Failures, f)
		}
		return nil
	})
	return scene, err
}
