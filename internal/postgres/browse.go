package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const keptSQL = `
SELECT ` + recordColumnsSQL + `,
       coalesce(m.expires_at <= (SELECT coalesce(@now::timestamptz, clock_timestamp())), false), m.deleted_at IS NOT NULL
  FROM memories m
 WHERE m.id = @id AND m.workspace_id = @workspace`

// KeptMemory implements recall.BrowseStore.
func (db *DB) KeptMemory(ctx context.Context, workspace, id uuid.UUID) (recall.Kept, error) {
	var found []recall.Kept
	err := db.read(ctx, of(workspace), "read kept memory", keptSQL, pgx.NamedArgs{"id": id, "workspace": workspace, "now": db.now()},
		func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (kept recall.Kept, err error) {
				kept.Record, err = scanRecordAnd(row, &kept.Expired, &kept.Deleted)
				return kept, err
			})
			return err
		})
	if err != nil {
		return recall.Kept{}, err
	}
	if len(found) == 0 {
		return recall.Kept{}, fault.New(fault.MemoryNotFound)
	}
	return found[0], nil
}

// browsedSQL selects the records that a list has, completed by the conditions of scope and filter.
const browsedSQL = `
  FROM memories m
 WHERE m.workspace_id = @workspace AND (m.valid_to IS NULL OR NOT @latest) AND `

const pageSQL = `
OFFSET @offset`

// BrowseMemories implements recall.BrowseStore. The end of the list tells its length; only a page before it is counted
// for.
func (db *DB) BrowseMemories(ctx context.Context, workspace uuid.UUID, query recall.BrowseQuery) (recall.Browsed, error) {
	args := pgx.NamedArgs{
		"workspace": workspace, "latest": query.LatestOnly, "now": db.now(), "limit": query.Size + 1, "offset": query.Offset(),
	}
	listed := browsedSQL + visibleSQL(query.Expired) + inScope(query.Scope, args) + inFilter(query.Filter, args)
	records, err := db.records(ctx, workspace, "browse memories", `SELECT `+recordColumnsSQL+listed+newestSQL+pageSQL, args)
	if err != nil {
		return recall.Browsed{}, err
	}
	found := recall.Browsed{Records: records, Total: int64(query.Offset() + len(records))}
	if len(records) > query.Size {
		found.Records = records[:query.Size]
	} else if len(records) > 0 || query.Page == 1 {
		return found, nil
	}
	found.Total, err = db.count(ctx, workspace, "count memories", `SELECT count(*)`+listed, args)
	return found, err
}

func (db *DB) count(ctx context.Context, workspace uuid.UUID, name, sql string, args pgx.NamedArgs) (n int64, err error) {
	err = db.read(ctx, of(workspace), name, sql, args, func(rows pgx.Rows) error {
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		return err
	})
	return n, err
}

// browseEntitiesSQL names every entity of the workspace, because a total is asked for. Types and ids are in the order
// of recall.EntityTypes.
const browseEntitiesSQL = `
WITH named AS MATERIALIZED (
  SELECT e.kind, e.id, count(*) AS memories, min(m.created_at) AS created_at, max(m.updated_at) AS updated_at
    FROM memories m
   CROSS JOIN LATERAL (VALUES ('agent', m.agent_id), ('app', m.app_id), ('run', m.run_id), ('user', m.user_id)) AS e (kind, id)
   WHERE m.workspace_id = @workspace AND m.valid_to IS NULL AND e.id IS NOT NULL AND ` + liveSQL + `
   GROUP BY e.kind, e.id),
page AS (
  SELECT n.kind, n.id, n.memories, n.created_at, n.updated_at FROM named n ORDER BY n.kind, n.id LIMIT @limit OFFSET @offset)
SELECT total.kind, total.entities, p.id, p.memories, p.created_at, p.updated_at
  FROM (SELECT n.kind, count(*) AS entities FROM named n GROUP BY n.kind) total
  LEFT JOIN page p ON p.kind = total.kind
 ORDER BY total.kind, p.id`

// BrowseEntities implements recall.BrowseStore.
func (db *DB) BrowseEntities(ctx context.Context, workspace uuid.UUID, page recall.PageQuery) (recall.BrowsedEntities, error) {
	found := recall.BrowsedEntities{Totals: map[recall.EntityType]int64{}}
	args := pgx.NamedArgs{"workspace": workspace, "now": db.now(), "limit": page.Size, "offset": page.Offset()}
	err := db.read(ctx, of(workspace), "browse entities", browseEntitiesSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var kind recall.EntityType
			var total int64
			var id *string // none of this type is on the page
			var memories *int64
			var created, updated *time.Time
			if err := rows.Scan(&kind, &total, &id, &memories, &created, &updated); err != nil {
				return err
			}
			found.Totals[kind] = total
			if id != nil {
				found.Entities = append(found.Entities, recall.Entity{
					Type: kind, ID: *id, Memories: *memories, CreatedAt: created.UTC(), UpdatedAt: updated.UTC(),
				})
			}
		}
		return nil
	})
	return found, err
}

// eventPlaceSQL finds the event before the page, so that the page itself is read like any other.
const eventPlaceSQL = `
SELECT t.accepted_at, t.id
  FROM all_tasks t
 WHERE t.workspace_id = @workspace AND t.kind = ANY(@kinds::text[])
 ORDER BY t.accepted_at DESC, t.id DESC
 LIMIT 1 OFFSET @offset`

const countEventsSQL = `
SELECT count(*) FROM all_tasks t WHERE t.workspace_id = @workspace AND t.kind = ANY(@kinds::text[])`

// BrowseEvents implements recall.EventBrowseStore.
func (r *EventReader) BrowseEvents(ctx context.Context, workspace uuid.UUID, kinds []task.Kind, page recall.PageQuery) (recall.BrowsedEvents, error) {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	args := pgx.NamedArgs{"workspace": workspace, "kinds": names, "offset": page.Offset() - 1}
	var found recall.BrowsedEvents
	var err error
	if found.Total, err = r.db.count(ctx, workspace, "count events", countEventsSQL, args); err != nil || int64(page.Offset()) >= found.Total {
		return found, err
	}
	query := recall.EventQuery{Kinds: kinds, Limit: page.Size}
	if page.Page > 1 {
		err = r.db.read(ctx, of(workspace), "find event page", eventPlaceSQL, args, func(rows pgx.Rows) error {
			place, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[recall.Place])
			query.After = &place
			return err
		})
		if err != nil {
			return recall.BrowsedEvents{}, err
		}
	}
	listed, err := r.Events(ctx, workspace, query)
	found.Events = listed.Events
	return found, err
}
