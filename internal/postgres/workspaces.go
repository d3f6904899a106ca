package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

const (
	// ErrNoWorkspace says that there is no such workspace. Only operators meet it: a caller's workspace comes
	// from its key.
	ErrNoWorkspace verdict = "no such workspace"
	// ErrWorkspaceExists says that the name is taken.
	ErrWorkspaceExists verdict = "a workspace of this name exists"
)

const (
	// maxName is what fits a line of a terminal.
	maxName = 100
	// maxWorkspaces bounds an operator's list.
	maxWorkspaces = 10_000
	// workspacePrefix begins an id as it is shown.
	workspacePrefix = "ws_"

	fingerprintKeySize = 32
)

// Workspace is one as its operator sees it, with what its account has.
type Workspace = operator.Workspace

// Limits are limits of a workspace's own: nil leaves one as it is, 0 makes it the service's again.
type Limits = operator.Limits

const createWorkspaceSQL = `
INSERT INTO workspaces (id, name, metered, fingerprint_key, created_at)
VALUES (@workspace, @name, @metered, @fingerprint_key, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
ON CONFLICT (name) DO NOTHING`

const createAccountSQL = `INSERT INTO credit_accounts (workspace_id) VALUES (@workspace)`

// CreateWorkspace makes a workspace with an empty account and a fingerprint key of its own. The name has 1 to
// 100 visible characters. ErrWorkspaceExists if it is taken, a fault INVALID_REQUEST if it is no name.
func (db *DB) CreateWorkspace(ctx context.Context, name string, metered bool) (Workspace, error) {
	if err := checkName(name); err != nil {
		return Workspace{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Workspace{}, fmt.Errorf("make workspace id: %w", err)
	}
	secret := make([]byte, fingerprintKeySize)
	if _, err := rand.Read(secret); err != nil {
		return Workspace{}, fmt.Errorf("make fingerprint key: %w", err)
	}
	err = db.InTx(ctx, id, func(ctx context.Context, tx *Tx) error {
		b := &batch{}
		b.exec("create workspace", createWorkspaceSQL, pgx.NamedArgs{
			"workspace": id, "name": name, "metered": metered, "fingerprint_key": secret, "now": tx.db.now(),
		}, func(rows int64) error {
			if rows == 0 {
				return ErrWorkspaceExists
			}
			return nil
		})
		b.exec("create account", createAccountSQL, pgx.NamedArgs{"workspace": id}, nil)
		addAct(ctx, b, tx.db.now(), act{id, operator.CreateWorkspace, id.String(), map[string]any{"name": name, "metered": metered}})
		return tx.send(ctx, b)
	})
	if err != nil {
		return Workspace{}, err
	}
	return db.Workspace(ctx, id.String())
}

func checkName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > maxName || strings.TrimSpace(name) != name || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return fault.At(fault.InvalidRequest, "/name", "1 to 100 visible characters")
	}
	return nil
}

const workspacesSQL = `
SELECT w.id, w.name, w.metered, w.suspended_at, w.created_at, coalesce(a.available, 0), coalesce(a.held, 0),
       coalesce(w.max_pending, 0), coalesce(w.rate_limit, 0), coalesce(w.lease_cap, 0), w.deletion, w.deleted_at,
       w.paused_at
  FROM workspaces w
  LEFT JOIN credit_accounts a ON a.workspace_id = w.id
 WHERE (@id::uuid IS NULL OR w.id = @id) AND (@name::text IS NULL OR w.name = @name)
   AND (@id::uuid IS NOT NULL OR w.deleted_at IS NULL)
 ORDER BY w.created_at, w.id
 LIMIT @limit`

// ListWorkspaces answers all workspaces, oldest first, without those whose deletion has ended.
func (db *DB) ListWorkspaces(ctx context.Context) ([]Workspace, error) {
	return db.workspaces(ctx, everyone, pgx.NamedArgs{"id": nil, "name": nil, "limit": maxWorkspaces})
}

// WorkspaceByName answers the workspace of that name, or ErrNoWorkspace.
func (db *DB) WorkspaceByName(ctx context.Context, name string) (Workspace, error) {
	return onlyWorkspace(db.workspaces(ctx, everyone, pgx.NamedArgs{"id": nil, "name": name, "limit": 1}))
}

// Workspace answers the workspace of that id, with or without its prefix, also a deleted one, or of that name, or
// ErrNoWorkspace.
func (db *DB) Workspace(ctx context.Context, idOrName string) (Workspace, error) {
	if id, err := uuid.Parse(strings.TrimPrefix(idOrName, workspacePrefix)); err == nil {
		found, err := onlyWorkspace(db.workspaces(ctx, of(id), pgx.NamedArgs{"id": id, "name": nil, "limit": 1}))
		if !errors.Is(err, ErrNoWorkspace) {
			return found, err
		}
	}
	return db.WorkspaceByName(ctx, idOrName)
}

