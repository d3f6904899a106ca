package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// batchPiece is how many changes one transaction applies: few enough that their lanes are held for milliseconds, and
// that the vectors of one piece take about two calls.
const batchPiece = 100

// batchTargetsSQL reads the live records that a piece names, without a lock, and the text of those whose vector is
// still missing.
const batchTargetsSQL = `
SELECT m.id, m.version, m.lane, CASE WHEN v.memory_id IS NULL THEN m.text END
  FROM memories m
  LEFT JOIN memory_vectors v ON v.memory_id = m.id AND v.version = m.version
 WHERE m.workspace_id = @workspace AND m.id = ANY(@ids::uuid[]) AND ` + liveSQL

const stopAskedSQL = `
SELECT coalesce((counts ->> 'cancel')::boolean, false), coalesce((counts ->> 'total')::int, 0) FROM tasks WHERE id = @task`

// batchJob applies batches of changes piece by piece.
type batchJob struct{ db *DB }

// BatchJob returns the work of the kinds BatchUpdate and BatchDelete.
func (db *DB) BatchJob() worker.Job { return batchJob{db} }

// piece is one piece of a batch as it was read, with the live ones of the records that it names.
type piece struct {
	from, total int
	changes     []command.Change
	seen        map[uuid.UUID]seen
}

// seen is a record as it was read before its piece was applied. Vector is the place of the text that its next
// version will have among the texts that were embedded, -1 if it needs no vector or won't change.
type seen struct {
	version int
	lane    []byte
	bare    *string // its text, if it has no vector
	vector  int
}

func (p piece) to() int { return p.from + len(p.changes) }

// Next implements worker.Job. Only texts that will be stored, as far as can be seen, are worth their vector.
func (j batchJob) Next(ctx context.Context, l worker.Lease) (worker.Chunk, error) {
	stop, total, err := j.stopAsked(ctx, l)
	if err != nil {
		return worker.Chunk{}, err
	}
	if stop { // nothing more is applied, so nothing is read: the input may be gone
		return worker.Chunk{State: piece{from: int(l.Cursor), total: total}}, nil
	}
	batch, err := command.DecodeBatch(l.Format, l.Payload)
	if err != nil {
		return worker.Chunk{}, err
	}
	total = len(batch.Changes)
	p := piece{from: min(int(l.Cursor), total), total: total}
	p.changes = batch.Changes[p.from:min(p.from+batchPiece, p.total)]
	if p.seen, err = j.look(ctx, l.WorkspaceID, p.changes); err != nil {
		return worker.Chunk{}, err
	}
	var texts []string
	for _, c := range p.changes {
		was, live := p.seen[c.ID]
		if !live || c.Delete || c.Version != nil && *c.Version != was.version {
			continue
		}
		text := c.Content
		if text == nil {
			text = was.bare
		}
		if text != nil {
			was.vector = len(texts)
			p.seen[c.ID], texts = was, append(texts, *text)
		}
	}
	return worker.Chunk{Texts: texts, State: p}, nil
}

// stopAsked tells whether the batch is to end as it is, and how many changes it had when it was last counted.
func (j batchJob) stopAsked(ctx context.Context, l worker.Lease) (stop bool, total int, err error) {
	err = j.db.read(ctx, of(l.WorkspaceID), "stop asked", stopAskedSQL, pgx.NamedArgs{"task": l.TaskID}, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&stop, &total); err != nil {
				return err
			}
		}
		return nil
	})
	return stop, total, err
}

// one reads a single value into v.
func one[T any](v *T) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(v); err != nil {
				return err
			}
		}
		return nil
	}
}

func (j batchJob) look(ctx context.Context, workspace uuid.UUID, changes []command.Change) (map[uuid.UUID]seen, error) {
	records := make(map[uuid.UUID]seen, len(changes))
	err := j.db.read(ctx, of(workspace), "batch targets", batchTargetsSQL, pgx.NamedArgs{
		"workspace": workspace, "ids": idsOf(changes), "now": j.db.now(),
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			r := seen{vector: -1}
			if err := rows.Scan(&id, &r.version, &r.lane, &r.bare); err != nil {
				return err
			}
			records[id] = r
		}
		return nil
	})
	return records, err
}

func idsOf(changes []command.Change) []uuid.UUID {
	ids := make([]uuid.UUID, len(changes))
	for i, c := range changes {
		ids[i] = c.ID
	}
	return ids
}
