package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// dueDeliveriesSQL walks the webhooks that have waiting deliveries by skipping through their index, once around from
// @after, and takes the first due ones of each, as many as may be under way beside those that are. Whose workspace has
// the fewest under way comes first: receivers that let calls wait until their end can take no other workspace's turn.
const dueDeliveriesSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), behind (lane, workspace_id, n) AS (
  (SELECT t.lane, t.workspace_id, 1 FROM tasks t
    WHERE t.status = 'pending' AND t.kind = 'webhook_delivery' AND t.lane > @after ORDER BY t.lane LIMIT 1)
  UNION ALL
  SELECT next.lane, next.workspace_id, b.n + 1
    FROM behind b, LATERAL (SELECT t.lane, t.workspace_id FROM tasks t
                             WHERE t.status = 'pending' AND t.kind = 'webhook_delivery' AND t.lane > b.lane
                             ORDER BY t.lane LIMIT 1) next
   WHERE b.n < @hooks
), before (lane, workspace_id, n) AS (
  (SELECT t.lane, t.workspace_id, 1 FROM tasks t
    WHERE t.status = 'pending' AND t.kind = 'webhook_delivery' AND t.lane <= @after ORDER BY t.lane LIMIT 1)
  UNION ALL
  SELECT next.lane, next.workspace_id, b.n + 1
    FROM before b, LATERAL (SELECT t.lane, t.workspace_id FROM tasks t
                             WHERE t.status = 'pending' AND t.kind = 'webhook_delivery' AND t.lane > b.lane AND t.lane <= @after
                             ORDER BY t.lane LIMIT 1) next
   WHERE b.n < @hooks
), hooks AS (
  SELECT lane, workspace_id FROM behind UNION ALL SELECT lane, workspace_id FROM before LIMIT @hooks
), under AS MATERIALIZED (
  SELECT workspace_id, lane, count(*) AS n FROM tasks
   WHERE status = 'running' AND kind = 'webhook_delivery'
   GROUP BY workspace_id, lane
), theirs AS (
  SELECT workspace_id, sum(n) AS n FROM under GROUP BY workspace_id
)
SELECT d.id
  FROM hooks
  LEFT JOIN under ON under.lane = hooks.lane
  LEFT JOIN theirs ON theirs.workspace_id = hooks.workspace_id
 CROSS JOIN LATERAL (
    SELECT t.id, row_number() OVER (ORDER BY t.run_after, t.id) AS place
      FROM tasks t
     WHERE t.status = 'pending' AND t.kind = 'webhook_delivery' AND t.lane = hooks.lane
       AND t.run_after <= (SELECT at FROM clock) AND t.crashes < @max_attempts AND t.payload_format <= @payload_format
       AND ` + signableSQL + `
     ORDER BY t.run_after, t.id
     LIMIT greatest(@each - coalesce(under.n, 0), 0)) d
 WHERE NOT EXISTS (SELECT FROM workspaces w WHERE w.id = hooks.workspace_id AND (w.suspended_at IS NOT NULL
                      OR w.paused_at IS NOT NULL))
 ORDER BY coalesce(theirs.n, 0) + row_number() OVER (PARTITION BY hooks.workspace_id ORDER BY d.place, d.id), d.place, d.id
 LIMIT @limit`

// dueHooks bounds how many webhooks one look passes; the random start reaches the others soon.
const dueHooks = 500

// DueDeliveries implements worker.Deliveries. It starts behind a random webhook and wraps around.
func (db *DB) DueDeliveries(ctx context.Context, who worker.Claimant, limit, each int) (ids []uuid.UUID, more bool, err error) {
	start := uuid.New() // lanes are hashes, so any bytes are a fair start
	err = db.read(ctx, unbound, "due deliveries", dueDeliveriesSQL, pgx.NamedArgs{
		"now": db.now(), "after": start[:], "hooks": dueHooks, "each": each, "limit": limit + 1,
		"max_attempts": who.MaxAttempts, "payload_format": who.Format, "master_keys": db.sealer.masters(),
	}, func(rows pgx.Rows) (err error) {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return ids[:min(len(ids), limit)], len(ids) > limit, nil
}

const parcelSQL = `
SELECT (SELECT coalesce(@now::timestamptz, clock_timestamp())), w.id, w.url, w.active OR d.type = 'webhook.test' AND w.secret IS NOT NULL, w.secret,
       CASE WHEN w.old_secret_until > (SELECT coalesce(@now::timestamptz, clock_timestamp())) THEN w.old_secret END, d.body, ` + wrappedSQL + `w.data_key)
  FROM webhook_deliveries d
  JOIN webhooks w ON w.id = d.webhook_id AND w.workspace_id = d.workspace_id
 WHERE d.id = @message AND d.workspace_id = @workspace AND w.deleted_at IS NULL`

// Parcel implements worker.Deliveries. An error is seal.ErrUnreadable for a secret that can't be opened here.
func (db *DB) Parcel(ctx context.Context, l worker.Lease) (*endpoint.Parcel, error) {
	message, err := messageOf(l.Payload)
	if err != nil {
		return nil, err
	}
	var parcel *endpoint.Parcel
	var secrets, wrapped [][]byte
	err = db.read(ctx, of(l.WorkspaceID), "read parcel", parcelSQL, pgx.NamedArgs{"message": message, "workspace": l.WorkspaceID, "now": db.now()},
		func(rows pgx.Rows) error {
			for rows.Next() {
				p := endpoint.Parcel{Message: message}
				secrets = make([][]byte, 2) // the present one, and the one before it
				if err := rows.Scan(&p.At, &p.WebhookID, &p.URL, &p.Active, &secrets[0], &secrets[1], &p.Body, &wrapped); err != nil {
					return err
				}
				parcel = &p
			}
			return nil
		})
	if err != nil || parcel == nil {
		return nil, err
	}
	for _, stored := range secrets {
		s, err := db.sealer.open(atSecret(l.WorkspaceID, parcel.WebhookID), stored, wrapped)
		if err != nil {
			return nil, err
		}
		if len(s) == endpoint.SecretSize {
			parcel.Secrets = append(parcel.Secrets, endpoint.Secret(s))
		}
	}
	return parcel, nil
}

// deliveredSQL ends a delivery's task, fenced by its lease. Nothing is stored by it but that it has ended.
const deliveredSQL = `
UPDATE tasks SET status = 'succeeded', stage = 'projected', outcome = 'STORED', command = NULL, lease_token = NULL,
       lease_until = NULL, crashes = greatest(crashes - 1, 0), error_class = NULL, error_code = NULL,
       committed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND workspace_id = @workspace AND status = 'running' AND lease_token = @token AND stage = 'accepted'
