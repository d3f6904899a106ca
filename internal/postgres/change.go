package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// laneOfRecordSQL reads where a record belongs, without a lock: a record's lane never changes.
const laneOfRecordSQL = `SELECT lane FROM memories WHERE id = @id AND workspace_id = @workspace`

// insertChangedSQL writes the task of a change with its run: born succeeded with its run closed, or born committed
// with its run open when the vector is still to come. It keeps no input and has the scope of its record.
const insertChangedSQL = `
WITH lane AS (
  SELECT last_accepted_at AS at FROM lanes WHERE workspace_id = @workspace AND lane = @lane
), t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, agent_id, run_id, app_id,
                     lane, priority, payload_format, key_hash, outcome, trace, accepted_at, updated_at, committed_at,
                     completed_at)
  SELECT @task, @workspace, @kind, CASE WHEN @complete THEN 'succeeded' ELSE 'pending' END,
         CASE WHEN @complete THEN 'projected' ELSE 'committed' END, (SELECT coalesce(@now::timestamptz, clock_timestamp())),
         (SELECT coalesce(@now::timestamptz, clock_timestamp())), m.user_id, m.agent_id, m.run_id, m.app_id, @lane, 'bulk',
         1, @key_hash, CASE WHEN @complete THEN 'STORED' END, @trace, lane.at, lane.at, lane.at, CASE WHEN @complete THEN lane.at END
    FROM lane, memories m
   WHERE m.id = @record AND m.workspace_id = @workspace
  RETURNING id, workspace_id, accepted_at
), p AS (
  INSERT INTO plans (task_id, workspace_id, generation, body, created_at)
  SELECT id, workspace_id, 1, NULL, accepted_at FROM t
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
  SELECT id, 1, workspace_id, @price, CASE WHEN @complete THEN 'succeeded' END, accepted_at FROM t
  RETURNING task_id, workspace_id, amount, outcome, opened_at
)
INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
SELECT task_id, 1, workspace_id, outcome, amount, amount, 0, opened_at FROM r WHERE outcome IS NOT NULL`

// changedSQL reads what an earlier change did, with the text of that command's own history.
const changedSQL = `
SELECT r.record_id, r.event, coalesce(h.version, 0), h.new_text
  FROM task_results r
  LEFT JOIN memory_history h ON h.task_id = r.task_id AND h.ordinal = r.ordinal AND h.workspace_id = r.workspace_id
 WHERE r.task_id = @task AND r.workspace_id = @workspace AND r.ordinal = 0`

// Change implements write.ChangeStore.
func (db *DB) Change(ctx context.Context, c write.Changing) (write.Changed, *task.Hint, error) {
	lane, err := db.laneOfRecord(ctx, c.WorkspaceID, c.Change.ID)
	if err != nil {
		return write.Changed{}, nil, err
	}
	var changed write.Changed
	complete := false
	err = db.inKeyTx(ctx, c.WorkspaceID, db.lockTimeout, func(ctx context.Context, tx *Tx) error {
		changed = write.Changed{EventID: c.TaskID}
		holder, err := tx.claimKey(ctx, c.WorkspaceID, c.TaskID, c.Claim, false)
		switch {
		case err != nil:
			return err
		case holder != nil:
			changed.EventID, changed.Replayed = *holder, true
			return tx.readChanged(ctx, c.WorkspaceID, &changed)
		case lane == nil:
			return fault.New(fault.MemoryNotFound)
		}
		complete, err = tx.change(ctx, c, *lane, &changed)
		return err
	})
	failpoint.Hit("change.committed")
	if errors.Is(err, errInsufficient) {
		err = db.insufficient(ctx, c.WorkspaceID, c.Price)
	}
	if err != nil {
		return write.Changed{}, nil, err
	}
	if changed.Replayed || complete {
		return changed, nil, nil
	}
	return changed, &task.Hint{TaskID: c.TaskID, WorkspaceID: c.WorkspaceID, Seq: 1, Priority: task.Bulk}, nil
}

// laneOfRecord answers the lane of a record of the workspace, ended or not, nil for an unknown one.
func (db *DB) laneOfRecord(ctx context.Context, workspace, id uuid.UUID) (*memory.Lane, error) {
	var found *memory.Lane
	err := db.read(ctx, of(workspace), "lane of record", laneOfRecordSQL, pgx.NamedArgs{"id": id, "workspace": workspace},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var stored []byte
				if err := rows.Scan(&stored); err != nil {
					return err
				}
				lane := memory.Lane{}
				copy(lane[:], stored)
				found = &lane
			}
			return nil
		})
	return found, err
}

// change commits the change and tells whether the task ended with it: with its vector made already, kept, or not
// needed any more.
func (tx *Tx) change(ctx context.Context, c write.Changing, lane memory.Lane, changed *write.Changed) (bool, error) {
	now := tx.db.now()
	found := map[uuid.UUID]target{}
	b := &batch{}
	b.exec("take lane", takeLaneSQL, pgx.NamedArgs{"workspace": c.WorkspaceID, "lane": lane[:], "now": now}, nil)
	addLockTargets(b, c.WorkspaceID, []uuid.UUID{c.Change.ID}, now, found)
	if err := tx.send(ctx, b); err != nil {
		return false, err
	}
	was, live := found[c.Change.ID]
	switch {
	case !live:
		return false, fault.New(fault.MemoryNotFound)
	case c.Change.Version != nil && *c.Change.Version != was.version:
		return false, fault.New(fault.VersionConflict)
	}
	complete := c.Change.Delete || c.Embedded || c.Change.Content == nil && was.projected
	changed.Version, changed.Result = was.version+1, memory.Result{RecordID: c.Change.ID, Change: memory.Updated, Text: &was.text}
	kind := task.Update
	switch {
	case c.Change.Delete:
		kind, changed.Result.Change, changed.Result.Text = task.Delete, memory.Deleted, nil
	case c.Change.Content != nil:
		changed.Result.Text = c.Change.Content
	}
	b = &batch{}
	b.exec("insert changed", insertChangedSQL, pgx.NamedArgs{
		"task": c.TaskID, "workspace": c.WorkspaceID, "kind": string(kind), "lane": lane[:], "complete": complete,
		"record": c.Change.ID, "key_hash": c.Claim.KeyHash[:], "price": c.Price, "now": now,
		"trace": task.OriginOf(ctx).Bytes(),
	}, nil)
	addEdits(b, editor{c.TaskID, c.WorkspaceID, lane, nil}, []edit{{c.Change, 0}}, now)
	addResults(b, c.TaskID, c.WorkspaceID, []memory.Result{changed.Result})
	if c.Embedded {
		addVectors(b, c.WorkspaceID, c.VectorModel, []worker.Projection{
			{RecordID: c.Change.ID, Version: changed.Version, Vector: c.Vector},
		}, now)
	}
	addPayment(b, write.Written{WorkspaceID: c.WorkspaceID, Price: c.Price, BornComplete: complete})
	if err := tx.send(ctx, b); err != nil {
		return false, err
	}
	failpoint.Hit("change.in_tx")
	return complete, nil
}

func (tx *Tx) readChanged(ctx context.Context, workspace uuid.UUID, changed *write.Changed) error {
	b := &batch{}
	b.query("read changed", changedSQL, pgx.NamedArgs{"task": changed.EventID, "workspace": workspace},
		func(rows pgx.Rows) error {
			if !rows.Next() {
				return errRetired
			}
			return rows.Scan(&changed.Result.RecordID, &changed.Result.Change, &changed.Version, &changed.Result.Text)
		})
	return tx.send(ctx, b)
}
