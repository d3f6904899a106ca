package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

const reindexColumnsSQL = `id, model, after, done, total, started_at, finished_at IS NOT NULL`

// openReindexSQL begins a rebuild unless one is open. What is written from now on brings its own projections.
const openReindexSQL = `
WITH clock AS (SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at)
INSERT INTO reindexes (id, model, after, total, started_at)
SELECT @id, @model, '00000000-0000-0000-0000-000000000000',
       (SELECT count(*) FROM memories WHERE deleted_at IS NULL AND created_at <= clock.at), clock.at
  FROM clock
 WHERE NOT EXISTS (SELECT FROM reindexes WHERE model = @model AND finished_at IS NULL)
ON CONFLICT (model) WHERE finished_at IS NULL DO NOTHING`

const readOpenReindexSQL = `SELECT ` + reindexColumnsSQL + ` FROM reindexes WHERE model = @model AND finished_at IS NULL`

// OpenReindex implements repair.ReindexStore.
func (db *DB) OpenReindex(ctx context.Context, vectorModel string) (repair.Reindex, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return repair.Reindex{}, fmt.Errorf("make id: %w", err)
	}
	args := pgx.NamedArgs{"id": id, "model": vectorModel, "now": db.now()}
	if err := db.alone(ctx, unbound, "open reindex", openReindexSQL, args, noRows); err != nil {
		return repair.Reindex{}, err
	}
	return db.oneReindex(ctx, readOpenReindexSQL, pgx.NamedArgs{"model": vectorModel})
}

var errNoReindex = errors.New("the rebuild is not there; start it again")

func (db *DB) oneReindex(ctx context.Context, sql string, args pgx.NamedArgs) (repair.Reindex, error) {
	var found []repair.Reindex
	err := db.read(ctx, unbound, "read reindex", sql, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[repair.Reindex])
		return err
	})
	if err == nil && len(found) != 1 {
		err = errNoReindex
	}
	if err != nil {
		return repair.Reindex{}, err
	}
	return found[0], nil
}

const reindexSourcesSQL = `
SELECT id, workspace_id, version, text
  FROM memories
 WHERE id > @after AND deleted_at IS NULL AND created_at <= @started
 ORDER BY id
 LIMIT @limit`

// ReindexSources implements repair.ReindexStore.
func (db *DB) ReindexSources(ctx context.Context, r repair.Reindex, limit int) ([]repair.Source, error) {
	var found []repair.Source
	args := pgx.NamedArgs{"after": r.After, "started": r.StartedAt, "limit": limit}
	err := db.read(ctx, unbound, "read sources", reindexSourcesSQL, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[repair.Source])
		return err
	})
	return found, err
}

// staleSourcesSQL reads, of the records of a page, those that have no projections of their present version.
const staleSourcesSQL = `
SELECT m.id, m.workspace_id, m.version, m.text
  FROM memories m
  LEFT JOIN memory_terms t ON t.memory_id = m.id AND t.version = m.version AND t.content_key = m.content_key
  LEFT JOIN memory_vectors v ON v.memory_id = m.id AND v.version = m.version AND v.content_key = m.content_key
        AND v.model = @model
 WHERE m.id = ANY(@ids::uuid[]) AND m.deleted_at IS NULL AND (t.memory_id IS NULL OR v.memory_id IS NULL)
 ORDER BY m.id`

// StaleSources implements repair.ReindexStore.
func (db *DB) StaleSources(ctx context.Context, vectorModel string, ids []uuid.UUID) ([]repair.Source, error) {
	var found []repair.Source
	args := pgx.NamedArgs{"ids": ids, "model": vectorModel}
	err := db.read(ctx, unbound, "read stale sources", staleSourcesSQL, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[repair.Source])
		return err
	})
	return found, err
}

// reprojectTermsSQL writes terms from the live records, only where a record still has the version that they were
// made from, and never over newer ones. Reading FOR SHARE holds off an edit until they are committed.
const reprojectTermsSQL = `
INSERT INTO memory_terms AS t (memory_id, workspace_id, version, content_key, terms, counts, length)
SELECT m.id, m.workspace_id, m.version, m.content_key, string_to_array(p.terms, ' '),
       string_to_array(p.counts, ' ')::smallint[], p.length
  FROM unnest(@ids::uuid[], @versions::int[], @terms::text[], @counts::text[], @lengths::int[])
       AS p (id, version, terms, counts, length)
  JOIN (SELECT id, workspace_id, version, content_key FROM memories
         WHERE id = ANY(@ids::uuid[]) AND workspace_id = @workspace AND deleted_at IS NULL
         ORDER BY id FOR SHARE) m
    ON m.id = p.id AND m.version = p.version
 ORDER BY m.id
ON CONFLICT (memory_id) DO UPDATE
   SET workspace_id = excluded.workspace_id, version = excluded.version, content_key = excluded.content_key,
       terms = excluded.terms, counts = excluded.counts, length = excluded.length
 WHERE t.version <= excluded.version`

// Reproject implements repair.ReindexStore.
func (db *DB) Reproject(ctx context.Context, workspace uuid.UUID, vectorModel string, made []repair.Projections) error {
	n := len(made)
	ids, versions, lengths := make([]uuid.UUID, n), make([]int32, n), make([]int32, n)
	terms, counts := make([]string, n), make([]string, n)
	projected := make([]worker.Projection, n)
	for i, p := range made {
		ids[i], versions[i], lengths[i] = p.RecordID, int32(p.Version), int32(p.Terms.Length) // #nosec G115 -- small
		terms[i], counts[i] = strings.Join(p.Terms.Terms, " "), joinCounts(p.Terms.Counts)
		projected[i] = worker.Projection{RecordID: p.RecordID, Version: p.Version, Vector: p.Vector}
	}
	return db.InTx(ctx, workspace, func(ctx context.Context, tx *Tx) error {
		b := &batch{}
		b.exec("terms", reprojectTermsSQL, pgx.NamedArgs{
			"ids": ids, "versions": versions, "terms": terms, "counts": counts, "lengths": lengths, "workspace": workspace,
		}, nil)
		addVectors(b, workspace, vectorModel, projected, tx.db.now())
		return tx.send(ctx, b)
	})
}

// markReindexSQL moves the progress on from where it was seen.
const markReindexSQL = `
UPDATE reindexes SET after = @to, done = done + @records,
       finished_at = CASE WHEN @last THEN coalesce(@now::timestamptz, clock_timestamp()) END
 WHERE id = @id AND after = @after AND finished_at IS NULL`

const readReindexSQL = `SELECT ` + reindexColumnsSQL + ` FROM reindexes WHERE id = @id`

// MarkReindex implements repair.ReindexStore.
func (db *DB) MarkReindex(ctx context.Context, r repair.Reindex, to uuid.UUID, records int, last bool) (repair.Reindex, error) {
	args := pgx.NamedArgs{"id": r.ID, "after": r.After, "to": to, "records": records, "last": last, "now": db.now()}
	if err := db.alone(ctx, unbound, "mark reindex", markReindexSQL, args, noRows); err != nil {
		return repair.Reindex{}, err
	}
	return db.oneReindex(ctx, readReindexSQL, pgx.NamedArgs{"id": r.ID})
}
