package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// eraseBatchLimit bounds a piece by its payloads: each may be 250,000 bytes.
const eraseBatchLimit = 10

// batchesToEraseSQL finds batches that still have their input: they wait, run, or have failed. A batch has no scope,
// its changes have those of their records.
const batchesToEraseSQL = `
SELECT m.id, m.accepted_at, m.lane, true
  FROM tasks m
 WHERE m.workspace_id = @workspace AND m.kind = 'memory_batch_update' AND m.accepted_at <= @erased_at
   AND m.command IS NOT NULL
   AND (m.accepted_at, m.id) < (coalesce(@at::timestamptz, 'infinity'),
                                coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
 ORDER BY m.accepted_at DESC, m.id DESC
 LIMIT @limit`

func (j EraseJob) batchWindow(ctx context.Context, l worker.Lease, place erasePlace, piece *erasePiece) (erasePlace, error) {
	args := pgx.NamedArgs{"workspace": l.WorkspaceID, "erased_at": piece.erasedAt, "limit": eraseBatchLimit}
	rows, err := j.hits(ctx, l.WorkspaceID, "batches to erase", batchesToEraseSQL, args, place)
	if err != nil {
		return place, err
	}
	if to, more := piece.collect(rows, eraseBatchLimit, place); more {
		return to, nil
	}
	return place.next(), nil
}

const lockBatchesSQL = `
SELECT t.id, t.payload_format, t.command, ` + wrappedSQL + `t.data_key) FROM tasks t
 WHERE t.id = ANY(@ids::uuid[]) AND t.workspace_id = @workspace AND t.command IS NOT NULL
 ORDER BY t.id
   FOR UPDATE OF t`

// goneRecordsSQL names the records that the workspace has no more: nothing that a batch says of them will be done, and
// whom it is about can't be told any more.
const goneRecordsSQL = `
SELECT i.id FROM unnest(@ids::uuid[]) AS i (id)
 WHERE NOT EXISTS (SELECT FROM memories m WHERE m.id = i.id AND m.workspace_id = @workspace)`

const coveredRecordsSQL = goneRecordsSQL + `
    OR EXISTS (SELECT FROM memories m
                WHERE m.id = i.id AND m.workspace_id = @workspace AND m.accepted_at <= @erased_at%s)`

const rewriteBatchesSQL = `
UPDATE tasks AS t SET command = n.command, payload_format = @format,
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@ids::uuid[], @commands::bytea[]) AS n (id, command)
 WHERE t.id = n.id AND t.workspace_id = @workspace`

// storedBatch is the input of a batch as it is kept.
type storedBatch struct {
	ID      uuid.UUID
	Format  int
	Command []byte
	Wrapped [][]byte // the key that it is sealed with
}

// eraseFromBatches takes the new contents of covered records, and of those that are gone already, out of batches that
// wait, run or have failed. The batch goes on: to its pieces a covered record is gone.
func (tx *Tx) eraseFromBatches(ctx context.Context, l worker.Lease, piece *erasePiece) error {
	now := tx.db.now()
	held := false
	var stored []storedBatch
	b := &batch{}
	if err := piece.addMove(b, l, now, &held); err != nil {
		return err
	}
	addLockBatches(b, l.WorkspaceID, piece.ids, &stored)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	scope, args := eraseArgs(l, piece)
	return tx.cutBatches(ctx, stored, fmt.Sprintf(coveredRecordsSQL, scope), args)
}

func addLockBatches(b *batch, workspace uuid.UUID, ids []uuid.UUID, stored *[]storedBatch) {
	b.query("lock batches", lockBatchesSQL, pgx.NamedArgs{"ids": ids, "workspace": workspace}, func(rows pgx.Rows) error {
		var err error
		*stored, err = pgx.CollectRows(rows, pgx.RowToStructByPos[storedBatch])
		return err
	})
}

