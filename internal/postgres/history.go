package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// historySQL walks the index of one record's changes, oldest first.
const historySQL = `
SELECT h.id, h.memory_id, h.event, h.version, h.old_text, h.new_text, h.at, m.valid_to, m.superseded_by
  FROM memory_history h
  LEFT JOIN memories m ON h.event = 'INVALIDATE' AND m.id = h.memory_id AND m.workspace_id = h.workspace_id
 WHERE h.workspace_id = @workspace AND h.memory_id = @memory
   AND (h.version, h.id) > (@after_version::int, @after_id::uuid)
 ORDER BY h.version, h.id
 LIMIT @limit`

// History implements recall.MemoryStore. Every record has at least the change that made it, so that a record without
// history is none of the workspace.
func (db *DB) History(ctx context.Context, workspace uuid.UUID, query recall.HistoryQuery) (recall.History, error) {
	after := recall.HistoryPlace{}
	if query.After != nil {
		after = *query.After
	}
	var entries []memory.HistoryEntry
	err := db.read(ctx, of(workspace), "read history", historySQL, pgx.NamedArgs{
		"workspace": workspace, "memory": query.Memory, "after_version": after.Version, "after_id": after.ID,
		"limit": query.Limit + 1,
	}, func(rows pgx.Rows) (err error) {
		entries, err = pgx.CollectRows(rows, pgx.RowToStructByPos[memory.HistoryEntry])
		return err
	})
	if err != nil {
		return recall.History{}, err
	}
	if len(entries) == 0 && query.After == nil {
		return recall.History{}, fault.New(fault.MemoryNotFound)
	}
	history := recall.History{Entries: entries}
	if len(entries) > query.Limit {
		history.Entries = entries[:query.Limit]
		last := history.Entries[query.Limit-1]
		history.Next = &recall.HistoryPlace{Version: last.Version, ID: last.ID}
	}
	for i := range history.Entries {
		history.Entries[i].At = history.Entries[i].At.UTC()
		inUTC(history.Entries[i].ValidTo)
	}
	return history, nil
}
