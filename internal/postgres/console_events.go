package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/recall"
)

// foundLook is how many events are looked at for a scope, which no index holds: some ten milliseconds' worth. A page that
// ends there is continued from there.
const foundLook = 5_000

// lookedSQL is the part of eventsSQL that walks, with a time.
const lookedSQL = `
  SELECT top.* FROM unnest(@kinds::text[]) AS wanted (kind)%[1]s
   CROSS JOIN LATERAL (
         SELECT t.*, ` + eventStatusSQL + ` AS event_status
           FROM all_tasks t
          WHERE t.workspace_id = @workspace AND t.kind = wanted.kind
            AND (t.accepted_at, t.id) < (coalesce(@after_at::timestamptz, 'infinity'),
                                         coalesce(@after_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
            AND t.accepted_at > CASE WHEN @within::float8 > 0
                                     THEN (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @within)
                                     ELSE '-infinity'::timestamptz END
            AND (@status::text = '' OR ` + eventStatusSQL + ` = @status)%[2]s
          ORDER BY t.accepted_at DESC, t.id DESC
          LIMIT @look) top
   ORDER BY top.accepted_at DESC, top.id DESC
   LIMIT @look`

// foundEventsSQL picks from what was looked at. What an erase has gone over has no scope any more.
const foundEventsSQL = `
WITH looked AS MATERIALIZED (` + lookedSQL + `
), page AS MATERIALIZED (
  SELECT * FROM looked l
   WHERE CASE @by::text WHEN '' THEN true
                        WHEN 'user' THEN l.user_id = @value AND NOT l.erased WHEN 'agent' THEN l.agent_id = @value AND NOT l.erased
                        WHEN 'run' THEN l.run_id = @value AND NOT l.erased WHEN 'app' THEN l.app_id = @value AND NOT l.erased
                        ELSE false END
   ORDER BY l.accepted_at DESC, l.id DESC
   LIMIT @limit)
SELECT t.event_status,` + eventColumnsSQL + `
  FROM page t` + eventJoinsSQL + `
 ORDER BY t.accepted_at DESC, t.id DESC`

// lookedLastSQL is where looking ended, no row if it came to the end.
const lookedLastSQL = `
SELECT l.accepted_at, l.id FROM (` + lookedSQL + `) l ORDER BY l.accepted_at DESC, l.id DESC OFFSET @look - 1 LIMIT 1`

// FoundEvents answers one page of the workspace's events that the filter selects, newest first. A page may be short, or
// empty, and have a next one: so much was looked at.
func (r *EventReader) FoundEvents(ctx context.Context, workspace uuid.UUID, filter recall.EventFilter) (recall.EventPage, error) {
	kinds := make([]string, len(filter.Kinds))
	for i, kind := range filter.Kinds {
		kinds[i] = string(kind)
	}
	args := pgx.NamedArgs{
		"workspace": workspace, "kinds": kinds, "status": string(filter.Status), "within": inSeconds(filter.Within),
		"by": string(filter.By), "value": filter.Value, "limit": filter.Limit + 1, "look": filter.Limit + 1, "now": r.db.now(),
	}
	if filter.By != "" {
		args["look"] = max(foundLook, filter.Limit+1)
	}
	setAfter(args, filter.After)
	var page recall.EventPage
	err := r.db.read(ctx, of(workspace), "find events", ofStatus(foundEventsSQL, filter.Status), args, func(rows pgx.Rows) (err error) {
		page.Events, err = pgx.CollectRows(rows, r.scan)
		return err
	})
	if err != nil {
		return recall.EventPage{}, err
	}
	if len(page.Events) > filter.Limit {
		page.Events = page.Events[:filter.Limit]
		last := page.Events[filter.Limit-1]
		page.Next = &recall.Place{At: last.AcceptedAt, ID: last.ID}
	} else if filter.By != "" {
		page.Next, err = r.lookedLast(ctx, workspace, ofStatus(lookedLastSQL, filter.Status), args)
	}
	return page, err
}

func (r *EventReader) lookedLast(ctx context.Context, workspace uuid.UUID, sql string, args pgx.NamedArgs) (*recall.Place, error) {
	var last *recall.Place
	err := r.db.read(ctx, of(workspace), "find end of look", sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			last = &recall.Place{}
			if err := rows.Scan(&last.At, &last.ID); err != nil {
				return err
			}
			last.At = last.At.UTC()
		}
		return nil
	})
	return last, err
}
