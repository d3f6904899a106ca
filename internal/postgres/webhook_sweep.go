package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// sweepPage bounds the deliveries of a deleted webhook that one transaction removes.
const sweepPage = 500

const takeDeletedSQL = `SELECT 1 FROM webhooks WHERE id = @webhook AND deleted_at IS NOT NULL FOR UPDATE SKIP LOCKED`

const leftDeliveriesSQL = `
SELECT id, task_id FROM webhook_deliveries WHERE workspace_id = @workspace AND webhook_id = @webhook LIMIT @limit`

// wakeDeliveriesSQL makes tasks due: whoever claims one finds that there is nobody to deliver to, and ends it. Those that
// somebody holds are running or ending already.
const wakeDeliveriesSQL = `
UPDATE tasks SET run_after = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id IN (SELECT t.id FROM tasks t
               WHERE t.id = ANY(@tasks::uuid[]) AND t.workspace_id = @workspace AND t.status = 'pending' AND t.kind = 'webhook_delivery'
                 AND t.run_after > (SELECT coalesce(@now::timestamptz, clock_timestamp()))
               ORDER BY t.id FOR UPDATE SKIP LOCKED)`

const dropDeliveriesSQL = `DELETE FROM webhook_deliveries WHERE id = ANY(@ids::uuid[])`

const dropEndpointSQL = `DELETE FROM webhooks WHERE id = @webhook AND deleted_at IS NOT NULL`

// sweepEndpoint removes a page of what a deleted webhook has left behind, and the webhook itself with the last one. It
// tells whether there is more.
func (db *DB) sweepEndpoint(ctx context.Context, workspace, id uuid.UUID) (more bool, err error) {
	err = db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		more = false
		taken := false
		var ids, tasks []uuid.UUID
		b := &batch{}
		b.query("take deleted webhook", takeDeletedSQL, pgx.NamedArgs{"webhook": id}, fence(&taken))
		b.query("deliveries left", leftDeliveriesSQL, pgx.NamedArgs{"workspace": workspace, "webhook": id, "limit": sweepPage}, func(rows pgx.Rows) error {
			ids, tasks = nil, nil
			for rows.Next() {
				var message, task uuid.UUID
				if err := rows.Scan(&message, &task); err != nil {
					return err
				}
				ids, tasks = append(ids, message), append(tasks, task)
			}
			return nil
		})
		if err := tx.send(ctx, b); err != nil || !taken {
			return err
		}
		more = len(ids) == sweepPage
		b = &batch{}
		b.exec("wake deliveries", wakeDeliveriesSQL, pgx.NamedArgs{"tasks": tasks, "workspace": workspace, "now": tx.db.now()}, nil)
		b.exec("drop deliveries", dropDeliveriesSQL, pgx.NamedArgs{"ids": ids}, nil)
		if !more {
			b.exec("drop webhook", dropEndpointSQL, pgx.NamedArgs{"webhook": id}, nil)
		}
		return tx.send(ctx, b)
	})
	return more, err
}
