package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Role is what the role that a connection logs in as may do, as far as the second belt goes: row-level security, which
// holds the API to one workspace in each transaction.
type Role struct {
	Superuser bool
	BypassRLS bool
	Owner     bool // of the tables, or a member of their owner
	API       bool // has the rights of holdfast_api
	Worker    bool // has the rights of holdfast_worker
}

// Sees tells whether the policies show the role the rows of all workspaces. From a role that is nobody's they hide all.
func (r Role) Sees() bool { return r.Superuser || r.BypassRLS || r.Owner || r.Worker }

// Serves tells whether the role can do what the API does: as one of its own, or as one that nothing is kept from.
func (r Role) Serves() bool { return r.API || r.Superuser || r.BypassRLS || r.Owner }

// Held tells whether the policies of the API hold the role.
func (r Role) Held() bool { return r.API && !r.Sees() }

// Slack says why the policies of the API don't hold the role, empty if they do. It names no role of the caller's.
func (r Role) Slack() string {
	switch {
	case r.Superuser:
		return "it is a superuser"
	case r.BypassRLS:
		return "it has BYPASSRLS"
	case r.Owner:
		return "it owns the tables"
	case r.Worker:
		return "it has the rights of holdfast_worker"
	case !r.API:
		return "it has not the rights of holdfast_api"
	}
	return ""
}

// roleSQL asks of memories in place of all tables: the migrations make them with one owner. A superuser is a member of
// every role, so what it says of members counts for others only.
const roleSQL = `
SELECT r.rolsuper, r.rolbypassrls,
       coalesce((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = to_regclass('memories')), false),
       coalesce((SELECT pg_has_role(g.oid, 'USAGE') FROM pg_roles g WHERE g.rolname = 'holdfast_api'), false),
       coalesce((SELECT pg_has_role(g.oid, 'USAGE') FROM pg_roles g WHERE g.rolname = 'holdfast_worker'), false)
  FROM pg_roles r WHERE r.rolname = current_user`

func (r *Role) scan(rows pgx.Rows) error {
	for rows.Next() {
		if err := rows.Scan(&r.Superuser, &r.BypassRLS, &r.Owner, &r.API, &r.Worker); err != nil {
			return err
		}
	}
	return nil
}

// Role answers what the role of the pool's connections may do.
func (db *DB) Role(ctx context.Context) (Role, error) {
	var role Role
	err := db.read(ctx, unbound, "read role", roleSQL, nil, role.scan)
	return role, err
}

// ReadRole answers what the role of the URL may do. The error is an *Unreachable when there is no connection.
func ReadRole(ctx context.Context, url string) (Role, error) {
	var role Role
	err := look(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, roleSQL)
		if err == nil {
			err = scanned(rows, role.scan)
		}
		return classify(err)
	})
	return role, err
}
