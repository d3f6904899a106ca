package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// correctedSQL locks the record that is to be retracted; its lane is held already. One of another account is as good
// as none.
const correctedSQL = `
SELECT coalesce(m.agent_id, ''), coalesce(m.run_id, ''), coalesce(m.app_id, ''), m.item_key
  FROM memories m
 WHERE m.id = @id AND m.workspace_id = @workspace AND m.user_id = @account AND m.valid_to IS NULL AND ` + liveSQL + `
   AND NOT ` + fencedRecordSQL + `
   FOR UPDATE`

// Correct implements write.ItemStore. The correction belongs to the item that the retracted record came from.
func (db *DB) Correct(ctx context.Context, c write.Correction) (*task.Hint, error) {
	lane, err := db.laneOfRecord(ctx, c.WorkspaceID, c.Retracts)
	if err != nil {
		return nil, err
	}
	err = db.inKeyTx(ctx, c.WorkspaceID, db.lockTimeout, func(ctx context.Context, tx *Tx) error {
		holder, err := tx.claimKey(ctx, c.WorkspaceID, c.TaskID, c.Claim, false)
		switch {
		case err != nil:
			return err
		case holder != nil: // a random key that is taken is our own: the answer to our COMMIT was lost
			return nil
		case lane == nil:
			return fault.New(fault.MemoryNotFound)
		}
		return tx.correct(ctx, c, *lane)
	})
	failpoint.Hit("correct.committed")
	if err != nil || c.BornComplete {
		return nil, err
	}
	return &task.Hint{TaskID: c.TaskID, WorkspaceID: c.WorkspaceID, Seq: 1, Priority: task.Bulk}, nil
}

func (tx *Tx) correct(ctx context.Context, c write.Correction, lane memory.Lane) error {
	now := tx.db.now()
	live := false
	var itemKey []byte
	scope := memory.Scope{UserID: c.Account}
	b := &batch{}
	b.exec("take lane", takeLaneSQL, pgx.NamedArgs{"workspace": c.WorkspaceID, "lane": lane[:], "now": now}, nil)
	b.query("corrected", correctedSQL, pgx.NamedArgs{
		"id": c.Retracts, "workspace": c.WorkspaceID, "account": c.Account, "now": now,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			live = true
			if err := rows.Scan(&scope.AgentID, &scope.RunID, &scope.AppID, &itemKey); err != nil {
				return err
			}
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !live {
		return fault.New(fault.MemoryNotFound)
	}
	kind := task.Delete
	results := []memory.Result{{Ordinal: 0, RecordID: c.Retracts, Change: memory.Deleted}}
	var added []planned
	if c.Record != nil {
		kind, added = task.Update, []planned{{*c.Record, 1}}
		results = append(results, memory.Result{Ordinal: 1, RecordID: c.Record.ID, Change: memory.Added})
	}
	b = &batch{}
	b.exec("insert changed", insertChangedSQL, pgx.NamedArgs{
		"task": c.TaskID, "workspace": c.WorkspaceID, "kind": string(kind), "lane": lane[:], "complete": c.BornComplete,
		"record": c.Retracts, "key_hash": c.Claim.KeyHash[:], "price": 0,
		"trace": task.OriginOf(ctx).Bytes(),
	}, nil)
	addEdits(b, editor{c.TaskID, c.WorkspaceID, lane, nil}, []edit{{command.Change{ID: c.Retracts, Delete: true}, 0}}, now)
	addRecords(b, recordOwner{c.TaskID, c.WorkspaceID, scope, lane, nil}, added, now)
	if itemKey != nil {
		addOfItem(b, c.WorkspaceID, itemKey, added)
	}
	addResults(b, c.TaskID, c.WorkspaceID, results)
	if c.BornComplete && c.Record != nil {
		addVectors(b, c.WorkspaceID, c.VectorModel, []worker.Projection{
			{RecordID: c.Record.ID, Version: 1, Vector: c.Vectors[0]},
		}, now)
	}
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	failpoint.Hit("correct.in_tx")
	return nil
}
