package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/operator"
)

// maxPauses bounds the list of paused providers; there are a few.
const maxPauses = 100

// openWorkSQL looks at a bounded number of open events. The order keeps the planner on the index of what is open.
const openWorkSQL = `
SELECT count(*) FILTER (WHERE o.status = 'pending'),
       count(*) FILTER (WHERE o.status = 'pending' AND o.ready AND o.run_after <= (SELECT coalesce(@now::timestamptz, clock_timestamp()))),
       count(*) FILTER (WHERE o.status = 'pending' AND o.kind = 'webhook_delivery'),
       count(*) FILTER (WHERE o.status = 'running'),
       count(*)
  FROM (SELECT t.status, t.ready, t.run_after, t.kind FROM task_states t
         WHERE t.completed_at IS NULL
         ORDER BY t.workspace_id, t.stage, t.kind, t.accepted_at DESC, t.id DESC
         LIMIT @rows) o`

const pausesSQL = `
SELECT p.provider, CASE WHEN p.paused_until > now.at THEN p.class ELSE '' END,
       CASE WHEN p.paused_until > now.at THEN p.paused_until END, p.stopped_at, p.reason
  FROM provider_pauses p, (SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at) now
 WHERE p.paused_until > now.at OR p.stopped_at IS NOT NULL
 ORDER BY provider
 LIMIT @limit`

// Work answers how much is open, at a cost that doesn't grow with the tables.
func (db *DB) Work(ctx context.Context) (operator.Work, error) {
	var work operator.Work
	args := pgx.NamedArgs{"now": db.now(), "rows": healthRows + 1, "limit": maxPauses}
	err := db.read(ctx, unbound, "read open work", openWorkSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&work.Waiting, &work.Due, &work.Deliveries, &work.Running, &work.Looked); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = db.read(ctx, unbound, "read pauses", pausesSQL, args, func(rows pgx.Rows) (err error) {
			work.Pauses, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p operator.Pause, err error) {
				err = row.Scan(&p.Provider, &p.Class, &p.Until, &p.StoppedAt, &p.Reason)
				inUTC(p.Until, p.StoppedAt)
				return p, err
			})
			return err
		})
	}
	if err != nil {
		return operator.Work{}, fmt.Errorf("read work: %w", err)
	}
	work.More = work.Looked > healthRows
	return work, nil
}
