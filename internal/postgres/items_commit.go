package postgres

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// lockItemLanesSQL takes the lanes of an item's task and of the records that it replaces, in their order: an edit may
// have moved the item to another session. Only this task can add records of the item now, so that no lane is missed.
const lockItemLanesSQL = `
SELECT 1 FROM lanes
 WHERE workspace_id = @workspace
   AND lane IN (SELECT @lane::bytea
                UNION SELECT m.lane FROM memories m
                       WHERE m.workspace_id = @workspace AND m.item_key = @item_key AND m.deleted_at IS NULL)
 ORDER BY lane
   FOR UPDATE`

// addCommitLanes locks the lanes whose records a commit changes. A worker never locks an item.
func addCommitLanes(b *batch, l worker.Lease) {
	if l.ItemKey == nil {
		addLockLane(b, l.WorkspaceID, l.Lane)
		return
	}
	b.exec("lock item lanes", lockItemLanesSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "lane": l.Lane[:], "item_key": l.ItemKey,
	}, nil)
}

// lockChangedSQL locks every record that an item's commit may end, in one order: what it supersedes and what it replaces.
const lockChangedSQL = `
SELECT 1 FROM memories
 WHERE workspace_id = @workspace AND (id = ANY(@targets::uuid[]) OR item_key = @item_key AND deleted_at IS NULL)
 ORDER BY id
   FOR UPDATE`

// addLockChanged comes before the statements that read those records.
func addLockChanged(b *batch, l worker.Lease, plan memory.Plan) {
	if l.ItemKey == nil {
		return
	}
	b.exec("lock changed records", lockChangedSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "targets": targetsOf(plan), "item_key": l.ItemKey,
	}, nil)
}

// itemRecordsSQL locks, in id order, what earlier revisions of the item have left.
const itemRecordsSQL = `
SELECT id FROM memories
 WHERE workspace_id = @workspace AND item_key = @item_key AND deleted_at IS NULL
 ORDER BY id
   FOR UPDATE`

// addItemRecords finds the records that the commit replaces. None of them is superseded by the commit as well.
func addItemRecords(b *batch, l worker.Lease, seen *seenRecords) {
	if l.ItemKey == nil {
		return
	}
	b.query("item records", itemRecordsSQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "item_key": l.ItemKey},
		func(rows pgx.Rows) (err error) {
			if seen.replaced, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
				return err
			}
			gone := make(map[uuid.UUID]bool, len(seen.replaced))
			for _, id := range seen.replaced {
				gone[id] = true
			}
			for t := range seen.targets {
				if gone[t.ID] {
					delete(seen.targets, t)
				}
			}
			return nil
		})
}

// replacedFrom is where the ordinals of replaced records begin: beyond those of every plan.
const replacedFrom = 1_000_000

// ofItemSQL marks new records as the item's. Its id is read without a lock: it never changes, and who forgets the item
// ends this task first.
const ofItemSQL = `
UPDATE memories AS m SET item_key = @item_key, item_id = i.item_id
  FROM items i
 WHERE m.workspace_id = @workspace AND m.id = ANY(@ids::uuid[])
   AND i.workspace_id = m.workspace_id AND i.item_key = @item_key`

// replacedResults tells what the commit of an item does to the records of its earlier revisions.
func replacedResults(l worker.Lease, replaced []uuid.UUID) []memory.Result {
	if l.ItemKey == nil {
		return nil
	}
	results := make([]memory.Result, len(replaced))
	for i, id := range replaced {
		results[i] = memory.Result{Ordinal: replacedFrom + i, RecordID: id, Change: memory.Deleted}
	}
	return results
}

// addReplaceItem ends the records of the item's earlier revisions and marks the new ones as the item's.
func addReplaceItem(b *batch, l worker.Lease, replaced []uuid.UUID, added []planned, now *time.Time) {
	if l.ItemKey == nil {
		return
	}
	edits := make([]edit, len(replaced))
	for i, id := range replaced {
		edits[i] = edit{command.Change{ID: id, Delete: true}, replacedFrom + i}
	}
	addEdits(b, editor{l.TaskID, l.WorkspaceID, l.Lane, &l.AcceptedAt}, edits, now)
	addOfItem(b, l.WorkspaceID, l.ItemKey, added)
}

func addOfItem(b *batch, workspace uuid.UUID, itemKey []byte, added []planned) {
	if len(added) == 0 {
		return
	}
	ids := make([]uuid.UUID, len(added))
	for i, r := range added {
		ids[i] = r.ID
	}
	b.exec("of item", ofItemSQL, pgx.NamedArgs{"workspace": workspace, "item_key": itemKey, "ids": ids}, nil)
}
