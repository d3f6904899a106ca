package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

const (
	// eraseTaskLimit and eraseRecordLimit bound a piece: tens of milliseconds under the lanes' locks, because another
	// erase that waits behind a piece holds up every write of the workspace.
	eraseTaskLimit   = 200
	eraseRecordLimit = 500
	// eraseWindow bounds the rows that one look reads where no index knows the scope: some twenty milliseconds, without
	// a lock.
	eraseWindow = 5_000
)

// taskWindowSQL looks through the next tasks of one kind in the order of the index that lists events, newest first.
// A scope has no index of its own on tasks: it would be written at every claim, commit and settle of every task to
// serve the rare erase, which can as well read what the retention leaves of the workspace's tasks once.
const taskWindowSQL = `
WITH w AS MATERIALIZED (
  SELECT m.id, m.accepted_at, m.lane, %[2]s AS hit
    FROM %[1]s m
   WHERE m.workspace_id = @workspace AND m.kind = @kind AND m.accepted_at <= @erased_at
     AND (m.accepted_at, m.id) < (coalesce(@at::timestamptz, 'infinity'),
                                  coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
   ORDER BY m.accepted_at DESC, m.id DESC
   LIMIT @window
), h AS (
  SELECT id, accepted_at, lane FROM w WHERE hit ORDER BY accepted_at DESC, id DESC LIMIT @limit
), last AS (
  SELECT id, accepted_at FROM w ORDER BY accepted_at, id LIMIT 1
)
SELECT id, accepted_at, lane, true AS hit FROM h
UNION ALL
SELECT id, accepted_at, NULL, false FROM last
 ORDER BY hit DESC, accepted_at DESC, id DESC`

// nextKindSQL finds the next kind of which there are tasks, also one that this build doesn't know.
const nextKindSQL = `
SELECT coalesce(min(kind), '') FROM %s WHERE workspace_id = @workspace AND kind > @kind`

// eraseKind is the kind that no erase covers but the deletion of the workspace.
const eraseKind = "scope_erase"

// hit is one covered row, or the last row that was looked at.
type hit struct {
	ID   uuid.UUID
	At   time.Time
	Lane []byte
	Hit  bool
}

// collect fills the piece with the hits of a window and answers the place behind the last row that is dealt with,
// false when nothing is known to be behind them.
func (p *erasePiece) collect(rows []hit, limit int, place erasePlace) (erasePlace, bool) {
	var end *hit
	for i := range rows {
		if !rows[i].Hit {
			end = &rows[i]
			continue
		}
		p.ids = append(p.ids, rows[i].ID)
		p.lanes = append(p.lanes, rows[i].Lane)
		if len(p.ids) == limit { // the rest of the window is looked at again
			end = &rows[i]
			break
		}
	}
	slices.SortFunc(p.lanes, bytes.Compare)
	p.lanes = slices.CompactFunc(p.lanes, bytes.Equal)
	if end == nil {
		return place, false
	}
	place.At, place.ID = end.At, end.ID
	return place, true
}

func (j EraseJob) hits(ctx context.Context, workspace uuid.UUID, name, sql string, args pgx.NamedArgs, place erasePlace) ([]hit, error) {
	args["at"], args["after"] = nil, nil
	if place.ID != uuid.Nil {
		args["at"], args["after"] = place.At, place.ID
	}
	var rows []hit
	err := j.db.read(ctx, of(workspace), name, sql, args, func(found pgx.Rows) error {
		var err error
		rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[hit])
		return err
	})
	return rows, err
}

func (j EraseJob) taskWindow(ctx context.Context, table string, l worker.Lease, place erasePlace, piece *erasePiece) (erasePlace, error) {
	if place.Kind == "" {
		return j.nextKind(ctx, table, l, place)
	}
	scope, args := eraseArgs(l, piece)
	scope = "NOT m.erased" + scope
	if deletes(l) {
		scope, args["task"] = everyTaskSQL, l.TaskID
	}
	args["kind"], args["window"], args["limit"] = place.Kind, eraseWindow, eraseTaskLimit
	rows, err := j.hits(ctx, l.WorkspaceID, "tasks to erase", fmt.Sprintf(taskWindowSQL, table, scope), args, place)
	if err != nil {
		return place, err
	}
	if to, more := piece.collect(rows, eraseTaskLimit, place); more {
		return to, nil
	}
	return j.nextKind(ctx, table, l, place)
}

// nextKind goes on to the next kind of task, or to the next phase behind the last one.
func (j EraseJob) nextKind(ctx context.Context, table string, l worker.Lease, place erasePlace) (erasePlace, error) {
	kind := place.Kind
	for {
		err := j.db.read(ctx, of(l.WorkspaceID), "next kind", fmt.Sprintf(nextKindSQL, table),
			pgx.NamedArgs{"workspace": l.WorkspaceID, "kind": kind}, one(&kind))
		switch {
		case err != nil:
			return place, err
		case kind == "":
			return place.next(), nil
		case kind != eraseKind || deletes(l):
			return erasePlace{Phase: place.Phase, Kind: kind}, nil
		}
	}
}

