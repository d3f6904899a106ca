package postgres

import (
	"context"
	"errors"
	"fmt"
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
SELECT d.id, d.stage = 'accepted' AND d.crashes >= @max_attempts
  FROM ws, paused, LATERAL (
    SELECT t.id, t.stage, t.crashes, row_number() OVER (ORDER BY t.run_after, t.id) AS place
      FROM (SELECT c.id, c.stage, c.crashes, c.run_after FROM tasks c
             WHERE c.status = 'pending' AND c.ready AND c.workspace_id = ws.id AND c.kind = ANY(@kinds)
               AND c.payload_format <= @payload_format AND c.run_after <= (SELECT at FROM clock)
             ORDER BY c.run_after, c.id LIMIT @each) t) d
 WHERE ws.id IS NOT NULL AND NOT (paused.extractor AND paused.embedder)
   AND NOT CASE d.stage WHEN 'accepted' THEN paused.extractor ELSE paused.embedder END
   AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = ws.id AND w.suspended_at IS NOT NULL)
 ORDER BY d.place, d.id
 LIMIT @limit`

// dueWorkspaces bounds how many workspaces one drain looks at; the random start reaches the others soon.
const dueWorkspaces = 200

// Due implements worker.Claims. It starts behind a random workspace and wraps around; the answer interleaves
// workspaces: first the oldest task of each, then the second. A due task whose crashes are exhausted is failed
// here: whoever finds it ends it.
func (db *DB) Due(ctx context.Context, who worker.Claimant, limit int) ([]uuid.UUID, bool, error) {
	start, err := db.waitingStart(ctx)
	if err != nil {
		return nil, false, err
	}
	var ids []uuid.UUID
	var failures []error
	for _, after := range []uuid.UUID{start, {}} {
		if len(ids) > limit {
			break
		}
		exhausted, err := db.due(ctx, who, after, limit+1, &ids)
		if err != nil {
			return nil, false, err
		}
		for _, id := range exhausted {
			if _, err := db.exhaust(ctx, id, who.MaxAttempts); err != nil {
				failures = append(failures, fmt.Errorf("exhaust %s: %w", id, err)) // one broken row never stops the rest
			}
		}
	}
	if len(ids) == 0 && len(failures) > 0 {
		return nil, false, errors.Join(failures...)
	}
	more := len(ids) > limit
	return ids[:min(len(ids), limit)], more, nil
}

func (db *DB) due(ctx context.Context, who worker.Claimant, after uuid.UUID, limit int, ids *[]uuid.UUID) ([]uuid.UUID, error) {
	var exhausted []uuid.UUID
	err := db.alone(ctx, "due", dueSQL, pgx.NamedArgs{
		"now": db.now(), "after": after, "workspaces": dueWorkspaces, "each": limit, "limit": limit,
		"extractor": who.Extractor, "embedder": who.Embedder, "kinds": kindNames(who.Kinds), "payload_format": who.Format,
		"max_attempts": who.MaxAttempts,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var spent bool
			if err := rows.Scan(&id, &spent); err != nil {
				return err
			}
			switch {
			case spent:
				exhausted = append(exhausted, id)
			case !slices.Contains(*ids, id):
				*ids = append(*ids, id)
			}
		}
		return nil
	})
	return exhausted, err
}
