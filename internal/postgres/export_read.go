package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const exportPartsSQL = `
SELECT (t.counts ->> 'parts')::int, (SELECT count(*) FROM task_parts p WHERE p.task_id = t.id)
  FROM all_tasks t
 WHERE t.id = @task AND t.workspace_id = @workspace AND t.kind = 'export' AND t.status = 'succeeded'
 LIMIT 1`

// ExportParts implements recall.ExportStore.
func (db *DB) ExportParts(ctx context.Context, workspace, id uuid.UUID) (int, error) {
	var written, left int
	found := false
	err := db.read(ctx, "parts of export", exportPartsSQL, pgx.NamedArgs{"task": id, "workspace": workspace},
		func(rows pgx.Rows) error {
			for rows.Next() {
				found = true
				if err := rows.Scan(&written, &left); err != nil {
					return err
				}
			}
			return nil
		})
	switch {
	case err != nil:
		return 0, err
	case !found:
		return 0, fault.New(fault.EventNotFound)
	case left != written:
		return 0, fault.New(fault.InputExpired)
	}
	return written, nil
}

const taskPartSQL = `SELECT body FROM task_parts WHERE task_id = @task AND workspace_id = @workspace AND part = @part`

// ExportPart implements recall.ExportStore.
func (db *DB) ExportPart(ctx context.Context, workspace, id uuid.UUID, part int) ([]byte, bool, error) {
	var body []byte
	found := false
	err := db.read(ctx, "part", taskPartSQL, pgx.NamedArgs{"task": id, "workspace": workspace, "part": part},
		func(rows pgx.Rows) error {
			for rows.Next() {
				found = true
				if err := rows.Scan(&body); err != nil {
					return err
				}
			}
			return nil
		})
	return body, found, err
}
