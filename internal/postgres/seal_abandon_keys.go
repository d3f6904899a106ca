package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

const lostHooksSQL = `
SELECT w.id, w.workspace_id FROM data_keys k JOIN webhooks w ON w.data_key = k.id
 WHERE k.master_key = @master ORDER BY w.id LIMIT @limit`

// loseSecretSQL takes a secret that nobody can open from its webhook, which is disabled until it has another one. Where
// only the secret before it is lost, the webhook goes on with the present one.
const loseSecretSQL = `
UPDATE webhooks w
   SET secret = CASE WHEN data_key_of(w.secret) = k.id THEN NULL ELSE w.secret END, old_secret = NULL, old_secret_until = NULL,
       active = w.active AND data_key_of(w.secret) IS DISTINCT FROM k.id,
       disabled_reason = CASE WHEN data_key_of(w.secret) = k.id THEN 'secret_lost' ELSE w.disabled_reason END,
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM data_keys k
 WHERE w.id = @webhook AND w.workspace_id = @workspace AND k.id = w.data_key AND k.master_key = @master
RETURNING w.id`

// AbandonSecrets takes up to limit secrets from webhooks that nobody can open without the master key. Errors and repeats
// are those of AbandonTasks.
func (db *DB) AbandonSecrets(ctx context.Context, master string, limit int) (Abandoned, error) {
	var page Abandoned
	if db.hasMaster(master) {
		return page, ErrMasterConfigured
	}
	type hook struct{ ID, Workspace uuid.UUID }
	var found []hook
	args := pgx.NamedArgs{"master": master, "limit": limit}
	err := db.read(ctx, unbound, "lost secrets", lostHooksSQL, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[hook])
		return err
	})
	if err != nil {
		return page, err
	}
	for _, h := range found {
		touched := false
		a := act{h.Workspace, operator.AbandonEncryption, master, nil}
		err := db.recorded(ctx, a, "lose secret", loseSecretSQL, pgx.NamedArgs{
			"webhook": h.ID, "workspace": h.Workspace, "master": master, "now": db.now(),
		}, fence(&touched))
		if err != nil {
			return page, err
		}
		if touched {
			page.Webhooks++
		}
		failpoint.Hit("abandon.committed")
	}
	page.More = len(found) == limit && page.Webhooks > 0
	return page, nil
}

// dropLostKeysSQL removes data keys that nothing needs. What somebody seals with one at this moment is refused by the
// database and sealed anew.
const dropLostKeysSQL = `
DELETE FROM data_keys
 WHERE id IN (SELECT k.id FROM data_keys k
               WHERE k.master_key = @master
                 AND ` + unusedKeySQL + `
               ORDER BY k.id LIMIT @limit FOR UPDATE OF k SKIP LOCKED)
RETURNING id`

// AbandonKeys removes up to limit data keys under the master key that nothing needs any more. Errors and repeats are those
// of AbandonTasks.
func (db *DB) AbandonKeys(ctx context.Context, master string, limit int) (Abandoned, error) {
	var page Abandoned
	if db.hasMaster(master) {
		return page, ErrMasterConfigured
	}
	a := act{name: operator.AbandonEncryption, subject: master}
	err := db.recorded(ctx, a, "drop lost keys", dropLostKeysSQL, pgx.NamedArgs{"master": master, "limit": limit}, func(rows pgx.Rows) error {
		page.DataKeys = 0
		for rows.Next() {
			page.DataKeys++
		}
		return nil
	})
	page.More = page.DataKeys == limit
	failpoint.Hit("abandon.committed")
	return page, err
}
