package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// endpointColumnsSQL is what is shown of a webhook; never its secrets.
const endpointColumnsSQL = `id, workspace_id, name, url, event_types, kinds, active, coalesce(disabled_reason, ''), failing_since,
       created_at, updated_at`

// countEndpointsSQL comes after the lock of the workspace's row, so that two creations count one after the other. One that
// is repeated doesn't count itself.
const countEndpointsSQL = `SELECT count(*) FROM webhooks WHERE workspace_id = @workspace AND deleted_at IS NULL AND id <> @id`

const lockWorkspaceSQL = `SELECT 1 FROM workspaces WHERE id = @workspace FOR NO KEY UPDATE`

// createEndpointSQL begins at the feed's now: whatever ends after this statement has begun is told, and what ended a
// moment before may be. A creation whose answer got lost finds what it made.
const createEndpointSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), lane AS (
  INSERT INTO lanes (workspace_id, lane, next_seq, last_accepted_at) SELECT @workspace, @lane, 1, clock.at FROM clock
  ON CONFLICT DO NOTHING
)
INSERT INTO webhooks (id, workspace_id, name, url, event_types, kinds, secret, feed_xid, created_at, updated_at)
SELECT @id, @workspace, @name, @url, @types, @kinds, @secret, pg_snapshot_xmin(pg_current_snapshot()), clock.at, clock.at
  FROM clock
ON CONFLICT (id) DO UPDATE SET updated_at = webhooks.updated_at WHERE webhooks.workspace_id = excluded.workspace_id
RETURNING ` + endpointColumnsSQL

// CreateEndpoint implements write.EndpointStore.
func (db *DB) CreateEndpoint(ctx context.Context, e endpoint.Endpoint, secret endpoint.Secret) (endpoint.Endpoint, error) {
	lane := endpoint.Lane(e.ID)
	var made *endpoint.Endpoint
	err := db.InTx(ctx, e.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		count := 0
		b := &batch{}
		b.exec("lock workspace", lockWorkspaceSQL, pgx.NamedArgs{"workspace": e.WorkspaceID}, nil)
		addLiving(b, e.WorkspaceID)
		b.query("count webhooks", countEndpointsSQL, pgx.NamedArgs{"workspace": e.WorkspaceID, "id": e.ID}, one(&count))
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if count >= endpoint.MaxEndpoints {
			return fault.New(fault.TooManyWebhooks)
		}
		stored, err := tx.sealSame(atSecret(e.WorkspaceID, e.ID), secret[:])
		if err != nil {
			return err
		}
		b = &batch{}
		b.query("create webhook", createEndpointSQL, pgx.NamedArgs{
			"id": e.ID, "workspace": e.WorkspaceID, "name": e.Name, "url": e.URL, "types": texts(e.Types), "kinds": texts(e.Kinds),
			"secret": stored, "lane": lane[:], "now": tx.db.now(),
		}, scanEndpoint(&made))
		addAct(ctx, b, tx.db.now(), act{e.WorkspaceID, operator.CreateWebhook, endpointSubject(e.ID), nil})
		return tx.send(ctx, b)
	})
	return found(made, err)
}

// changeEndpointSQL keeps what isn't given. Enabled again, a webhook goes on where it was: what ended meanwhile is told,
// as far as its events are still kept.
const changeEndpointSQL = `
UPDATE webhooks
   SET name = coalesce(@name, name), url = coalesce(@url, url), event_types = coalesce(@types::text[], event_types),
       kinds = coalesce(@kinds::text[], kinds), active = coalesce(@active, active),
       disabled_reason = CASE coalesce(@active, active) WHEN true THEN NULL ELSE coalesce(disabled_reason, 'by_caller') END,
       failing_since = CASE WHEN @active OR @url <> url THEN NULL ELSE failing_since END,
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @id AND workspace_id = @workspace AND deleted_at IS NULL
RETURNING ` + endpointColumnsSQL

// ChangeEndpoint implements write.EndpointStore.
func (db *DB) ChangeEndpoint(ctx context.Context, workspace, id uuid.UUID, change endpoint.Change) (endpoint.Endpoint, error) {
	args := pgx.NamedArgs{
		"id": id, "workspace": workspace, "name": change.Name, "url": change.URL, "active": change.Active, "types": nil, "kinds": nil,
		"now": db.now(),
	}
	if change.Types != nil {
		args["types"] = texts(*change.Types)
	}
	if change.Kinds != nil {
		args["kinds"] = texts(*change.Kinds)
	}
	changed, err := db.endpointBy(ctx, operator.ChangeWebhook, "change webhook", changeEndpointSQL, args)
	if e, ok := errors.AsType[*sqlError](err); ok && e.constraint == "webhooks_signs" {
		return endpoint.Endpoint{}, fault.At(fault.InvalidRequest, "/active", "true only once its secret, which is lost, has been rotated")
	}
	return changed, err
}

// rotateSecretSQL leaves a secret that is the present one already as it is: a rotation that is repeated must not put the
// secret before it out of use.
const rotateSecretSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
)
UPDATE webhooks
   SET old_secret = CASE secret WHEN @secret THEN old_secret ELSE secret END,
       old_secret_until = CASE WHEN secret = @secret THEN old_secret_until
                               WHEN secret IS NOT NULL THEN clock.at + make_interval(secs => @both) END,
       secret = @secret, updated_at = clock.at
  FROM clock
 WHERE id = @id AND workspace_id = @workspace AND deleted_at IS NULL
RETURNING ` + endpointColumnsSQL

