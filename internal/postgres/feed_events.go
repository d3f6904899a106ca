package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// eventsByIDsSQL reads events by their ids as eventSQL reads one, wherever their tasks are kept.
const eventsByIDsSQL = `
SELECT ` + eventStatusSQL + `,` + eventColumnsSQL + `
  FROM unnest(@ids::uuid[]) AS wanted (id)
 CROSS JOIN LATERAL (SELECT * FROM all_tasks a WHERE a.id = wanted.id AND a.workspace_id = @workspace LIMIT 1) t` + eventJoinsSQL

// Feed implements recall.FeedStore.
func (r *EventReader) Feed(ctx context.Context, workspace uuid.UUID, after *task.FeedPlace, limit int) (task.FeedPage, error) {
	return r.db.Feed(ctx, workspace, after, limit)
}

// EventsByID implements recall.FeedStore.
func (r *EventReader) EventsByID(ctx context.Context, workspace uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]recall.Event, error) {
	found := make(map[uuid.UUID]recall.Event, len(ids))
	err := r.db.read(ctx, of(workspace), "read events by id", eventsByIDsSQL, pgx.NamedArgs{
		"workspace": workspace, "ids": ids, "now": r.db.now(),
	}, func(rows pgx.Rows) error {
		events, err := pgx.CollectRows(rows, r.scan)
		for _, event := range events {
			found[event.ID] = event
		}
		return err
	})
	return found, err
}
