package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/operator"
)

const policySQL = `SELECT extraction::text FROM workspaces WHERE id = @workspace`

// Policy answers what the workspace adds to how its conversations are read, as JSON, or ErrNoWorkspace.
func (db *DB) Policy(ctx context.Context, workspace uuid.UUID) ([]byte, error) {
	var policy []byte
	err := db.read(ctx, of(workspace), "read policy", policySQL, pgx.NamedArgs{"workspace": workspace}, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&policy); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && policy == nil {
		err = ErrNoWorkspace
	}
	return policy, err
}

// changePolicySQL is one statement, so that of two changes at once neither loses the members of the other.
const changePolicySQL = `
UPDATE workspaces SET extraction = (extraction::jsonb || @members::text::jsonb)::json
 WHERE id = @workspace AND deletion IS NULL
RETURNING extraction::text`

// ChangePolicy implements write.PolicyStore. No command that is accepted already has to do with it: each has a copy.
func (db *DB) ChangePolicy(ctx context.Context, workspace uuid.UUID, members []byte) ([]byte, error) {
	var policy []byte
	args := pgx.NamedArgs{"workspace": workspace, "members": string(members)}
	changed := act{workspace, operator.ChangePolicy, workspace.String(), nil}
	err := db.recorded(ctx, changed, "change policy", changePolicySQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&policy); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && policy == nil {
		err = ErrNoWorkspace
	}
	return policy, err
}
