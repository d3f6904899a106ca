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

// ErrNoOperator says that there is no operator's token of that id.
const ErrNoOperator verdict = "no such operator"

// maxOperators bounds the list.
const maxOperators = 1_000

const createOperatorSQL = `
INSERT INTO operators (id, name, secret_hash, created_at)
VALUES (@id, @name, @secret_hash, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
RETURNING id`

// CreateOperator makes a token for the admin API and returns it in clear, the only time that it can be seen. The name
// has 1 to 100 visible characters and is what the log of acts calls its holder.
func (db *DB) CreateOperator(ctx context.Context, name string) (access.Token, error) {
	if err := checkName(name); err != nil {
		return access.Token{}, err
	}
	token, err := access.NewToken()
	if err != nil {
		return access.Token{}, fmt.Errorf("create operator: %w", err)
	}
	hash := token.SecretHash()
	done := act{uuid.Nil, operator.CreateOperator, token.ID(), map[string]any{"name": name}}
	args := pgx.NamedArgs{"id": token.ID(), "name": name, "secret_hash": hash[:], "now": db.now()}
	if err := db.recorded(ctx, done, "create operator", createOperatorSQL, args, ignore); err != nil {
		return access.Token{}, err
	}
	return token, nil
}

func ignore(rows pgx.Rows) error {
	rows.Close()
	return nil
}

const operatorsSQL = `SELECT id, name, created_at, revoked_at FROM operators ORDER BY created_at, id LIMIT @limit`

// ListOperators answers all operators, oldest first, revoked ones too.
func (db *DB) ListOperators(ctx context.Context) ([]operator.Operator, error) {
	var all []operator.Operator
	err := db.read(ctx, unbound, "read operators", operatorsSQL, pgx.NamedArgs{"limit": maxOperators}, func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o operator.Operator, err error) {
			err = row.Scan(&o.ID, &o.Name, &o.CreatedAt, &o.RevokedAt)
			o.CreatedAt = o.CreatedAt.UTC()
			inUTC(o.RevokedAt)
			return o, err
		})
		return err
	})
	return all, err
}

const revokeOperatorSQL = `
UPDATE operators SET revoked_at = coalesce(revoked_at, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
 WHERE id = @id
RETURNING id`

// RevokeOperator ends a token for good; the next request with it is refused. ErrNoOperator for an unknown id.
func (db *DB) RevokeOperator(ctx context.Context, id string) error {
	found := false
	args := pgx.NamedArgs{"id": id, "now": db.now()}
	err := db.recorded(ctx, act{uuid.Nil, operator.RevokeOperator, id, nil}, "revoke operator", revokeOperatorSQL, args,
		func(rows pgx.Rows) error {
			found = rows.Next()
			return nil
		})
	if err == nil && !found {
		err = ErrNoOperator
	}
	return err
}

const operatorSQL = `SELECT secret_hash, name FROM operators WHERE id = @id AND revoked_at IS NULL`

// Operator answers the name of the token's holder as of now. Fault INVALID_API_KEY for an unknown, wrong or revoked one.
func (db *DB) Operator(ctx context.Context, token access.Token) (name string, err error) {
	var stored []byte
	err = db.read(ctx, unbound, "authenticate operator", operatorSQL, pgx.NamedArgs{"id": token.ID()}, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&stored, &name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	hash := token.SecretHash()
	if subtle.ConstantTimeCompare(stored, hash[:]) != 1 {
		return "", fault.New(fault.InvalidAPIKey)
	}
	return name, nil
}
