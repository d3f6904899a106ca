package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// insertEraseSQL writes an erase with its run and its fence, while no other transaction of the workspace is open. The
// fence is the erase's effect: from its commit on the erase can only succeed, so the task is born committed. It is
// not earlier than any command of the workspace, and takeLaneSQL keeps every later command behind it, so that the
// time alone tells what came before, whatever the clock does. Reading the newest command of each kind is one step
// into an index; the times of the covered lanes could be found only by looking at every task.
const insertEraseSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), fence AS (
  SELECT greatest(clock.at, (SELECT max(newest.accepted_at)
           FROM unnest(@kinds::text[]) AS known (kind)
          CROSS JOIN LATERAL (SELECT t.accepted_at FROM all_tasks t
                               WHERE t.workspace_id = @workspace AND t.kind = known.kind
                               ORDER BY t.accepted_at DESC, t.id DESC LIMIT 1) newest)) AS at
    FROM clock
), t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, agent_id, run_id, app_id,
                     lane, priority, payload_format, key_hash, trace, accepted_at, updated_at, committed_at)
  SELECT @task, @workspace, 'scope_erase', 'pending', 'committed', clock.at, clock.at, nullif(@user_id, ''),
         nullif(@agent_id, ''), nullif(@run_id, ''), nullif(@app_id, ''), @lane, 'bulk', 1, @key_hash, @trace, fence.at,
         clock.at, clock.at
    FROM clock, fence
  RETURNING id, workspace_id, user_id, agent_id, run_id, app_id, accepted_at, updated_at
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
  SELECT id, 1, workspace_id, 0, updated_at FROM t
), p AS (
  INSERT INTO plans (task_id, workspace_id, generation, body, created_at)
  SELECT id, workspace_id, 1, NULL, updated_at FROM t
)
INSERT INTO erasures (task_id, workspace_id, user_hash, agent_hash, run_hash, app_hash, erased_at)
SELECT t.id, t.workspace_id, ` + userHashSQL + `, ` + agentHashSQL + `,
       ` + runHashSQL + `, ` + appHashSQL + `, t.accepted_at
  FROM t`

const erasedSoFarSQL = `
SELECT t.status = 'succeeded', coalesce((t.counts ->> 'deleted')::bigint, 0),
       coalesce((t.counts ->> 'cancelled')::bigint, 0)
  FROM all_tasks t
 WHERE t.id = @task AND t.workspace_id = @workspace`

// BeginErase implements write.EraseStore.
func (db *DB) BeginErase(ctx context.Context, e write.Erasing) (write.Erased, *task.Hint, error) {
	var begun write.Erased
	var err error
	for range keyRuns { // the key that was found may be retired meanwhile
		err = db.InTxAlone(ctx, e.WorkspaceID, func(ctx context.Context, tx *Tx) error {
			begun = write.Erased{EventID: e.TaskID}
			holder, err := tx.claimKey(ctx, e.WorkspaceID, e.TaskID, e.Claim, false)
			if err != nil {
				return err
			}
			if holder != nil {
				begun.EventID, begun.Replayed = *holder, true
				b := &batch{}
				addErasedSoFar(b, e.WorkspaceID, &begun)
				return tx.send(ctx, b)
			}
			return tx.insertErase(ctx, e)
		})
		if !errors.Is(err, errRetired) {
			break
		}
	}
	failpoint.Hit("erase.committed")
	switch {
	case errors.Is(err, errRetired):
		return write.Erased{}, nil, fault.Wrap(fault.IdempotencyInProgress, err)
	case err != nil:
		return write.Erased{}, nil, err
	case begun.Replayed:
		return begun, nil, nil
	}
	return begun, &task.Hint{TaskID: e.TaskID, WorkspaceID: e.WorkspaceID, Seq: 1, Priority: task.Bulk}, nil
}

// dropMemoryExportsSQL removes what may name the scope. Who still wants an export of another one defines it again.
const dropMemoryExportsSQL = `DELETE FROM memory_exports WHERE workspace_id = @workspace`

func (tx *Tx) insertErase(ctx context.Context, e write.Erasing) error {
	lane := e.Scope.Lane()
	kinds := make([]string, 0, len(task.Kinds()))
	for _, kind := range task.Kinds() {
		kinds = append(kinds, string(kind))
	}
	b := &batch{}
	b.exec("drop memory exports", dropMemoryExportsSQL, pgx.NamedArgs{"workspace": e.WorkspaceID}, nil)
	b.exec("insert erase", insertEraseSQL, pgx.NamedArgs{
		"task": e.TaskID, "workspace": e.WorkspaceID, "kinds": kinds, "user_id": e.Scope.UserID, "agent_id": e.Scope.AgentID,
		"run_id": e.Scope.RunID, "app_id": e.Scope.AppID, "lane": lane[:], "key_hash": e.Claim.KeyHash[:], "now": tx.db.now(),
		"trace": task.OriginOf(ctx).Bytes(),
	}, nil)
	if !e.Scope.Empty() { // a deletion has a record of its own
		addAct(ctx, b, tx.db.now(), act{e.WorkspaceID, operator.Erase, eventSubject(e.TaskID), nil})
	}
	return tx.send(ctx, b)
}

func addErasedSoFar(b *batch, workspace uuid.UUID, erased *write.Erased) {
	b.query("erased so far", erasedSoFarSQL, pgx.NamedArgs{"task": erased.EventID, "workspace": workspace},
		func(rows pgx.Rows) error { return scanErased(rows, erased) })
}

func scanErased(rows pgx.Rows, erased *write.Erased) error {
	if !rows.Next() {
		return errRetired
	}
	return rows.Scan(&erased.Finished, &erased.Deleted, &erased.Cancelled)
}

// ErasedSoFar implements write.EraseStore.
func (db *DB) ErasedSoFar(ctx context.Context, workspace, event uuid.UUID) (write.Erased, error) {
	erased := write.Erased{EventID: event}
	err := db.read(ctx, of(workspace), "erased so far", erasedSoFarSQL, pgx.NamedArgs{"task": event, "workspace": workspace},
		func(rows pgx.Rows) error { return scanErased(rows, &erased) })
	if err != nil {
		return write.Erased{}, fmt.Errorf("read erase: %w", err)
	}
	return erased, nil
}
