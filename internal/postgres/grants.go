package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

const (
	// maxReference is as long as an idempotency key may be; invoices and payment ids are shorter.
	maxReference = 200
	// maxGrant keeps a balance far from the end of its type, however often it is granted.
	maxGrant credit.Amount = 1_000_000_000_000
)

// grantSQL waits for a grant of the same reference that is not committed yet, and locks the account last.
const grantSQL = `
WITH g AS (
  INSERT INTO credit_grants (id, workspace_id, reference, amount, granted_at)
  SELECT @id, w.id, @reference, @amount, (SELECT coalesce(@now::timestamptz, clock_timestamp()))
    FROM workspaces w WHERE w.id = @workspace AND w.deletion IS NULL
  ON CONFLICT (workspace_id, reference) DO NOTHING
  RETURNING workspace_id, amount)
INSERT INTO credit_accounts AS a (workspace_id, available)
SELECT g.workspace_id, g.amount FROM g
ON CONFLICT (workspace_id) DO UPDATE SET available = a.available + excluded.available`

const grantedSQL = `SELECT id, amount FROM credit_grants WHERE workspace_id = @workspace AND reference = @reference`

// Grant gives the workspace credits, once for each reference: true if this call did it, false if the reference
// was granted before with the same amount. Faults: IDEMPOTENCY_CONFLICT for another amount under the reference,
// INVALID_REQUEST; ErrNoWorkspace.
func (db *DB) Grant(ctx context.Context, workspace uuid.UUID, reference string, amount credit.Amount) (granted bool, err error) {
	switch {
	case reference == "" || len(reference) > maxReference:
		return false, fault.At(fault.InvalidRequest, "/reference", "1 to 200 bytes")
	case amount < 1 || amount > maxGrant:
		return false, fault.At(fault.InvalidRequest, "/amount", "1 to 1000000000000")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return false, fmt.Errorf("make grant id: %w", err)
	}
	ctx = access.As(ctx, access.ActorOf(ctx)) // the repeat is the same occasion
	granted, err = db.grant(ctx, workspace, id, reference, amount)
	if errors.Is(err, fault.ErrCommitUnknown) { // the repeat finds its own id, or grants
		granted, err = db.grant(ctx, workspace, id, reference, amount)
	}
	if err != nil {
		return false, fmt.Errorf("grant credits: %w", err)
	}
	return granted, nil
}

func (db *DB) grant(ctx context.Context, workspace, id uuid.UUID, reference string, amount credit.Amount) (granted bool, err error) {
	err = db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		var holder uuid.UUID
		var there credit.Amount
		b := &batch{}
		b.exec("grant", grantSQL, pgx.NamedArgs{
			"id": id, "workspace": workspace, "reference": reference, "amount": amount, "now": tx.db.now(),
		}, nil)
		b.query("read grant", grantedSQL, pgx.NamedArgs{"workspace": workspace, "reference": reference},
			func(rows pgx.Rows) error {
				if !rows.Next() {
					return errors.Join(pgx.ErrNoRows, rows.Err())
				}
				return rows.Scan(&holder, &there)
			})
		err := tx.send(ctx, b)
		switch {
		case failedAt(err, "read grant") && errors.Is(err, pgx.ErrNoRows):
			return ErrNoWorkspace
		case err != nil:
			return err
		case there != amount:
			return fault.New(fault.IdempotencyConflict)
		}
		if granted = holder == id; !granted {
			return nil
		}
		b = &batch{}
		addAct(ctx, b, tx.db.now(), act{workspace, operator.Grant, reference, map[string]any{"amount": amount}})
		return tx.send(ctx, b)
	})
	return granted, err
}
