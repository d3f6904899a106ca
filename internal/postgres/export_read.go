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
	err := db.read(ctx, of(workspace), "parts of export", exportPartsSQL, pgx.NamedArgs{"task": id, "workspace": workspace},
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

const taskPartSQL = `
SELECT p.body, ` + wrappedSQL + `p.data_key) FROM task_parts p WHERE p.task_id = @task AND p.workspace_id = @workspace AND p.part = @part`

// ExportPart implements recall.ExportStore. An error is seal.ErrUnreadable for a part that can't be opened here.
func (db *DB) ExportPart(ctx context.Context, workspace, id uuid.UUID, part int) ([]byte, bool, error) {
	var body []byte
	var wrapped [][]byte
	found := false
	err := db.read(ctx, of(workspace), "part", taskPartSQL, pgx.NamedArgs{"task": id, "workspace": workspace, "part": part},
		func(rows pgx.Rows) error {
			for rows.Next() {
				found = true
				if err := rows.Scan(&body, &wrapped); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil || !found {
		return nil, found, err
	}
	body, err = db.sealer.open(atPart(workspace, id, part), body, wrapped)
	return body, true, err
}