RETURNING generation`

// noteAttemptSQL keeps how the last attempt ended, as long as the lease is held that made it.
const noteAttemptSQL = `
UPDATE webhook_deliveries d SET last_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       last_status = nullif(@status::int, 0), last_error = nullif(@error, '')
 WHERE d.id = @message AND d.workspace_id = @workspace
   AND EXISTS (SELECT FROM tasks t WHERE t.id = @task AND t.lease_token = @token)`

const noteDeliveredSQL = `
UPDATE webhook_deliveries SET last_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())), last_status = @status, last_error = NULL
 WHERE id = @message AND workspace_id = @workspace`

// noteHealthySQL ends a webhook's row of failures.
const noteHealthySQL = `
UPDATE webhooks SET failing_since = NULL
 WHERE id = @webhook AND workspace_id = @workspace AND failing_since IS NOT NULL AND deleted_at IS NULL`

// Delivered implements worker.Deliveries.
func (db *DB) Delivered(ctx context.Context, l worker.Lease, p endpoint.Parcel, r endpoint.Receipt, work worker.Work) worker.Done {
	err := db.InTx(ctx, l.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		now := tx.db.now()
		held := false
		b := &batch{}
		b.query("fence delivered", deliveredSQL, pgx.NamedArgs{
			"task": l.TaskID, "workspace": l.WorkspaceID, "token": l.Token, "now": now,
		}, fence(&held))
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !held {
			return errNotHere
		}
		failpoint.Hit("delivered.in_tx")
		b = &batch{}
		addAttempt(b, l, endedSucceeded, "", 0, work, now)
		b.exec("note delivered", noteDeliveredSQL, pgx.NamedArgs{
			"message": p.Message, "workspace": l.WorkspaceID, "status": r.Status, "now": now,
		}, nil)
		b.exec("note healthy", noteHealthySQL, pgx.NamedArgs{"webhook": p.WebhookID, "workspace": l.WorkspaceID}, nil)
		addCloseRun(b, l.TaskID, l.Generation, task.Succeeded, now)
		return tx.send(ctx, b)
	})
	if errors.Is(err, errNotHere) {
		return db.ended(ctx, l)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	failpoint.Hit("delivered.committed")
	return worker.Done{Ended: true}
}

// noteFailingSQL begins a webhook's row of failures, and disables it when the row is too long or the receiver is gone.
// What the receiver at an earlier URL has answered says nothing of the present one.
const noteFailingSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
)
UPDATE webhooks w
   SET failing_since = coalesce(w.failing_since, clock.at),
       active = NOT (@gone OR coalesce(w.failing_since, clock.at) <= clock.at - make_interval(secs => @patience)),
       disabled_reason = CASE WHEN @gone THEN 'gone'
                              WHEN w.failing_since <= clock.at - make_interval(secs => @patience) THEN 'failing' END
  FROM clock
 WHERE w.id = @webhook AND w.workspace_id = @workspace AND w.url = @url AND w.active AND w.deleted_at IS NULL
   AND (w.failing_since IS NULL OR @gone OR w.failing_since <= clock.at - make_interval(secs => @patience))
RETURNING NOT w.active`

// Undelivered implements worker.Deliveries. The two statements are no transaction: neither row waits for the other.
func (db *DB) Undelivered(ctx context.Context, l worker.Lease, p endpoint.Parcel, r endpoint.Receipt) (disabled bool, err error) {
	err = db.alone(ctx, of(l.WorkspaceID), "note attempt", noteAttemptSQL, pgx.NamedArgs{
		"message": p.Message, "workspace": l.WorkspaceID, "task": l.TaskID, "token": l.Token, "status": r.Status,
		"error": string(r.Error), "now": db.now(),
	}, noRows)
	if err != nil {
		return false, err
	}
	err = db.alone(ctx, of(l.WorkspaceID), "note failing", noteFailingSQL, pgx.NamedArgs{
		"webhook": p.WebhookID, "workspace": l.WorkspaceID, "url": p.URL, "gone": r.Gone(), "patience": inSeconds(endpoint.FailingFor), "now": db.now(),
	}, one(&disabled))
	return disabled, err
}
