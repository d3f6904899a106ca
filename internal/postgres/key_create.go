package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// createKeySQL waits for a key of the same reference that is not committed yet.
const createKeySQL = `
INSERT INTO api_keys (id, workspace_id, reference, name, secret_hash, scopes, created_at, expires_at)
SELECT @key, w.id, nullif(@reference::text, ''), @name, @secret_hash, @scopes,
       (SELECT coalesce(@now::timestamptz, clock_timestamp())), @expires_at
  FROM workspaces w WHERE w.id = @workspace AND w.deletion IS NULL
ON CONFLICT DO NOTHING`

const createdKeySQL = `
SELECT id, coalesce(reference, ''), name, scopes, created_at, expires_at, revoked_at, coalesce(rate_limit, 0)
  FROM api_keys WHERE workspace_id = @workspace AND (id = @key OR reference = nullif(@reference::text, ''))`

// CreateKey makes a key of the workspace and returns it in clear, the only time that it can be seen. A nil
// expiry never comes. Faults INVALID_REQUEST; ErrNoWorkspace.
func (db *DB) CreateKey(ctx context.Context, workspace uuid.UUID, name string, permissions []access.Permission, expires *time.Time) (access.Key, error) {
	_, key, err := db.createKey(ctx, workspace, operator.KeyAsk{Name: name, Permissions: permissions, ExpiresAt: expires})
	if err != nil {
		return access.Key{}, err
	}
	return *key, nil
}

// CreateKeyOnce makes one key for each reference. The key in clear is nil when the reference had made the same key
// before: it can't be seen again. Faults: IDEMPOTENCY_CONFLICT for a reference that has made another key, INVALID_REQUEST;
// ErrNoWorkspace.
func (db *DB) CreateKeyOnce(ctx context.Context, workspace uuid.UUID, ask operator.KeyAsk) (KeyInfo, *access.Key, error) {
	if ask.Reference == "" || len(ask.Reference) > maxReference || checkName(ask.Reference) != nil {
		return KeyInfo{}, nil, fault.At(fault.InvalidRequest, "/reference", "1 to 100 visible characters, at most 200 bytes")
	}
	return db.createKey(ctx, workspace, ask)
}

func (db *DB) createKey(ctx context.Context, workspace uuid.UUID, ask operator.KeyAsk) (KeyInfo, *access.Key, error) {
	if err := checkKeyAsk(ask); err != nil {
		return KeyInfo{}, nil, err
	}
	if ask.ExpiresAt != nil {
		at := ask.ExpiresAt.UTC().Truncate(time.Microsecond) // as the database keeps it, so that a repeat is the same
		ask.ExpiresAt = &at
	}
	key, err := access.NewKey()
	if err != nil {
		return KeyInfo{}, nil, fmt.Errorf("create key: %w", err)
	}
	ctx = access.As(ctx, access.ActorOf(ctx)) // the repeat is the same occasion
	there, err := db.insertKey(ctx, workspace, key, ask)
	if errors.Is(err, fault.ErrCommitUnknown) { // the repeat finds its own key, or makes it
		there, err = db.insertKey(ctx, workspace, key, ask)
	}
	if err != nil {
		return KeyInfo{}, nil, fmt.Errorf("create key: %w", err)
	}
	if there.ID != key.ID() {
		return there, nil, nil
	}
	return there, &key, nil
}

func checkKeyAsk(ask operator.KeyAsk) error {
	if utf8.RuneCountInString(ask.Name) > maxName || ask.Name != "" && checkName(ask.Name) != nil {
		return fault.At(fault.InvalidRequest, "/name", "at most 100 visible characters")
	}
	for _, p := range ask.Permissions {
		if _, ok := access.ParsePermission(string(p)); !ok {
			return fault.At(fault.InvalidRequest, "/permissions", "known permissions")
		}
	}
	if len(ask.Permissions) == 0 {
		return fault.At(fault.InvalidRequest, "/permissions", "at least one permission")
	}
	return nil
}

// insertKey adds the key, or finds the one that its reference has made.
func (db *DB) insertKey(ctx context.Context, workspace uuid.UUID, key access.Key, ask operator.KeyAsk) (there KeyInfo, err error) {
	hash := key.SecretHash()
	err = db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		args := pgx.NamedArgs{
			"key": key.ID(), "workspace": workspace, "reference": ask.Reference, "name": ask.Name, "secret_hash": hash[:],
			"scopes": ask.Permissions, "now": tx.db.now(), "expires_at": ask.ExpiresAt,
		}
		b := &batch{}
		b.exec("create key", createKeySQL, args, nil)
		b.query("read key", createdKeySQL, args, func(rows pgx.Rows) (err error) {
			there, err = pgx.CollectExactlyOneRow(rows, scanKey)
			return err
		})
		err := tx.send(ctx, b)
		switch {
		case failedAt(err, "read key") && errors.Is(err, pgx.ErrNoRows):
			return ErrNoWorkspace
		case err != nil:
			return err
		case there.ID != key.ID() && !sameKey(there, ask):
			return fault.New(fault.IdempotencyConflict)
		case there.ID != key.ID():
			return nil
		}
		details := map[string]any{"permissions": ask.Permissions}
		if ask.ExpiresAt != nil {
			details["expires_at"] = ask.ExpiresAt.Format(time.RFC3339)
		}
		b = &batch{}
		addAct(ctx, b, tx.db.now(), act{workspace, operator.CreateKey, key.ID(), details})
		return tx.send(ctx, b)
	})
	return there, err
}

// sameKey tells whether the key is what is asked for. The order of permissions means nothing.
func sameKey(there KeyInfo, ask operator.KeyAsk) bool {
	sorted := func(list []access.Permission) []access.Permission {
		return slices.Compact(slices.Sorted(slices.Values(list)))
	}
	expires := (there.ExpiresAt == nil) == (ask.ExpiresAt == nil) && (ask.ExpiresAt == nil || there.ExpiresAt.Equal(*ask.ExpiresAt))
	return expires && there.Name == ask.Name && slices.Equal(sorted(there.Permissions), sorted(ask.Permissions))
}
