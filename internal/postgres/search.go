package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// searchedSQL begins a search: the visible records of the workspace, completed by the conditions of scope and filter.
const searchedSQL = `
  FROM memories m
 WHERE m.workspace_id = @workspace AND (m.valid_to IS NULL OR NOT @latest) AND `

// searchIDsSQL names the searched records, newest first: the id and the start of the content key of each, packed,
// so that ten thousand of them are one value. The subquery's order is the order of the sum. With a scope of a user and no
// filter all of it is in the index memories_user.
const (
	searchIDsSQL = `
SELECT coalesce(string_agg(s.ref, ''::bytea), ''::bytea)
  FROM (SELECT m.ref`
	searchIDsEndSQL = `) s`
	refSize         = 24
)

// Searched implements recall.SearchStore.
func (db *DB) Searched(ctx context.Context, workspace uuid.UUID, within recall.Searched) ([]recall.Ref, error) {
	args := db.searchArgs(workspace, within)
	sql := searchIDsSQL + searchedSQL + visibleSQL(within.Expired) + inScope(within.Scope, args) + inFilter(within.Filter, args) + newestSQL + searchIDsEndSQL
	var packed []byte
	err := db.read(ctx, of(workspace), "read searched records", sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&packed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(packed)%refSize != 0 {
		return nil, fmt.Errorf("read searched records: %d bytes", len(packed))
	}
	refs := make([]recall.Ref, len(packed)/refSize)
	for i := range refs {
		one := packed[i*refSize:][:refSize]
		refs[i] = recall.Ref{ID: uuid.UUID(one[:16]), Content: binary.BigEndian.Uint64(one[16:])}
	}
	return refs, nil
}

// searchTermsSQL reads the terms of records that are current: made from the content that the record has.
const searchTermsSQL = `
SELECT m.id, substr(m.content_key, 1, 8), p.terms, p.counts, p.length
  FROM memories m
  JOIN memory_terms p ON p.memory_id = m.id AND p.workspace_id = m.workspace_id AND p.content_key = m.content_key
 WHERE m.id = ANY(@ids::uuid[]) AND m.workspace_id = @workspace AND m.deleted_at IS NULL`

// Terms implements recall.SearchStore.
func (db *DB) Terms(ctx context.Context, workspace uuid.UUID, ids []uuid.UUID, each func(ref recall.Ref, terms memory.Terms)) error {
	return db.read(ctx, of(workspace), "read terms", searchTermsSQL, pgx.NamedArgs{"workspace": workspace, "ids": ids}, func(rows pgx.Rows) error {
		for rows.Next() {
			var ref recall.Ref
			var content []byte
			var terms memory.Terms
			if err := rows.Scan(&ref.ID, &content, &terms.Terms, &terms.Counts, &terms.Length); err != nil {
				return err
			}
			ref.Content = binary.BigEndian.Uint64(content)
			each(ref, terms)
		}
		return nil
	})
}

// searchVectorsSQL reads the vectors of records that are current and of one model.
const searchVectorsSQL = `
SELECT m.id, substr(m.content_key, 1, 8), p.vector
  FROM memories m
  JOIN memory_vectors p ON p.memory_id = m.id AND p.workspace_id = m.workspace_id AND p.content_key = m.content_key
 WHERE m.id = ANY(@ids::uuid[]) AND m.workspace_id = @workspace AND m.deleted_at IS NULL
   AND p.model = @model AND NOT p.skipped`

// Vectors implements recall.SearchStore.
func (db *DB) Vectors(ctx context.Context, workspace uuid.UUID, ids []uuid.UUID, modelName string, each func(ref recall.Ref, vector model.Vector)) error {
	args := pgx.NamedArgs{"workspace": workspace, "ids": ids, "model": modelName}
	return db.read(ctx, of(workspace), "read vectors", searchVectorsSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var ref recall.Ref
			var content, stored []byte
			if err := rows.Scan(&ref.ID, &content, &stored); err != nil {
				return err
			}
			vector, err := decodeVector(stored)
			if err != nil {
				return err
			}
			ref.Content = binary.BigEndian.Uint64(content)
			each(ref, vector)
		}
		return nil
	})
}

// LiveRecords implements recall.SearchStore.
func (db *DB) LiveRecords(ctx context.Context, workspace uuid.UUID, within recall.Searched, ids []uuid.UUID) ([]memory.Record, error) {
	args := db.searchArgs(workspace, within)
	args["ids"] = ids
	sql := `SELECT ` + recordColumnsSQL + searchedSQL + visibleSQL(within.Expired) + ` AND m.id = ANY(@ids)` +
		inScope(within.Scope, args) + inFilter(within.Filter, args)
	return db.records(ctx, workspace, "read found records", sql, args)
}

func (db *DB) searchArgs(workspace uuid.UUID, within recall.Searched) pgx.NamedArgs {
	return pgx.NamedArgs{"workspace": workspace, "latest": within.LatestOnly, "limit": within.Limit, "now": db.now()}
}
