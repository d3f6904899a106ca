package postgres

import (
	"context"
	"crypto/subtle"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// ErrNoKey says that the workspace has no key of that id.
const ErrNoKey verdict = "no such API key"

// maxKeys bounds the list of one workspace's keys.
const maxKeys = 1_000

// KeyInfo is what may be shown of a key. Its secret is not kept.
type KeyInfo = operator.Key

const keysSQL = `
SELECT id, coalesce(reference, ''), name, scopes, created_at, expires_at, revoked_at, coalesce(rate_limit, 0)
  FROM api_keys WHERE workspace_id = @workspace
 ORDER BY created_at, id
 LIMIT @limit`

// ListKeys answers the workspace's keys, oldest first, revoked ones too.
func (db *DB) ListKeys(ctx context.Context, workspace uuid.UUID) ([]KeyInfo, error) {
	var keys []KeyInfo
	args := pgx.NamedArgs{"workspace": workspace, "limit": maxKeys}
	err := db.read(ctx, of(workspace), "read keys", keysSQL, args, func(rows pgx.Rows) (err error) {
		keys, err = pgx.CollectRows(rows, scanKey)
		return err
	})
	return keys, err
}

func scanKey(row pgx.CollectableRow) (k KeyInfo, err error) {
	err = row.Scan(&k.ID, &k.Reference, &k.Name, &k.Permissions, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.RateLimit)
	k.CreatedAt = k.CreatedAt.UTC()
	inUTC(k.ExpiresAt, k.RevokedAt)
	return k, err
}

const limitKeySQL = `
UPDATE api_keys SET rate_limit = nullif(@rate_limit::int, 0) WHERE id = @key AND workspace_id = @workspace RETURNING id`

// LimitKey sets how many requests a minute the workspace's key may make, 0 for no limit beside the workspace's. Fault
// INVALID_REQUEST for a negative one or one beyond 2^31-1; ErrNoKey for an id that the workspace doesn't have.
func (db *DB) LimitKey(ctx context.Context, workspace uuid.UUID, id string, limit int) error {
	if err := checkLimit("/rate_limit", &limit); err != nil {
		return err
	}
	found := false
	args := pgx.NamedArgs{"key": id, "workspace": workspace, "rate_limit": limit}
	done := act{workspace, operator.LimitKey, id, map[string]any{"rate_limit": limit}}
	err := db.recorded(ctx, done, "limit key", limitKeySQL, args, func(rows pgx.Rows) error {
		found = rows.Next()
		return nil
	})
	if err == nil && !found {
		return fmt.Errorf("limit key: %w", ErrNoKey)
	}
	return err
}

const keyWorkspaceSQL = `SELECT workspace_id FROM api_keys WHERE id = @key`

// WorkspaceOfKey answers whose key it is, or ErrNoKey. It is for operators, who may see all of them.
func (db *DB) WorkspaceOfKey(ctx context.Context, id string) (workspace uuid.UUID, err error) {
	found := false
	err = db.read(ctx, everyone, "find key", keyWorkspaceSQL, pgx.NamedArgs{"key": id}, func(rows pgx.Rows) error {
		if found = rows.Next(); found {
			return rows.Scan(&workspace)
		}
		return nil
	})
	if err == nil && !found {
		err = ErrNoKey
	}
	return workspace, err
}

const revokeKeySQL = `
UPDATE api_keys SET revoked_at = coalesce(revoked_at, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
 WHERE id = @key AND workspace_id = @workspace
RETURNING id`

// RevokeKey ends the workspace's key for good; the next request with it is refused. Doing it twice changes
// nothing. ErrNoKey for an id that the workspace doesn't have.
func (db *DB) RevokeKey(ctx context.Context, workspace uuid.UUID, id string) error {
	found := false
	args := pgx.NamedArgs{"key": id, "workspace": workspace, "now": db.now()}
	err := db.recorded(ctx, act{workspace, operator.RevokeKey, id, nil}, "revoke key", revokeKeySQL, args, func(rows pgx.Rows) error {
		found = rows.Next()
		return nil
	})
	if err == nil && !found {
		return fmt.Errorf("revoke key: %w", ErrNoKey)
	}
	return err
}

const authenticateSQL = `
SELECT k.secret_hash, k.scopes, k.revoked_at IS NOT NULL,
       coalesce(k.expires_at <= (SELECT coalesce(@now::timestamptz, clock_timestamp())), false),
       w.id, w.metered, w.suspended_at IS NOT NULL, w.fingerprint_key,
       coalesce(w.rate_limit, 0), coalesce(k.rate_limit, 0), w.extraction, w.name
  FROM api_keys k
  JOIN workspaces w ON w.id = k.workspace_id
 WHERE k.id = @key`

// Authenticate answers who the key stands for, as of now: nothing is remembered from one call to the next.
// Faults: INVALID_API_KEY for an unknown, wrong or revoked key, API_KEY_EXPIRED by the database's clock.
func (db *DB) Authenticate(ctx context.Context, key access.Key) (access.Caller, error) {
	var stored []byte
	var revoked, expired bool
	caller := access.Caller{KeyID: key.ID()}
	args := pgx.NamedArgs{"key": key.ID(), "now": db.now()}
	err := db.read(ctx, everyone, "authenticate", authenticateSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			w := &caller.Workspace
			if err := rows.Scan(&stored, &caller.Permissions, &revoked, &expired, &w.ID, &w.Metered, &w.Suspended,
				&w.FingerprintKey, &w.RateLimit, &caller.RateLimit, &w.Extraction, &w.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return access.Caller{}, err
	}
	hash := key.SecretHash()
	switch {
	case subtle.ConstantTimeCompare(stored, hash[:]) != 1, revoked:
		return access.Caller{}, fault.New(fault.InvalidAPIKey)
	case expired:
		return access.Caller{}, fault.New(fault.APIKeyExpired)
	}
	return caller, nil
}
