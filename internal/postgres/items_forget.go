package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// forgetKeysSQL reads which items come next, without a lock.
const forgetKeysSQL = `
SELECT item_key FROM items
 WHERE workspace_id = @workspace AND account = @account AND (@session = '' OR session = @session)
 ORDER BY session, at, item_key
 LIMIT @limit`

// lockForgottenSQL locks items in key order, as every other transaction does.
const lockForgottenSQL = `
SELECT item_key, task_id FROM items
 WHERE workspace_id = @workspace AND account = @account AND item_key = ANY(@keys::bytea[])
   AND (@session = '' OR session = @session)
 ORDER BY item_key
   FOR UPDATE`

// itemTracesSQL reads, under the items' locks, which tasks and lanes hold anything of them.
const itemTracesSQL = `
SELECT i.task_id, t.lane FROM items i JOIN tasks t ON t.id = i.task_id AND t.workspace_id = i.workspace_id
 WHERE i.workspace_id = @workspace AND i.item_key = ANY(@keys::bytea[])
UNION
SELECT m.task_id, m.lane FROM memories m
 WHERE m.workspace_id = @workspace AND m.item_key = ANY(@keys::bytea[])`

// emptyTasksSQL takes what is left of the input from tasks that have committed but not ended.
const emptyTasksSQL = `
UPDATE tasks SET command = NULL
 WHERE workspace_id = @workspace AND id = ANY(@tasks::uuid[]) AND stage = 'committed' AND command IS NOT NULL`

const emptyPlansSQL = `
UPDATE plans SET body = NULL
 WHERE workspace_id = @workspace AND task_id = ANY(@tasks::uuid[]) AND body IS NOT NULL`

// forgetRecordsSQL removes the records of items, ended ones too.
const forgetRecordsSQL = `
WITH old AS (
  SELECT id FROM memories WHERE workspace_id = @workspace AND item_key = ANY(@keys::bytea[]) ORDER BY id FOR UPDATE
)
DELETE FROM memories AS m USING old WHERE m.id = old.id RETURNING m.id`

// forgetHistorySQL leaves that there was a record, and what became of it, without any text.
const forgetHistorySQL = `
UPDATE memory_history SET old_text = NULL, new_text = NULL
 WHERE workspace_id = @workspace AND memory_id = ANY(@ids::uuid[]) AND (old_text IS NOT NULL OR new_text IS NOT NULL)`

const forgetItemsSQL = `DELETE FROM items WHERE workspace_id = @workspace AND item_key = ANY(@keys::bytea[])`

// ForgetItems implements write.ItemStore: one piece is one transaction.
func (db *DB) ForgetItems(ctx context.Context, ask write.ForgetAsk) (write.Forgot, error) {
	keys := make([][]byte, len(ask.Keys))
	for i, key := range ask.Keys {
		keys[i] = key[:]
	}
	if len(keys) == 0 {
		err := db.read(ctx, of(ask.WorkspaceID), "items to forget", forgetKeysSQL, pgx.NamedArgs{
			"workspace": ask.WorkspaceID, "account": ask.Account, "session": ask.Session, "limit": ask.Limit,
		}, func(rows pgx.Rows) (err error) {
			keys, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
			return err
		})
		if err != nil || len(keys) == 0 {
			return write.Forgot{}, err
		}
	}
	var forgot write.Forgot
	err := db.InTx(ctx, ask.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		forgot = write.Forgot{More: len(ask.Keys) == 0 && len(keys) == ask.Limit, Keys: make([]command.ItemKey, len(keys))}
		for i, key := range keys {
			forgot.Keys[i] = command.ItemKey(key)
		}
		return tx.forget(ctx, ask, keys, &forgot)
	})
	failpoint.Hit("forget.committed")
	if err != nil && !errors.Is(err, fault.ErrCommitUnknown) {
		return write.Forgot{}, err
	}
	return forgot, err
}

// forget erases the items in the order items, lanes, tasks, records, what is derived from them, account.
func (tx *Tx) forget(ctx context.Context, ask write.ForgetAsk, keys [][]byte, forgot *write.Forgot) error {
	now := tx.db.now()
	var held [][]byte
	var first uuid.UUID
	b := &batch{}
	b.query("lock items", lockForgottenSQL, pgx.NamedArgs{
		"workspace": ask.WorkspaceID, "account": ask.Account, "keys": keys, "session": ask.Session,
	}, func(rows pgx.Rows) (err error) {
		held, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (key []byte, err error) {
			event := &uuid.UUID{}
			if first == uuid.Nil {
				event = &first
			}
			return key, row.Scan(&key, event)
		})
		return err
	})
	if err := tx.send(ctx, b); err != nil || len(held) == 0 {
		return err
	}
	traces, err := tx.itemTraces(ctx, ask.WorkspaceID, held)
	if err != nil {
		return err
	}
	var records []uuid.UUID
	b = &batch{}
	addTakeLanes(b, ask.WorkspaceID, traces.lanes, now)
	addEndTasks(b, ask.WorkspaceID, traces.tasks, now, func(id uuid.UUID) { forgot.Ended = append(forgot.Ended, id) })
	b.exec("empty tasks", emptyTasksSQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "tasks": traces.tasks}, nil)
	b.exec("empty plans", emptyPlansSQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "tasks": traces.tasks}, nil)
	addNextHeads(b, ask.WorkspaceID, traces.lanes, now, func(h task.Hint) { forgot.Hints = append(forgot.Hints, h) })
	b.query("forget records", forgetRecordsSQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "keys": held},
		func(rows pgx.Rows) (err error) {
			records, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	failpoint.Hit("forget.in_tx")
	b = &batch{} // a statement of its own each, so that it sees what was derived while the records were waited for
	b.exec("forget history", forgetHistorySQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "ids": records}, nil)
	b.exec("drop projections", dropProjectionsSQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "ids": records}, nil)
	b.exec("forget items", forgetItemsSQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "keys": held}, nil)
	// The event of the first item tells this piece from others on the same occasion; an item's name is the caller's text.
	addAct(ctx, b, now, act{ask.WorkspaceID, operator.ForgetItems, eventSubject(first), map[string]any{
		"items": len(held), "cancelled": len(forgot.Ended),
	}})
	addReleased(b, ask.WorkspaceID, traces.tasks)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	forgot.Items, forgot.Cancelled = len(held), len(forgot.Ended)
	return nil
}

// itemTraces is where something of items may be.
type itemTraces struct {
	tasks []uuid.UUID
	lanes map[memory.Lane]int64
}

func (tx *Tx) itemTraces(ctx context.Context, workspace uuid.UUID, keys [][]byte) (itemTraces, error) {
	traces := itemTraces{tasks: []uuid.UUID{}, lanes: map[memory.Lane]int64{}}
	b := &batch{}
	b.query("traces of items", itemTracesSQL, pgx.NamedArgs{"workspace": workspace, "keys": keys}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var lane []byte
			if err := rows.Scan(&id, &lane); err != nil {
				return err
			}
			traces.tasks = append(traces.tasks, id)
			if len(lane) == len(memory.Lane{}) {
				traces.lanes[memory.Lane(lane)] = 0
			}
		}
		return nil
	})
	return traces, tx.send(ctx, b)
}
