package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// entitiesSQL groups the current records of one scope column, which it is completed with. The column's index brings
// them in order, so that a page reads no more than its own records.
const entitiesSQL = `
SELECT m.%[1]s, count(*), min(m.created_at), max(m.updated_at)
  FROM memories m
 WHERE m.workspace_id = @workspace AND m.%[1]s IS NOT NULL AND m.valid_to IS NULL AND ` + liveSQL + `
   AND %[2]s
 GROUP BY m.%[1]s
 ORDER BY m.%[1]s
 LIMIT @limit`

// scopeColumn names the column of a type; false for an unknown type.
func scopeColumn(kind recall.EntityType) (string, bool) {
	switch kind {
	case recall.User:
		return "user_id", true
	case recall.Agent:
		return "agent_id", true
	case recall.Run:
		return "run_id", true
	case recall.App:
		return "app_id", true
	}
	return "", false
}

func entitiesStatement(column, condition string) string {
	return fmt.Sprintf(entitiesSQL, column, fmt.Sprintf(condition, column))
}

// entitiesOf reads entities of one type that fit the condition on their id, which is a constant of this file.
func (db *DB) entitiesOf(ctx context.Context, workspace uuid.UUID, kind recall.EntityType, condition string, args pgx.NamedArgs) ([]recall.Entity, error) {
	column, known := scopeColumn(kind)
	if !known {
		return nil, fault.New(fault.MemoryNotFound)
	}
	sql := entitiesStatement(column, condition)
	var entities []recall.Entity
	err := db.read(ctx, of(workspace), "read entities", sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			e := recall.Entity{Type: kind}
			if err := rows.Scan(&e.ID, &e.Memories, &e.CreatedAt, &e.UpdatedAt); err != nil {
				return err
			}
			e.CreatedAt, e.UpdatedAt = e.CreatedAt.UTC(), e.UpdatedAt.UTC()
			entities = append(entities, e)
		}
		return nil
	})
	return entities, err
}

const (
	entityIs    = `m.%s = @id`
	entityAfter = `m.%s > @after`
	entityAny   = `m.%s > ''` // no id is empty
)

// Entities implements recall.EntityStore: type after type, until the page is full.
func (db *DB) Entities(ctx context.Context, workspace uuid.UUID, query recall.EntityQuery) (recall.EntityPage, error) {
	var page recall.EntityPage
	begun := query.After == nil
	for _, kind := range recall.EntityTypes() {
		if query.Type != "" && kind != query.Type || len(page.Entities) > query.Limit {
			continue
		}
		condition, after := entityAny, ""
		if !begun {
			if begun = kind == query.After.Type; !begun {
				continue
			}
			condition, after = entityAfter, query.After.ID
		}
		more, err := db.entitiesOf(ctx, workspace, kind, condition, pgx.NamedArgs{
			"workspace": workspace, "after": after, "limit": query.Limit + 1 - len(page.Entities), "now": db.now(),
		})
		if err != nil {
			return recall.EntityPage{}, err
		}
		page.Entities = append(page.Entities, more...)
	}
	if len(page.Entities) > query.Limit {
		page.Entities = page.Entities[:query.Limit]
		last := page.Entities[query.Limit-1]
		page.Next = &recall.EntityPlace{Type: last.Type, ID: last.ID}
	}
	return page, nil
}

// Entity implements recall.EntityStore.
func (db *DB) Entity(ctx context.Context, workspace uuid.UUID, kind recall.EntityType, id string) (recall.Entity, error) {
	found, err := db.entitiesOf(ctx, workspace, kind, entityIs, pgx.NamedArgs{"workspace": workspace, "id": id, "limit": 1, "now": db.now()})
	if err != nil {
		return recall.Entity{}, err
	}
	if len(found) == 0 {
		return recall.Entity{}, fault.New(fault.MemoryNotFound)
	}
	return found[0], nil
}
