package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// itemColumnsSQL lists what readers see of the item i. It has landed when the task of its latest revision has
// committed: a worker never writes an item. An imported one says so itself.
const itemColumnsSQL = `i.item_key, i.item_id, i.event_id, i.text, i.author, i.session, i.at, i.revision,
       i.landed_revision >= i.revision
         OR EXISTS (SELECT FROM all_tasks t WHERE t.id = i.task_id AND t.workspace_id = i.workspace_id AND t.stage <> 'accepted'),
       i.created_at`

const itemsSQL = `
SELECT ` + itemColumnsSQL + `
  FROM items i
 WHERE i.workspace_id = @workspace AND i.account = @account AND (@session = '' OR i.session = @session)
   AND (@after_key::bytea IS NULL OR (i.at, i.created_at, i.item_key) > (@after_at::timestamptz, @after_created::timestamptz, @after_key::bytea))
 ORDER BY i.at, i.created_at, i.item_key
 LIMIT @limit`

// Items implements recall.ItemStore.
func (db *DB) Items(ctx context.Context, workspace uuid.UUID, query recall.ItemQuery) ([]recall.Item, error) {
	args := pgx.NamedArgs{
		"workspace": workspace, "account": query.Account, "session": query.Session, "limit": query.Limit,
		"after_at": nil, "after_created": nil, "after_key": nil,
	}
	if query.After != nil {
		args["after_at"], args["after_created"], args["after_key"] = query.After.At, query.After.Created, query.After.Key[:]
	}
	return db.readItems(ctx, workspace, "read items", itemsSQL, args)
}

const itemsByKeySQL = `
SELECT ` + itemColumnsSQL + ` FROM items i WHERE i.workspace_id = @workspace AND i.item_key = ANY(@keys::bytea[])`

// ItemsByKey implements recall.ItemStore.
func (db *DB) ItemsByKey(ctx context.Context, workspace uuid.UUID, keys []command.ItemKey) ([]recall.Item, error) {
	stored := make([][]byte, len(keys))
	for i, key := range keys {
		stored[i] = key[:]
	}
	return db.readItems(ctx, workspace, "read items by key", itemsByKeySQL, pgx.NamedArgs{"workspace": workspace, "keys": stored})
}

func (db *DB) readItems(ctx context.Context, workspace uuid.UUID, name, sql string, args pgx.NamedArgs) ([]recall.Item, error) {
	var items []recall.Item
	err := db.read(ctx, of(workspace), name, sql, args, func(rows pgx.Rows) (err error) {
		items, err = pgx.CollectRows(rows, scanItem)
		return err
	})
	return items, err
}

func scanItem(row pgx.CollectableRow) (recall.Item, error) {
	var i recall.Item
	var key []byte
	err := row.Scan(&key, &i.ID, &i.EventID, &i.Text, &i.Author, &i.Session, &i.At, &i.Revision, &i.Landed, &i.Created)
	if err != nil {
		return recall.Item{}, err
	}
	i.Key, i.At, i.Created = command.ItemKey(key), i.At.UTC(), i.Created.UTC()
	return i, nil
}

const taskOfItemSQL = `
SELECT task_id FROM items WHERE workspace_id = @workspace AND event_id = @event ORDER BY updated_at DESC LIMIT 1`

// TaskOfItem implements recall.ItemStore.
func (db *DB) TaskOfItem(ctx context.Context, workspace uuid.UUID, eventID string) (uuid.UUID, error) {
	found := uuid.Nil
	err := db.read(ctx, of(workspace), "task of item", taskOfItemSQL, pgx.NamedArgs{"workspace": workspace, "event": eventID},
		func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&found); err != nil {
					return err
				}
			}
			return nil
		})
	if err == nil && found == uuid.Nil {
		return uuid.Nil, fault.New(fault.EventNotFound)
	}
	return found, err
}
