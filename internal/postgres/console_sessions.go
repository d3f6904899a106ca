package postgres

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/repair"
)

// maxSessions bounds the sessions of one key or operator: the oldest one makes room. A person has a few browsers.
const maxSessions = 20

const openSessionSQL = `
WITH old AS (
  DELETE FROM console_sessions
   WHERE id IN (SELECT s.id FROM console_sessions s WHERE s.kind = @kind AND s.holder = @holder
                 ORDER BY s.created_at DESC, s.id OFFSET @kept)
)
INSERT INTO console_sessions (id, kind, holder, created_at, expires_at)
SELECT @id, @kind, @holder, clock.at, clock.at + make_interval(secs => @life)
  FROM (SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at) clock`

// OpenSession keeps a session of the console for its life. The id is the hash of what the browser holds.
func (db *DB) OpenSession(ctx context.Context, id [sha256.Size]byte, holder access.Holder, life time.Duration) error {
	return db.alone(ctx, unbound, "open session", openSessionSQL, pgx.NamedArgs{
		"id": id[:], "kind": kindOf(holder), "holder": holder.ID, "kept": maxSessions - 1, "life": inSeconds(life), "now": db.now(),
	}, ignore)
}

func kindOf(holder access.Holder) string {
	if holder.Operator {
		return "operator"
	}
	return "key"
}

// sessionSQL answers no row for a session whose key or operator is no longer good: the conditions are those of
// authenticateSQL and operatorSQL.
const sessionSQL = `
SELECT coalesce(o.name, ''), coalesce(k.id, ''), coalesce(k.scopes, '{}'), w.id, coalesce(w.metered, false),
       w.suspended_at IS NOT NULL, w.fingerprint_key, coalesce(w.rate_limit, 0), coalesce(k.rate_limit, 0), w.extraction,
       coalesce(w.name, '')
  FROM console_sessions s
  LEFT JOIN operators o ON s.kind = 'operator' AND o.id = s.holder AND o.revoked_at IS NULL
  LEFT JOIN api_keys k ON s.kind = 'key' AND k.id = s.holder AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())))
  LEFT JOIN workspaces w ON w.id = k.workspace_id
 WHERE s.id = @id
   AND s.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp()))
   AND (o.id IS NOT NULL OR w.id IS NOT NULL)`

// Session answers who is signed in by that session, as of now: nothing is remembered from one call to the next. Fault
// INVALID_API_KEY when nobody is.
func (db *DB) Session(ctx context.Context, id [sha256.Size]byte) (access.Visitor, error) {
	var visitor access.Visitor
	found := false
	args := pgx.NamedArgs{"id": id[:], "now": db.now()}
	err := db.read(ctx, everyone, "read session", sessionSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			found = true
			c := &visitor.Caller
			var workspace *uuid.UUID
			if err := rows.Scan(&visitor.Operator, &c.KeyID, &c.Permissions, &workspace, &c.Workspace.Metered, &c.Workspace.Suspended,
				&c.Workspace.FingerprintKey, &c.Workspace.RateLimit, &c.RateLimit, &c.Workspace.Extraction, &c.Workspace.Name); err != nil {
				return err
			}
			if workspace != nil {
				c.Workspace.ID = *workspace
			}
		}
		return nil
	})
	if err != nil {
		return access.Visitor{}, err
	}
	if !found {
		return access.Visitor{}, fault.New(fault.InvalidAPIKey)
	}
	return visitor, nil
}

const closeSessionSQL = `DELETE FROM console_sessions WHERE id = @id`

// CloseSession ends a session. One that is not there is no error.
func (db *DB) CloseSession(ctx context.Context, id [sha256.Size]byte) error {
	return db.alone(ctx, unbound, "close session", closeSessionSQL, pgx.NamedArgs{"id": id[:]}, ignore)
}

const calledWorkspaceSQL = `
SELECT id, name, metered, suspended_at IS NOT NULL, fingerprint_key, coalesce(rate_limit, 0), extraction
  FROM workspaces WHERE id = @workspace AND deletion IS NULL`

// CalledWorkspace answers what a request needs to know of a workspace, for an operator who is not one of its callers.
// Fault WORKSPACE_NOT_FOUND, also once its deletion has begun.
func (db *DB) CalledWorkspace(ctx context.Context, workspace uuid.UUID) (access.Workspace, error) {
	var w access.Workspace
	args := pgx.NamedArgs{"workspace": workspace}
	err := db.read(ctx, of(workspace), "read called workspace", calledWorkspaceSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&w.ID, &w.Name, &w.Metered, &w.Suspended, &w.FingerprintKey, &w.RateLimit, &w.Extraction); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && w.ID == uuid.Nil {
		err = fault.New(fault.WorkspaceNotFound)
	}
	return w, err
}

const forgetConsoleSQL = `
WITH sessions AS (
  DELETE FROM console_sessions
   WHERE id IN (SELECT s.id FROM console_sessions s
                 WHERE s.expires_at < (SELECT coalesce(@now::timestamptz, clock_timestamp())) ORDER BY s.expires_at LIMIT @limit)
  RETURNING 1
), processes AS (
  DELETE FROM process_minutes
   WHERE (at, process) IN (SELECT m.at, m.process FROM process_minutes m
                            WHERE m.at < (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @older)
                            ORDER BY m.at, m.process LIMIT @limit)
  RETURNING 1
), services AS (
  DELETE FROM service_minutes
   WHERE minute IN (SELECT m.minute FROM service_minutes m
                     WHERE m.minute < (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @older)
                     ORDER BY m.minute LIMIT @limit)
  RETURNING 1
)
SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM processes), (SELECT count(*) FROM services)`

// ForgetConsole implements repair.Retention.
func (db *DB) ForgetConsole(ctx context.Context, older time.Duration, limit int) (repair.Swept, error) {
	var sessions, processes, services int
	args := pgx.NamedArgs{"now": db.now(), "older": inSeconds(older), "limit": limit}
	err := db.alone(ctx, unbound, "forget console", forgetConsoleSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&sessions, &processes, &services); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return repair.Swept{}, err // rolled back, or unknown: the next round finds what is left
	}
	gone := sessions + processes + services
	return repair.Swept{Found: gone, Fixed: gone, More: max(sessions, processes, services) == limit}, nil
}