// currentRecordsSQL looks through the records of one field of the scope, in the order of its index, for those that the
// whole scope covers.
const currentRecordsSQL = `
WITH w AS MATERIALIZED (
  SELECT m.id, m.created_at, m.lane, m.accepted_at <= @erased_at%[2]s AS hit
    FROM memories m
   WHERE m.workspace_id = @workspace AND m.deleted_at IS NULL%[1]s
     AND (m.created_at, m.id) < (coalesce(@at::timestamptz, 'infinity'),
                                 coalesce(@after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
   ORDER BY m.created_at DESC, m.id DESC
   LIMIT @window
), h AS (
  SELECT id, created_at, lane FROM w WHERE hit ORDER BY created_at DESC, id DESC LIMIT @limit
), last AS (
  SELECT id, created_at FROM w ORDER BY created_at, id LIMIT 1
)
SELECT id, created_at, lane, true AS hit FROM h
UNION ALL
SELECT id, created_at, NULL, false FROM last
 ORDER BY hit DESC, created_at DESC, id DESC`

// currentRecords completes currentRecordsSQL for a scope: the field that is walked is the one that most likely names
// the fewest records.
func currentRecords(s memory.Scope, scope string) string {
	walked := memory.Scope{AppID: s.AppID}
	switch {
	case s.RunID != "":
		walked = memory.Scope{RunID: s.RunID}
	case s.UserID != "":
		walked = memory.Scope{UserID: s.UserID}
	case s.AgentID != "":
		walked = memory.Scope{AgentID: s.AgentID}
	}
	return fmt.Sprintf(currentRecordsSQL, inScope(walked, pgx.NamedArgs{}), scope)
}

// endedRecordsSQL looks through the tombstones of the workspace. They are few beside the records, and an index of
// their own for each field of a scope would cost more than it saves.
const endedRecordsSQL = `
WITH w AS MATERIALIZED (
  SELECT m.id, m.created_at, m.lane, m.accepted_at <= @erased_at%s AS hit
    FROM memories m
   WHERE m.workspace_id = @workspace AND m.deleted_at IS NOT NULL
     AND m.id > coalesce(@after::uuid, '00000000-0000-0000-0000-000000000000')
   ORDER BY m.id
   LIMIT @window
), h AS (
  SELECT id, created_at, lane FROM w WHERE hit ORDER BY id LIMIT @limit
), last AS (
  SELECT id, created_at FROM w ORDER BY id DESC LIMIT 1
)
SELECT id, created_at, lane, true AS hit FROM h
UNION ALL
SELECT id, created_at, NULL, false FROM last
 ORDER BY hit DESC, id`

func (j EraseJob) recordWindow(ctx context.Context, l worker.Lease, place erasePlace, piece *erasePiece) (erasePlace, error) {
	scope, args := eraseArgs(l, piece)
	args["window"], args["limit"] = eraseWindow, eraseRecordLimit
	sql := currentRecords(l.Scope, scope)
	switch {
	case place.Phase == phaseEnded:
		sql = fmt.Sprintf(endedRecordsSQL, scope)
	case deletes(l):
		sql = everyRecordSQL
	}
	rows, err := j.hits(ctx, l.WorkspaceID, "records to erase", sql, args, place)
	if err != nil {
		return place, err
	}
	if to, more := piece.collect(rows, eraseRecordLimit, place); more {
		return to, nil
	}
	return place.next(), nil // what was found, if anything, is the rest
}

// itemsToEraseSQL looks through the items in the order of their keys, and is completed by the conditions on account
// and session.
const itemsToEraseSQL = `
WITH w AS MATERIALIZED (
  SELECT i.item_key, true%s AS hit
    FROM items i
   WHERE i.workspace_id = @workspace AND i.item_key > @key
   ORDER BY i.item_key
   LIMIT @window
), h AS (
  SELECT item_key FROM w WHERE hit ORDER BY item_key LIMIT @limit
), last AS (
  SELECT item_key FROM w ORDER BY item_key DESC LIMIT 1
)
SELECT item_key, true AS hit FROM h
UNION ALL
SELECT item_key, false FROM last
 ORDER BY hit DESC, item_key`

// itemScope names the items that the scope covers: their account is the user, their session the run. A scope with an
// agent or an app covers none.
func itemScope(l worker.Lease, args pgx.NamedArgs) (string, bool) {
	if l.Scope.AgentID != "" || l.Scope.AppID != "" {
		return "", false
	}
	conditions := ""
	if l.Scope.UserID != "" {
		conditions += " AND i.account = @account"
		args["account"] = l.Scope.UserID
	}
	if l.Scope.RunID != "" {
		conditions += " AND i.session = @session"
		args["session"] = l.Scope.RunID
	}
	return conditions, true
}

func (j EraseJob) itemWindow(ctx context.Context, l worker.Lease, place erasePlace, piece *erasePiece) (erasePlace, error) {
	key := place.Key
	if key == nil {
		key = []byte{}
	}
	args := pgx.NamedArgs{"workspace": l.WorkspaceID, "key": key, "window": eraseWindow, "limit": eraseRecordLimit}
	scope, some := itemScope(l, args)
	if !some {
		return place.next(), nil
	}
	var last []byte
	err := j.db.read(ctx, of(l.WorkspaceID), "items to erase", fmt.Sprintf(itemsToEraseSQL, scope), args, func(rows pgx.Rows) error {
		piece.keys, last = nil, nil
		for rows.Next() {
			var found []byte
			var hit bool
			if err := rows.Scan(&found, &hit); err != nil {
				return err
			}
			if last = found; hit {
				piece.keys = append(piece.keys, found)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return place, err
	case last == nil:
		return place.next(), nil
	case len(piece.keys) == eraseRecordLimit: // the rest of the window is looked at again
		last = piece.keys[eraseRecordLimit-1]
	}
	return erasePlace{Phase: phaseItems, Key: last}, nil
}