// RotateSecret implements write.EndpointStore.
func (db *DB) RotateSecret(ctx context.Context, workspace, id uuid.UUID, secret endpoint.Secret) (endpoint.Endpoint, error) {
	var changed endpoint.Endpoint
	err := db.sealedSame(ctx, atSecret(workspace, id), secret[:], func(stored []byte) (err error) {
		changed, err = db.endpointBy(ctx, operator.RotateWebhook, "rotate secret", rotateSecretSQL, pgx.NamedArgs{
			"id": id, "workspace": workspace, "secret": stored, "both": inSeconds(endpoint.OldSecret), "now": db.now(),
		})
		return err
	})
	return changed, err
}

// deleteEndpointSQL ends the webhook at once; what it has left behind goes in pieces.
const deleteEndpointSQL = `
UPDATE webhooks SET deleted_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())), old_secret = NULL, old_secret_until = NULL
 WHERE id = @id AND workspace_id = @workspace AND deleted_at IS NULL
RETURNING ` + endpointColumnsSQL

// DeleteEndpoint implements write.EndpointStore.
func (db *DB) DeleteEndpoint(ctx context.Context, workspace, id uuid.UUID) error {
	_, err := db.endpointBy(ctx, operator.DeleteWebhook, "delete webhook", deleteEndpointSQL, pgx.NamedArgs{"id": id, "workspace": workspace, "now": db.now()})
	if err != nil {
		return err
	}
	_, _ = db.sweepEndpoint(ctx, workspace, id) // most have few deliveries, which end here; the next dispatch does the rest
	return nil
}

const endpointSQL = `
SELECT ` + endpointColumnsSQL + ` FROM webhooks WHERE id = @id AND workspace_id = @workspace AND deleted_at IS NULL`

// Endpoint implements recall.EndpointStore.
func (db *DB) Endpoint(ctx context.Context, workspace, id uuid.UUID) (endpoint.Endpoint, error) {
	var read *endpoint.Endpoint
	err := db.read(ctx, of(workspace), "read webhook", endpointSQL, pgx.NamedArgs{"id": id, "workspace": workspace}, scanEndpoint(&read))
	return found(read, err)
}

const endpointsSQL = `
SELECT ` + endpointColumnsSQL + ` FROM webhooks WHERE workspace_id = @workspace AND deleted_at IS NULL ORDER BY created_at, id`

// Endpoints implements recall.EndpointStore.
func (db *DB) Endpoints(ctx context.Context, workspace uuid.UUID) ([]endpoint.Endpoint, error) {
	var all []endpoint.Endpoint
	err := db.read(ctx, of(workspace), "read webhooks", endpointsSQL, pgx.NamedArgs{"workspace": workspace}, func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, endpointOf)
		return err
	})
	return all, err
}

// endpointSubject names a webhook as it is shown.
func endpointSubject(id uuid.UUID) string { return "whk_" + id.String() }

// endpointBy runs a statement that changes the webhook of the arguments and returns it, and records the act. Said twice it leads to the same, so that an
// answer that got lost may be asked for again.
func (db *DB) endpointBy(ctx context.Context, done, name, sql string, args pgx.NamedArgs) (endpoint.Endpoint, error) {
	var changed *endpoint.Endpoint
	a := act{name: done}
	if workspace, ok := args["workspace"].(uuid.UUID); ok {
		a.workspace = workspace
	}
	if id, ok := args["id"].(uuid.UUID); ok {
		a.subject = endpointSubject(id)
	}
	err := db.recorded(ctx, a, name, sql, args, scanEndpoint(&changed))
	return found(changed, err)
}

// found answers WEBHOOK_NOT_FOUND for nothing.
func found(e *endpoint.Endpoint, err error) (endpoint.Endpoint, error) {
	switch {
	case err != nil:
		return endpoint.Endpoint{}, err
	case e == nil:
		return endpoint.Endpoint{}, fault.New(fault.WebhookNotFound)
	}
	return *e, nil
}

func scanEndpoint(into **endpoint.Endpoint) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, endpointOf)
		if err != nil {
			return err
		}
		*into = nil
		if len(all) > 0 {
			*into = &all[0]
		}
		return nil
	}
}

func endpointOf(row pgx.CollectableRow) (endpoint.Endpoint, error) {
	var e endpoint.Endpoint
	var types, kinds []string
	err := row.Scan(&e.ID, &e.WorkspaceID, &e.Name, &e.URL, &types, &kinds, &e.Active, &e.Reason, &e.FailingSince, &e.CreatedAt, &e.UpdatedAt)
	for _, name := range types {
		e.Types = append(e.Types, endpoint.Type(name))
	}
	for _, name := range kinds {
		e.Kinds = append(e.Kinds, task.Kind(name))
	}
	e.CreatedAt, e.UpdatedAt = e.CreatedAt.UTC(), e.UpdatedAt.UTC()
	inUTC(e.FailingSince)
	return e, err
}

// texts are named values as the database has them.
func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}
