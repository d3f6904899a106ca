package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// eraseRecordsSQL removes records that were found covered, which they stay, in id order, and tells which of them readers could still see. A record
// that vectors are being made of is waited for: they are removed after it.
const eraseRecordsSQL = `
WITH old AS MATERIALIZED (
  SELECT m.id, m.deleted_at IS NULL AS live FROM memories m
   WHERE m.id = ANY(@ids::uuid[]) AND m.workspace_id = @workspace
   ORDER BY m.id
     FOR UPDATE
)
DELETE FROM memories AS t USING old WHERE t.id = old.id
RETURNING t.id, old.live`

// eraseHistorySQL leaves of a record's history that it was there, without what it said.
const eraseHistorySQL = `
UPDATE memory_history SET old_text = NULL, new_text = NULL
 WHERE workspace_id = @workspace AND memory_id = ANY(@ids::uuid[]) AND (old_text IS NOT NULL OR new_text IS NOT NULL)`

// eraseRecords removes the records of a piece, and then, in later statements, everything that is made from them: a
// projection that was committed while the records' locks were waited for is there for these statements to see.
func (tx *Tx) eraseRecords(ctx context.Context, l worker.Lease, piece *erasePiece) error {
	now := tx.db.now()
	held, live := false, 0
	var gone []uuid.UUID
	b := &batch{}
	b.exec("lock lanes", lockLanesSQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "lanes": piece.lanes}, nil)
	if err := piece.addMove(b, l, now, &held); err != nil {
		return err
	}
	b.query("erase records", eraseRecordsSQL, pgx.NamedArgs{"ids": piece.ids, "workspace": l.WorkspaceID}, func(rows pgx.Rows) error {
		gone, live = nil, 0
		for rows.Next() {
			var id uuid.UUID
			var seen bool
			if err := rows.Scan(&id, &seen); err != nil {
				return err
			}
			gone = append(gone, id)
			if seen {
				live++
			}
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	if len(gone) == 0 {
		return nil
	}
	b = &batch{}
	b.exec("erase projections", dropProjectionsSQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "ids": gone}, nil)
	b.exec("erase history", eraseHistorySQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "ids": gone}, nil)
	addErased(b, l, live, 0)
	return tx.send(ctx, b)
}

// lockItemsSQL takes items in the order of their keys. Items come before tasks in the order of locks.
const lockItemsSQL = `
SELECT i.item_key FROM items i
 WHERE i.workspace_id = @workspace AND i.item_key = ANY(@keys::bytea[])
 ORDER BY i.item_key
   FOR UPDATE`

// eraseItemsSQL follows the statement that locked the items, so that it sees the task of an edit that was waited
// for: an item whose current revision was accepted after the fence stays.
const eraseItemsSQL = `
DELETE FROM items i
 WHERE i.workspace_id = @workspace AND i.item_key = ANY(@keys::bytea[])
   AND NOT EXISTS (SELECT FROM all_tasks t
                    WHERE t.id = i.task_id AND t.workspace_id = i.workspace_id AND t.accepted_at > @erased_at)`

func (tx *Tx) eraseItems(ctx context.Context, l worker.Lease, piece *erasePiece) error {
	args := pgx.NamedArgs{"workspace": l.WorkspaceID, "keys": piece.keys, "erased_at": piece.erasedAt}
	held := false
	b := &batch{}
	b.exec("lock items", lockItemsSQL, args, nil)
	if err := piece.addMove(b, l, tx.db.now(), &held); err != nil {
		return err
	}
	b.exec("erase items", eraseItemsSQL, args, nil)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	return nil
}
