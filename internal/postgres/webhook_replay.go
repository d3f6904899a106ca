package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// holdEndpointSQL keeps a webhook from being changed or dispatched while its deliveries are made.
const holdEndpointSQL = `
SELECT 1 FROM webhooks WHERE id = @webhook AND workspace_id = @workspace AND deleted_at IS NULL FOR NO KEY UPDATE`

// chosenSQL reads the deliveries that a replay is about, the oldest first, and whether each has ended.
const chosenSQL = `
SELECT d.id, d.task_id, d.created_at, coalesce(t.status IN ('succeeded', 'failed'), true)
  FROM webhook_deliveries d
  LEFT JOIN LATERAL (SELECT a.status FROM all_tasks a WHERE a.id = d.task_id LIMIT 1) t ON true
 WHERE d.webhook_id = @webhook AND d.workspace_id = @workspace
   AND (d.created_at, d.id) > (coalesce(@after_at::timestamptz, '-infinity'), coalesce(@after_id::uuid, @none))
   AND (@since::timestamptz IS NULL OR d.created_at >= @since) AND (@until::timestamptz IS NULL OR d.created_at < @until)
   AND (NOT @failed_only OR t.status = 'failed')
   AND (@message::uuid IS NULL OR d.id = @message)
 ORDER BY d.created_at, d.id
 LIMIT @limit`