const suspendSQL = `
UPDATE workspaces
   SET suspended_at = CASE WHEN @suspended THEN coalesce(suspended_at, (SELECT coalesce(@now::timestamptz, clock_timestamp()))) END
 WHERE id = @id AND deletion IS NULL
RETURNING id`

// SuspendWorkspace stops the workspace's work from being claimed and refuses its writes, or lets both go on.
// Doing it twice changes nothing. ErrNoWorkspace for an unknown id or name, and for a workspace that is being deleted.
func (db *DB) SuspendWorkspace(ctx context.Context, idOrName string, suspended bool) (Workspace, error) {
	found, err := db.Workspace(ctx, idOrName)
	if err != nil {
		return Workspace{}, err
	}
	name := operator.ResumeWorkspace
	if suspended {
		name = operator.SuspendWorkspace
	}
	args := pgx.NamedArgs{"id": found.ID, "suspended": suspended, "now": db.now()}
	if err := db.changeWorkspace(ctx, act{found.ID, name, found.ID.String(), nil}, "suspend workspace", suspendSQL, args); err != nil {
		return Workspace{}, err
	}
	return db.Workspace(ctx, found.ID.String())
}

const limitSQL = `
UPDATE workspaces
   SET max_pending = CASE WHEN @max_pending::int IS NULL THEN max_pending ELSE nullif(@max_pending::int, 0) END,
       rate_limit = CASE WHEN @rate_limit::int IS NULL THEN rate_limit ELSE nullif(@rate_limit::int, 0) END,
       lease_cap = CASE WHEN @lease_cap::int IS NULL THEN lease_cap ELSE nullif(@lease_cap::int, 0) END
 WHERE id = @id AND deletion IS NULL
RETURNING id`

// LimitWorkspace sets limits of the workspace's own. A process that runs knows of them with the next request, of
// MaxPending and LeaseCap within a second or two. Fault INVALID_REQUEST for a negative one or one beyond 2^31-1; ErrNoWorkspace.
func (db *DB) LimitWorkspace(ctx context.Context, idOrName string, limits Limits) (Workspace, error) {
	if err := checkLimit("/max_pending", limits.MaxPending); err != nil {
		return Workspace{}, err
	}
	if err := checkLimit("/rate_limit", limits.RateLimit); err != nil {
		return Workspace{}, err
	}
	if err := checkLimit("/lease_cap", limits.LeaseCap); err != nil {
		return Workspace{}, err
	}
	found, err := db.Workspace(ctx, idOrName)
	if err != nil {
		return Workspace{}, err
	}
	args := pgx.NamedArgs{
		"id": found.ID, "max_pending": limits.MaxPending, "rate_limit": limits.RateLimit, "lease_cap": limits.LeaseCap,
	}
	set := map[string]any{}
	for name, limit := range map[string]*int{"max_pending": limits.MaxPending, "rate_limit": limits.RateLimit, "lease_cap": limits.LeaseCap} {
		if limit != nil {
			set[name] = *limit
		}
	}
	if err := db.changeWorkspace(ctx, act{found.ID, operator.LimitWorkspace, found.ID.String(), set}, "limit workspace", limitSQL, args); err != nil {
		return Workspace{}, err
	}
	return db.Workspace(ctx, found.ID.String())
}

// changeWorkspace runs a statement that changes one workspace and returns its id, or answers ErrNoWorkspace.
func (db *DB) changeWorkspace(ctx context.Context, a act, name, sql string, args pgx.NamedArgs) error {
	found := false
	err := db.recorded(ctx, a, name, sql, args, func(rows pgx.Rows) error {
		found = rows.Next()
		return nil
	})
	if err == nil && !found {
		err = ErrNoWorkspace
	}
	return err
}

func checkLimit(pointer string, limit *int) error {
	if limit != nil && (*limit < 0 || *limit > math.MaxInt32) {
		return fault.At(fault.InvalidRequest, pointer, "0 to 2147483647")
	}
	return nil
}

func (db *DB) workspaces(ctx context.Context, within reach, args pgx.NamedArgs) ([]Workspace, error) {
	var found []Workspace
	err := db.read(ctx, within, "read workspaces", workspacesSQL, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Workspace, err error) {
			err = row.Scan(&w.ID, &w.Name, &w.Metered, &w.SuspendedAt, &w.CreatedAt, &w.Available, &w.Held,
				&w.MaxPending, &w.RateLimit, &w.LeaseCap, &w.Deletion, &w.DeletedAt, &w.PausedAt)
			w.CreatedAt = w.CreatedAt.UTC()
			inUTC(w.SuspendedAt, w.DeletedAt, w.PausedAt)
			return w, err
		})
		return err
	})
	return found, err
}

func onlyWorkspace(found []Workspace, err error) (Workspace, error) {
	if err != nil {
		return Workspace{}, err
	}
	if len(found) == 0 {
		return Workspace{}, ErrNoWorkspace
	}
	return found[0], nil
}
