package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// searchedSQL begins a search: the live records of the workspace, completed by the scope's conditions.
const searchedSQL = `
  FROM memories m
 WHERE m.workspace_id = @workspace AND (m.valid_to IS NULL OR NOT @latest) AND ` + liveSQL

// searchTermsSQL tells of every searched record how long it is, and only of those with an asked term which it is and
// how often it has each. A projection of an older version is passed over.
const searchTermsSQL = `
SELECT CASE WHEN p.terms && @terms::text[] THEN p.memory_id END,
       CASE WHEN p.terms && @terms::text[] THEN (
         SELECT array_agg(coalesce(p.counts[array_position(p.terms, asked.term)], 0)::int ORDER BY asked.place)
           FROM unnest(@terms::text[]) WITH ORDINALITY AS asked (term, place)) END,
       p.length
  FROM (SELECT m.id, m.version, m.created_at`

const searchTermsJoinSQL = `) s
  JOIN memory_terms p ON p.memory_id = s.id AND p.version = s.version
 ORDER BY s.created_at DESC, s.id DESC`

// Terms implements recall.SearchStore.
func (db *DB) Terms(ctx context.Context, workspace uuid.UUID, within recall.Searched, terms []string) (recall.Corpus, error) {
	args := db.searchArgs(workspace, within)
	args["terms"] = terms
	var corpus recall.Corpus
	sql := searchTermsSQL + searchedSQL + inScope(within.Scope, args) + newestSQL + searchTermsJoinSQL
	err := db.read(ctx, "read terms", sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var id *uuid.UUID
			var hit recall.Hit
			if err := rows.Scan(&id, &hit.Counts, &hit.Length); err != nil {
				return err
			}
			corpus.Records++
			corpus.Length += int64(hit.Length)
			if id != nil {
				hit.ID = *id
				corpus.Hits = append(corpus.Hits, hit)
			}
		}
		return nil
	})
	return corpus, err
}

const searchVectorsSQL = `
SELECT s.id, v.vector
  FROM (SELECT m.id, m.version, m.created_at`

const searchVectorsJoinSQL = `) s
  JOIN memory_vectors v ON v.memory_id = s.id AND v.version = s.version AND v.model = @model AND NOT v.skipped
 ORDER BY s.created_at DESC, s.id DESC`

// Vectors implements recall.SearchStore.
func (db *DB) Vectors(ctx context.Context, workspace uuid.UUID, within recall.Searched, modelName string, each func(id uuid.UUID, vector model.Vector)) error {
	args := db.searchArgs(workspace, within)
	args["model"] = modelName
	sql := searchVectorsSQL + searchedSQL + inScope(within.Scope, args) + newestSQL + searchVectorsJoinSQL
	return db.read(ctx, "read vectors", sql, args, func(rows pgx.Rows) error {
		var id uuid.UUID
		var stored []byte
		for rows.Next() {
			if err := rows.Scan(&id, &stored); err != nil {
				return err
			}
			vector, err := decodeVector(stored)
			if err != nil {
				return err
			}
			each(id, vector)
		}
		return nil
	})
}

// LiveRecords implements recall.SearchStore.
func (db *DB) LiveRecords(ctx context.Context, workspace uuid.UUID, within recall.Searched, ids []uuid.UUID) ([]memory.Record, error) {
	args := db.searchArgs(workspace, within)
	args["ids"] = ids
	sql := `SELECT ` + recordColumnsSQL + searchedSQL + ` AND m.id = ANY(@ids)` + inScope(within.Scope, args)
	return db.records(ctx, "read found records", sql, args)
}

func (db *DB) searchArgs(workspace uuid.UUID, within recall.Searched) pgx.NamedArgs {
	return pgx.NamedArgs{"workspace": workspace, "latest": within.LatestOnly, "limit": within.Limit, "now": db.now()}
}
