package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// knownSQL looks at the newest live records of the lane: half of the answer shares most terms with the conversation,
// the other half is the newest. It never uses vectors, so that what is known doesn't depend on an embedder.
const knownSQL = `
WITH recent AS MATERIALIZED (
  SELECT m.id, m.version, m.text, m.said_at
    FROM memories m
   WHERE m.workspace_id = @workspace AND m.lane = @lane AND m.deleted_at IS NULL AND m.valid_to IS NULL
     AND (m.expires_at IS NULL OR m.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())))
     AND m.said_at < @accepted_at
     AND NOT ` + fencedRecordSQL + `
   ORDER BY m.said_at DESC, m.id DESC
   LIMIT @look
), scored AS (
  SELECT r.id, r.version, r.text, r.said_at,
         (SELECT count(*) FROM unnest(t.terms) AS term WHERE term = ANY(@terms::text[])) AS shared
    FROM recent r LEFT JOIN memory_terms t ON t.memory_id = r.id
), chosen AS (
  (SELECT id, version, text, said_at FROM scored WHERE shared > 0 ORDER BY shared DESC, said_at DESC, id DESC LIMIT @limit / 2)
  UNION
  (SELECT id, version, text, said_at FROM recent ORDER BY said_at DESC, id DESC LIMIT @limit - @limit / 2)
)
SELECT id, version, text, said_at FROM chosen ORDER BY said_at, id`

// knownLook bounds how many records of a lane are looked at for one extraction.
const knownLook = 2_000

// Known implements worker.Known.
func (db *DB) Known(ctx context.Context, l worker.Lease, terms []string, limit int) ([]worker.KnownRecord, error) {
	var known []worker.KnownRecord
	err := db.read(ctx, of(l.WorkspaceID), "known records", knownSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "lane": l.Lane[:], "accepted_at": l.AcceptedAt, "terms": terms, "limit": limit,
		"look": knownLook, "now": db.now(),
	}, func(rows pgx.Rows) error {
		var err error
		known, err = pgx.CollectRows(rows, pgx.RowToStructByPos[worker.KnownRecord])
		return err
	})
	return known, err
}
