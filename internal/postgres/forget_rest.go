package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
)

const clockSQL = `SELECT coalesce(@now::timestamptz, clock_timestamp())`

// ForgetRest implements write.ItemStore. Each transaction is about a few batches or one snapshot; what was accepted
// after the items had gone holds nothing of them.
func (db *DB) ForgetRest(ctx context.Context, workspace uuid.UUID, copies bool) error {
	var at time.Time
	if err := db.read(ctx, of(workspace), "clock", clockSQL, pgx.NamedArgs{"now": db.now()}, one(&at)); err != nil {
		return err
	}
	err := db.walkRest(ctx, workspace, at, "batches to cut", batchesToEraseSQL, eraseBatchLimit,
		func(ctx context.Context, tx *Tx, ids []uuid.UUID) error {
			var stored []storedBatch
			b := &batch{}
			addLockBatches(b, workspace, ids, &stored)
			if err := tx.send(ctx, b); err != nil {
				return err
			}
			return tx.cutBatches(ctx, stored, goneRecordsSQL, pgx.NamedArgs{"workspace": workspace})
		})
	if err != nil || !copies {
		return err
	}
	return db.walkRest(ctx, workspace, at, "copies to drop", copiesToEraseSQL, 1,
		func(ctx context.Context, tx *Tx, ids []uuid.UUID) error {
			b := &batch{}
			addEraseCopies(b, workspace, ids)
			return tx.send(ctx, b)
		})
}

// walkRest does the tasks that the query finds, newest first, limit of them in one transaction. Each step begins behind
// the one before, so that it comes to an end.
func (db *DB) walkRest(ctx context.Context, workspace uuid.UUID, at time.Time, name, query string, limit int,
	do func(ctx context.Context, tx *Tx, ids []uuid.UUID) error,
) error {
	place := erasePlace{}
	for more := true; more; {
		args := pgx.NamedArgs{"workspace": workspace, "erased_at": at, "limit": limit}
		rows, err := EraseJob{db}.hits(ctx, workspace, name, query, args, place)
		if err != nil {
			return err
		}
		found := &erasePiece{}
		if place, more = found.collect(rows, limit, place); len(found.ids) == 0 {
			return nil
		}
		err = db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
			return do(ctx, tx, found.ids)
		})
		if err != nil {
			return err
		}
		failpoint.Hit("forget.rest_committed")
	}
	return nil
}