// renewDeliveriesSQL gives deliveries that have ended a new task. Message and body stay as they are.
const renewDeliveriesSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), d AS (
  UPDATE webhook_deliveries AS d SET task_id = m.task
    FROM unnest(@ids::uuid[], @tasks::uuid[]) AS m (id, task)
   WHERE d.id = m.id AND d.workspace_id = @workspace
  RETURNING d.id, d.task_id
), t AS (` + insertDeliveryTasksSQL + `)
SELECT count(*) FROM t`

// chosen is one delivery of a replay.
type chosen struct {
	ID    uuid.UUID
	Task  uuid.UUID
	At    time.Time
	Ended bool
}

// Replay implements write.DeliveryStore.
func (db *DB) Replay(ctx context.Context, workspace, id uuid.UUID, which endpoint.Selection, after *write.ReplayPlace, limit int) (write.Replayed, error) {
	var done write.Replayed
	err := db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		done = write.Replayed{}
		held := false
		var page []chosen
		args := pgx.NamedArgs{
			"webhook": id, "workspace": workspace, "since": which.Since, "until": which.Until, "failed_only": which.FailedOnly,
			"message": which.Message, "after_at": nil, "after_id": nil, "none": uuid.Nil, "limit": limit + 1,
		}
		if after != nil {
			args["after_at"], args["after_id"] = after.At, after.ID
		}
		b := &batch{}
		b.query("hold webhook", holdEndpointSQL, pgx.NamedArgs{"webhook": id, "workspace": workspace}, fence(&held))
		b.query("chosen deliveries", chosenSQL, args, func(rows pgx.Rows) (err error) {
			page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[chosen])
			return err
		})
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !held {
			return fault.New(fault.WebhookNotFound)
		}
		if len(page) > limit {
			page = page[:limit]
			done.Next = &write.ReplayPlace{At: page[limit-1].At, ID: page[limit-1].ID}
		}
		done.Count = len(page)
		b = &batch{}
		addAct(ctx, b, tx.db.now(), act{workspace, operator.ReplayWebhook, endpointSubject(id), map[string]any{"count": done.Count}})
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		return tx.renew(ctx, news{ID: id, Workspace: workspace}, page)
	})
	return done, err
}

// renew gives what has ended a new task and makes what waits due.
func (tx *Tx) renew(ctx context.Context, n news, page []chosen) error {
	var ids, tasks, waiting []uuid.UUID
	for _, c := range page {
		if !c.Ended {
			waiting = append(waiting, c.Task)
			continue
		}
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make task id: %w", err)
		}
		ids, tasks = append(ids, c.ID), append(tasks, id)
	}
	lane := endpoint.Lane(n.ID)
	b := &batch{}
	if len(ids) > 0 {
		b.exec("renew deliveries", renewDeliveriesSQL, pgx.NamedArgs{
			"ids": ids, "tasks": tasks, "workspace": n.Workspace, "lane": lane[:], "payload_format": command.Format, "now": tx.db.now(),
		}, nil)
	}
	if len(waiting) > 0 {
		b.exec("wake deliveries", wakeDeliveriesSQL, pgx.NamedArgs{"tasks": waiting, "workspace": n.Workspace, "now": tx.db.now()}, nil)
	}
	if len(b.steps) == 0 {
		return nil
	}
	return tx.send(ctx, b)
}

// TestDelivery implements write.DeliveryStore.
func (db *DB) TestDelivery(ctx context.Context, workspace, id uuid.UUID) (endpoint.Delivery, error) {
	var made endpoint.Delivery
	err := db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		held := false
		var at time.Time
		b := &batch{}
		b.query("hold webhook", holdEndpointSQL, pgx.NamedArgs{"webhook": id, "workspace": workspace}, fence(&held))
		b.query("clock", clockSQL, pgx.NamedArgs{"now": tx.db.now()}, one(&at))
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !held {
			return fault.New(fault.WebhookNotFound)
		}
		message, err := endpoint.NewTest(id, at)
		if err != nil {
			return err
		}
		count := 0
		b = &batch{}
		if err := addDeliveries(b, news{ID: id, Workspace: workspace}, []endpoint.Message{message}, tx.db.now(), &count); err != nil {
			return err
		}
		b.query("read delivery", deliverySQL, pgx.NamedArgs{
			"message": message.ID, "workspace": workspace, "now": tx.db.now(),
		}, func(rows pgx.Rows) error {
			read, err := pgx.CollectExactlyOneRow(rows, deliveryOf)
			made = read
			return err
		})
		return tx.send(ctx, b)
	})
	return made, err
}

// deliveryColumnsSQL is what is shown of a delivery d with its task t, which is read by deliveryTaskSQL.
const deliveryColumnsSQL = `
       d.id, d.task_id, d.type, d.about, d.generation, coalesce(` + eventStatusSQL + `, 'PENDING'),
       CASE WHEN t.status <> 'succeeded' THEN coalesce(t.error_code, '') ELSE '' END, coalesce(t.claims, 0), d.created_at,
       t.completed_at,
       CASE WHEN t.status = 'pending' AND t.run_after > (SELECT coalesce(@now::timestamptz, clock_timestamp())) THEN t.run_after END,
       d.last_at, d.last_status, coalesce(d.last_error, '')`

const deliveryTaskSQL = `
  LEFT JOIN LATERAL (SELECT a.* FROM all_tasks a WHERE a.id = d.task_id LIMIT 1) t ON true`

const deliverySQL = `SELECT ` + deliveryColumnsSQL + ` FROM webhook_deliveries d ` + deliveryTaskSQL + ` WHERE d.id = @message AND d.workspace_id = @workspace`

const deliveriesSQL = `
WITH page AS MATERIALIZED (
  SELECT p.* FROM webhook_deliveries p
   WHERE p.webhook_id = @webhook AND p.workspace_id = @workspace
     AND (p.created_at, p.id) < (coalesce(@after_at::timestamptz, 'infinity'),
                                 coalesce(@after_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
   ORDER BY p.created_at DESC, p.id DESC
   LIMIT @limit
)
SELECT ` + deliveryColumnsSQL + `
  FROM page d` + deliveryTaskSQL + `
 ORDER BY d.created_at DESC, d.id DESC`

// Deliveries implements recall.EndpointStore.
func (db *DB) Deliveries(ctx context.Context, workspace, id uuid.UUID, after *recall.Place, limit int) (recall.DeliveryPage, error) {
	args := pgx.NamedArgs{"webhook": id, "workspace": workspace, "limit": limit + 1, "now": db.now()}
	setAfter(args, after)
	var page recall.DeliveryPage
	err := db.read(ctx, of(workspace), "read deliveries", deliveriesSQL, args, func(rows pgx.Rows) (err error) {
		page.Deliveries, err = pgx.CollectRows(rows, deliveryOf)
		return err
	})
	if len(page.Deliveries) > limit {
		page.Deliveries = page.Deliveries[:limit]
		last := page.Deliveries[limit-1]
		page.Next = &recall.Place{At: last.CreatedAt, ID: last.Message}
	}
	return page, err
}

func deliveryOf(row pgx.CollectableRow) (endpoint.Delivery, error) {
	var d endpoint.Delivery
	var about *uuid.UUID
	var status, kind, code, failure string
	err := row.Scan(&d.Message, &d.TaskID, &kind, &about, &d.Generation, &status, &code, &d.Attempts, &d.CreatedAt, &d.CompletedAt,
		&d.NextAttemptAt, &d.LastAt, &d.LastStatus, &failure)
	if about != nil {
		d.About = *about
	}
	d.Type, d.Status, d.ErrorCode, d.LastError = endpoint.Type(kind), task.EventStatus(status), task.ErrorCode(code), endpoint.Error(failure)
	d.CreatedAt = d.CreatedAt.UTC()
	inUTC(d.CompletedAt, d.NextAttemptAt, d.LastAt)
	return d, err
}
