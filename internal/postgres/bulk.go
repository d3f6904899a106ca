package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const bulkWorkspaceSQL = `
SELECT w.id, w.name, w.metered, w.suspended_at IS NOT NULL, w.fingerprint_key,
       coalesce(@now::timestamptz, clock_timestamp())
  FROM workspaces w
 WHERE w.id = @workspace AND w.deletion IS NULL`

// BulkWorkspace implements write.BulkStore.
func (db *DB) BulkWorkspace(ctx context.Context, workspace uuid.UUID) (access.Workspace, time.Time, error) {
	var w access.Workspace
	var now time.Time
	found := false
	err := db.read(ctx, of(workspace), "workspace of a bulk", bulkWorkspaceSQL, pgx.NamedArgs{"workspace": workspace, "now": db.now()},
		func(rows pgx.Rows) error {
			for rows.Next() {
				found = true
				if err := rows.Scan(&w.ID, &w.Name, &w.Metered, &w.Suspended, &w.FingerprintKey, &now); err != nil {
					return err
				}
			}
			return nil
		})
	if err == nil && !found {
		err = fault.New(fault.WorkspaceNotFound)
	}
	return w, now.UTC(), err
}

// bulkSQL looks at the next @look events of the workspace, oldest first, so that a lane's events keep their order: one
// range of an index for each kind. What is meant of them is chosen afterwards, so that a look has a bound. Oldest and
// newest are by acceptance, which never changes; the time that counts is when a failed event ended, or when an open
// one's run began.
const bulkSQL = `
WITH looked AS MATERIALIZED (
  SELECT top.* FROM unnest(@kinds::text[]) AS wanted (kind)
   CROSS JOIN LATERAL (
         SELECT t.id, t.kind, t.generation, t.error_class, t.error_code, t.user_id, t.agent_id, t.run_id, t.app_id,
                t.command IS NOT NULL AS input, t.accepted_at, t.completed_at
           FROM tasks t
          WHERE t.workspace_id = @workspace AND t.kind = wanted.kind AND %s
            AND (t.accepted_at, t.id) > (coalesce(@after_at::timestamptz, '-infinity'), coalesce(@after_id::uuid, @none))
          ORDER BY t.accepted_at, t.id
          LIMIT @look) top
   ORDER BY top.accepted_at, top.id
   LIMIT @look
), last AS (
  SELECT l.accepted_at, l.id FROM looked l ORDER BY l.accepted_at DESC, l.id DESC LIMIT 1
), meant AS (
  SELECT l.id, l.kind, coalesce(l.error_class, '') AS class, l.input, l.accepted_at, coalesce(r.amount, 0) AS amount
    FROM looked l
    LEFT JOIN task_runs r ON r.task_id = l.id AND r.generation = l.generation
   WHERE coalesce(l.completed_at, r.opened_at) >= @since
     AND coalesce(l.completed_at, r.opened_at) <= @until
     AND CASE WHEN @class = '' THEN coalesce(l.error_class, '') <> 'cancelled'
              ELSE coalesce(l.error_class = @class OR l.error_code = @public, false) END
     AND (@user = '' OR l.user_id = @user) AND (@agent = '' OR l.agent_id = @agent)
     AND (@run = '' OR l.run_id = @run) AND (@app = '' OR l.app_id = @app)
)
`

// countBulkSQL has the last event that was looked at in every row.
const countBulkSQL = bulkSQL + `
SELECT last.accepted_at, last.id, (SELECT count(*) FROM looked) = @look, coalesce(m.kind, ''), coalesce(m.class, ''),
       coalesce(m.input, false), coalesce(m.count, 0), coalesce(m.held, 0)
  FROM last LEFT JOIN (SELECT kind, class, input, count(*), sum(amount)::bigint AS held FROM meant GROUP BY kind, class, input) m ON true`

// CountBulk implements write.BulkStore.
func (db *DB) CountBulk(ctx context.Context, workspace uuid.UUID, choice write.BulkChoice, after *write.BulkPlace, look int) (write.BulkCounted, error) {
	var counted write.BulkCounted
	err := db.read(ctx, of(workspace), "count bulk", fmt.Sprintf(countBulkSQL, bulkStatusSQL(choice.Act)), bulkArgs(workspace, choice, after, look),
		func(rows pgx.Rows) error {
			for rows.Next() {
				var last write.BulkPlace
				var more bool
				var c write.BulkCount
				if err := rows.Scan(&last.At, &last.ID, &more, &c.Kind, &c.Class, &c.Input, &c.Count, &c.Held); err != nil {
					return err
				}
				if more {
					counted.Next = &last
				}
				if c.Count > 0 {
					counted.Counts = append(counted.Counts, c)
				}
			}
			return nil
		})
	return counted, err
}

const findBulkSQL = bulkSQL + `
SELECT last.accepted_at, last.id, (SELECT count(*) FROM looked) = @look, m.accepted_at, m.id
  FROM last LEFT JOIN (SELECT id, accepted_at FROM meant ORDER BY accepted_at, id LIMIT @limit) m ON true
 ORDER BY m.accepted_at, m.id`

// FindBulk implements write.BulkStore.
func (db *DB) FindBulk(ctx context.Context, workspace uuid.UUID, choice write.BulkChoice, after *write.BulkPlace, look, limit int) (write.BulkFound, error) {
	var found write.BulkFound
	args := bulkArgs(workspace, choice, after, look)
	args["limit"] = limit
	err := db.read(ctx, of(workspace), "find bulk", fmt.Sprintf(findBulkSQL, bulkStatusSQL(choice.Act)), args, func(rows pgx.Rows) error {
		for rows.Next() {
			var last write.BulkPlace
			var more bool
			var at *time.Time
			var id *uuid.UUID
			if err := rows.Scan(&last.At, &last.ID, &more, &at, &id); err != nil {
				return err
			}
			if more {
				found.Next = &last
			}
			if id != nil {
				found.Events = append(found.Events, write.BulkPlace{At: *at, ID: *id})
			}
		}
		return nil
	})
	if n := len(found.Events); n == limit { // there may be more behind the last one
		found.Next = &found.Events[n-1]
	}
	return found, err
}

// bulkStatusSQL is the part of the choice that an index knows.
func bulkStatusSQL(act write.BulkAct) string {
	if act == write.BulkCancel {
		return "t.completed_at IS NULL AND t.stage = 'accepted'"
	}
	return "t.status = 'failed'"
}

func bulkArgs(workspace uuid.UUID, choice write.BulkChoice, after *write.BulkPlace, look int) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"workspace": workspace, "kinds": kindNames(write.BulkKinds()), "none": uuid.Nil, "look": look, "since": choice.Since,
		"until": choice.Until, "class": choice.Class(), "public": choice.Public(), "user": choice.Scope.UserID,
		"agent": choice.Scope.AgentID, "run": choice.Scope.RunID, "app": choice.Scope.AppID, "after_at": nil, "after_id": nil,
	}
	if after != nil {
		args["after_at"], args["after_id"] = after.At, after.ID
	}
	return args
}