// cutBatches takes out of locked batches what they say of the records that the query names among @ids.
func (tx *Tx) cutBatches(ctx context.Context, stored []storedBatch, query string, args pgx.NamedArgs) error {
	batches, records, err := tx.readBatches(stored)
	if err != nil || len(records) == 0 {
		return err
	}
	args["ids"] = records
	gone := map[uuid.UUID]bool{}
	b := &batch{}
	b.query("gone records", query, args, func(rows pgx.Rows) error {
		clear(gone)
		for rows.Next() {
			var id uuid.UUID
			if err := rows.Scan(&id); err != nil {
				return err
			}
			gone[id] = true
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil || len(gone) == 0 {
		return err
	}
	return tx.rewriteBatches(ctx, stored, batches, gone, tx.db.now())
}

// readBatches decodes the inputs and lists the records that they name. What no worker could read is left to the
// retention of failed input. What another process has the key of is left to that one: seal.ErrNoKey.
func (tx *Tx) readBatches(stored []storedBatch) ([]command.Batch, []uuid.UUID, error) {
	batches := make([]command.Batch, len(stored))
	var records []uuid.UUID
	for i, s := range stored {
		payload, err := tx.db.sealer.open(atCommand(tx.workspace, s.ID), s.Command, s.Wrapped)
		if errors.Is(err, seal.ErrNoKey) {
			return nil, nil, err
		}
		if err != nil {
			continue
		}
		batches[i], err = command.DecodeBatch(s.Format, payload)
		if err != nil && !errors.Is(err, command.ErrUnreadable) {
			return nil, nil, err
		}
		records = append(records, idsOf(batches[i].Changes)...)
	}
	return batches, records, nil
}

func (tx *Tx) rewriteBatches(ctx context.Context, stored []storedBatch, batches []command.Batch, gone map[uuid.UUID]bool, now *time.Time) error {
	var ids []uuid.UUID
	var commands [][]byte
	for i, s := range stored {
		touched := false
		for n, c := range batches[i].Changes {
			if gone[c.ID] {
				batches[i].Changes[n] = command.Change{ID: c.ID, Delete: c.Delete, Version: c.Version}
				touched = true
			}
		}
		if !touched {
			continue
		}
		encoded, err := batches[i].Encode()
		if err != nil {
			return err
		}
		if encoded, err = tx.seal(atCommand(tx.workspace, s.ID), encoded); err != nil {
			return err
		}
		ids, commands = append(ids, s.ID), append(commands, encoded)
	}
	if len(ids) == 0 {
		return nil
	}
	b := &batch{}
	b.exec("rewrite batches", rewriteBatchesSQL, pgx.NamedArgs{
		"ids": ids, "commands": commands, "format": command.Format, "workspace": tx.workspace, "now": now,
	}, nil)
	return tx.send(ctx, b)
}

// copiesToEraseSQL finds snapshots that were asked for or sent before the fence and may hold what the erase is about, as
// they hold everything of a workspace. An export that is still being made begins anew, an import ends with what it has.
const copiesToEraseSQL = `
SELECT t.id, t.accepted_at, NULL::bytea, true
  FROM all_tasks t
 WHERE t.workspace_id = @workspace AND t.kind IN ('export', 'import') AND t.accepted_at <= @erased_at
   AND (t.accepted_at, t.id) < (coalesce(@at::timestamptz, 'infinity'),
                                coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
   AND EXISTS (SELECT FROM task_parts p WHERE p.task_id = t.id)
 ORDER BY t.accepted_at DESC, t.id DESC
 LIMIT @limit`

// lockCopiesSQL waits for the piece of a snapshot that is being made: its part is there for the next statement to see.
const lockCopiesSQL = `
SELECT id FROM tasks WHERE id = ANY(@ids::uuid[]) AND workspace_id = @workspace ORDER BY id FOR UPDATE`

const eraseCopiesSQL = `DELETE FROM task_parts WHERE task_id = ANY(@ids::uuid[]) AND workspace_id = @workspace`

func (j EraseJob) copyWindow(ctx context.Context, l worker.Lease, place erasePlace, piece *erasePiece) (erasePlace, error) {
	args := pgx.NamedArgs{"workspace": l.WorkspaceID, "erased_at": piece.erasedAt, "limit": 1} // a snapshot has many parts
	rows, err := j.hits(ctx, l.WorkspaceID, "copies to erase", copiesToEraseSQL, args, place)
	if err != nil {
		return place, err
	}
	if to, more := piece.collect(rows, 1, place); more {
		return to, nil
	}
	return place.next(), nil
}

// eraseCopies removes snapshots that the workspace has not fetched: what has been erased must not come back from one.
func (tx *Tx) eraseCopies(ctx context.Context, l worker.Lease, piece *erasePiece) error {
	held := false
	b := &batch{}
	if err := piece.addMove(b, l, tx.db.now(), &held); err != nil {
		return err
	}
	addEraseCopies(b, l.WorkspaceID, piece.ids)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	return nil
}

func addEraseCopies(b *batch, workspace uuid.UUID, ids []uuid.UUID) {
	args := pgx.NamedArgs{"ids": ids, "workspace": workspace}
	b.exec("lock copies", lockCopiesSQL, args, nil)
	b.exec("erase copies", eraseCopiesSQL, args, nil)
}
