package postgres

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// dueSQL walks the workspaces that have due work by skipping through the index and takes the first rows of each,
// so that one workspace's backlog hides no other's. It starts behind @after.
const dueSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), paused AS MATERIALIZED (
  SELECT coalesce(bool_or(p.provider = @extractor), false) AS extractor,
         coalesce(bool_or(p.provider = @embedder), false) AS embedder
    FROM provider_pauses p, clock
   WHERE p.provider IN (@extractor, @embedder) AND p.paused_until > clock.at
), ws (id, n) AS (
  (SELECT workspace_id, 1 FROM tasks WHERE status = 'pending' AND ready AND workspace_id > @after
    ORDER BY workspace_id LIMIT 1)
  UNION ALL
  SELECT (SELECT t.workspace_id FROM tasks t WHERE t.status = 'pending' AND t.ready AND t.workspace_id > ws.id
           ORDER BY t.workspace_id LIMIT 1), ws.n + 1
    FROM ws WHERE ws.id IS NOT NULL AND ws.n < @workspaces
)
SELECT d.id
  FROM ws, paused, LATERAL (
    SELECT t.id, row_number() OVER (ORDER BY t.run_after, t.id) AS place
      FROM (SELECT c.id, c.stage, c.kind, c.crashes, c.payload_format, c.run_after, c.workspace_id, c.accepted_at,
                   c.user_id, c.agent_id, c.run_id, c.app_id FROM tasks c
             WHERE c.status = 'pending' AND c.ready AND c.workspace_id = ws.id
               AND c.run_after <= (SELECT at FROM clock)
             ORDER BY c.run_after, c.id LIMIT @look) t
     WHERE t.kind = ANY(@kinds) AND t.payload_format <= @payload_format
       AND (t.stage <> 'accepted' OR t.crashes < @max_attempts)
       AND (t.kind = 'scope_erase' OR NOT CASE t.stage WHEN 'accepted' THEN paused.extractor ELSE paused.embedder END)
       AND NOT ` + fencedTaskSQL + `
     ORDER BY t.run_after, t.id LIMIT @each) d
 WHERE ws.id IS NOT NULL
   AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = ws.id AND w.suspended_at IS NOT NULL)
 ORDER BY d.place, d.id
 LIMIT @limit`

// dueWorkspaces bounds how many workspaces one drain looks at; the random start reaches the others soon.
const dueWorkspaces = 200

// dueLook bounds how many due tasks of one workspace are looked past that this worker can't have: paused, exhausted,
// of a newer kind.
const dueLook = 500

// Due implements worker.Claims. It starts behind a random workspace and wraps around; the answer interleaves
// workspaces: first the oldest task of each, then the second. Exhausted tasks are left to repair.
func (db *DB) Due(ctx context.Context, who worker.Claimant, limit int) ([]uuid.UUID, bool, error) {
	start, err := db.waitingStart(ctx)
	if err != nil {
		return nil, false, err
	}
	var ids []uuid.UUID
	for _, after := range []uuid.UUID{start, {}} {
		if len(ids) > limit {
			break
		}
		if err := db.due(ctx, who, after, limit+1, &ids); err != nil {
			return nil, false, err
		}
	}
	more := len(ids) > limit
	return ids[:min(len(ids), limit)], more, nil
}

func (db *DB) due(ctx context.Context, who worker.Claimant, after uuid.UUID, limit int, ids *[]uuid.UUID) error {
	return db.read(ctx, "due", dueSQL, pgx.NamedArgs{
		"now": db.now(), "after": after, "workspaces": dueWorkspaces, "look": dueLook, "each": limit, "limit": limit,
		"extractor": who.Extractor, "embedder": who.Embedder, "kinds": kindNames(who.Kinds), "payload_format": who.Format,
		"max_attempts": who.MaxAttempts,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			if err := rows.Scan(&id); err != nil {
				return err
			}
			if !slices.Contains(*ids, id) {
				*ids = append(*ids, id)
			}
		}
		return nil
	})
}
