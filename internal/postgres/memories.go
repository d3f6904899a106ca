package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// liveSQL says of the record m that readers may see it.
const liveSQL = `m.deleted_at IS NULL
   AND (m.expires_at IS NULL OR m.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())))`

// visibleSQL says of the record m that readers may see it who see expired ones too, or don't.
func visibleSQL(expired bool) string {
	if expired {
		return `m.deleted_at IS NULL`
	}
	return liveSQL
}

const recordColumnsSQL = `m.id, m.user_id, m.agent_id, m.run_id, m.app_id, m.text, m.type, m.role, m.metadata, m.event_date,
       m.version, m.valid_from, m.valid_to, m.created_at, m.updated_at, m.expires_at, m.superseded_by, m.item_id, m.categories`

const memorySQL = `
SELECT ` + recordColumnsSQL + `
  FROM memories m
 WHERE m.id = @id AND m.workspace_id = @workspace AND ` + liveSQL

// Memory answers a live record of the workspace, one that a later one superseded too, or a fault
// MEMORY_NOT_FOUND.
func (db *DB) Memory(ctx context.Context, workspace, id uuid.UUID) (memory.Record, error) {
	records, err := db.records(ctx, workspace, "read memory", memorySQL,
		pgx.NamedArgs{"id": id, "workspace": workspace, "now": db.now()})
	if err != nil {
		return memory.Record{}, err
	}
	if len(records) == 0 {
		return memory.Record{}, fault.New(fault.MemoryNotFound)
	}
	return records[0], nil
}

// memoriesSQL is completed by the scope's conditions, so that its plan can use the index of the narrowest field.
const memoriesSQL = `
SELECT ` + recordColumnsSQL + `
  FROM memories m
 WHERE m.workspace_id = @workspace AND m.valid_to IS NULL AND ` + liveSQL + `
   AND (m.created_at, m.id) < (coalesce(@after_at::timestamptz, 'infinity'),
                               coalesce(@after_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))`

const newestSQL = `
 ORDER BY m.created_at DESC, m.id DESC
 LIMIT @limit`

// Memories answers one page of the scope's current records, newest first.
func (db *DB) Memories(ctx context.Context, workspace uuid.UUID, query recall.MemoryQuery) (recall.MemoryPage, error) {
	args := pgx.NamedArgs{"workspace": workspace, "limit": query.Limit + 1, "now": db.now()}
	setAfter(args, query.After)
	records, err := db.records(ctx, workspace, "read memories", memoriesSQL+inScope(query.Scope, args)+newestSQL, args)
	if err != nil {
		return recall.MemoryPage{}, err
	}
	return memoryPage(records, query.Limit), nil
}

// memoryPage makes a page of records that were read with one more than its limit.
func memoryPage(records []memory.Record, limit int) recall.MemoryPage {
	if len(records) <= limit {
		return recall.MemoryPage{Records: records}
	}
	last := records[limit-1]
	return recall.MemoryPage{Records: records[:limit], Next: &recall.Place{At: last.CreatedAt, ID: last.ID}}
}

// inScope returns one condition on the record m for each field of the scope and sets their arguments. The text
// is made of constants only.
func inScope(scope memory.Scope, args pgx.NamedArgs) string {
	conditions := ""
	for _, field := range []struct{ name, condition, value string }{
		{"user_id", " AND m.user_id = @user_id", scope.UserID},
		{"agent_id", " AND m.agent_id = @agent_id", scope.AgentID},
		{"run_id", " AND m.run_id = @run_id", scope.RunID},
		{"app_id", " AND m.app_id = @app_id", scope.AppID},
	} {
		if field.value != "" {
			conditions += field.condition
			args[field.name] = field.value
		}
	}
	return conditions
}

func (db *DB) records(ctx context.Context, workspace uuid.UUID, name, sql string, args pgx.NamedArgs) ([]memory.Record, error) {
	var records []memory.Record
	err := db.read(ctx, of(workspace), name, sql, args, func(rows pgx.Rows) (err error) {
		records, err = pgx.CollectRows(rows, scanRecord)
		return err
	})
	return records, err
}

func scanRecord(row pgx.CollectableRow) (memory.Record, error) { return scanRecordAnd(row) }

// scanRecordAnd reads a record, and what further columns have into more.
func scanRecordAnd(row pgx.CollectableRow, more ...any) (memory.Record, error) {
	var r memory.Record
	var user, agent, run, app, kind, role, item *string
	var metadata []byte // as bytes: what the caller sent comes back value for value
	err := row.Scan(append([]any{
		&r.ID, &user, &agent, &run, &app, &r.Text, &kind, &role, &metadata, &r.EventDate, &r.Version,
		&r.ValidFrom, &r.ValidTo, &r.CreatedAt, &r.UpdatedAt, &r.ExpiresAt, &r.SupersededBy, &item, &r.Categories,
	}, more...)...)
	if err != nil {
		return memory.Record{}, err
	}
	r.Scope = memory.Scope{UserID: orEmpty(user), AgentID: orEmpty(agent), RunID: orEmpty(run), AppID: orEmpty(app)}
	r.Type, r.Role, r.Metadata = memory.FactType(orEmpty(kind)), orEmpty(role), metadata
	r.ItemID = orEmpty(item)
	r.ValidFrom, r.CreatedAt, r.UpdatedAt = r.ValidFrom.UTC(), r.CreatedAt.UTC(), r.UpdatedAt.UTC()
	inUTC(r.EventDate, r.ValidTo, r.ExpiresAt)
	return r, nil
}

// inUTC moves times to UTC, whatever zone the process runs in.
func inUTC(times ...*time.Time) {
	for _, at := range times {
		if at != nil {
			*at = at.UTC()
		}
	}
}
