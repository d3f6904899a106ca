package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// importAhead is how far the times of a snapshot may be ahead of its import: clocks differ, but a later write of a scope
// is dated behind all that is there.
const importAhead = 24 * time.Hour

// ImportJob reads snapshots into empty workspaces, one part a piece. It implements worker.Job.
//
// Everything is checked before the first piece is applied, so that a wrong line fails the import with nothing stored;
// from then on it only succeeds. A record whose id was given to another one in between is left out, and so is all that
// is left when an erase begins in the workspace: it covers what the import would bring. Both end it as PARTIAL.
type ImportJob struct{ db *DB }

// ImportJob returns the job of import tasks.
func (db *DB) ImportJob() ImportJob { return ImportJob{db} }

// importPiece is one part as it was read. Gone tells that an erase has removed it.
type importPiece struct {
	gone     bool
	parts    int
	total    int64
	memories []command.SnapshotMemory
	history  []command.SnapshotHistory
	items    []command.SnapshotItem
	vectors  []int // the memories that the vectors belong to
}

const importStateSQL = `
SELECT (SELECT count(*) FROM task_parts p WHERE p.task_id = t.id), coalesce((t.counts ->> 'total')::bigint, 0)
  FROM tasks t WHERE t.id = @task AND t.lease_token = @token`

// Next implements worker.Job.
func (j ImportJob) Next(ctx context.Context, l worker.Lease) (worker.Chunk, error) {
	piece := &importPiece{}
	err := j.db.read(ctx, of(l.WorkspaceID), "state of import", importStateSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token},
		func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&piece.parts, &piece.total); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return worker.Chunk{}, err
	}
	if l.Stage == task.Accepted {
		if piece.total, err = j.check(ctx, l, piece.parts); err != nil {
			return worker.Chunk{}, err
		}
	}
	body, found, err := j.db.ExportPart(ctx, l.WorkspaceID, l.TaskID, int(l.Cursor))
	if err != nil {
		return worker.Chunk{}, err
	}
	if piece.gone = !found; piece.gone {
		return worker.Chunk{State: piece}, nil
	}
	texts, err := piece.read(body)
	if err != nil {
		return worker.Chunk{}, err
	}
	return worker.Chunk{Texts: texts, State: piece}, j.rename(ctx, l, piece)
}

// localTasksSQL finds ids that name tasks of this database, of whatever workspace.
const localTasksSQL = `SELECT id FROM all_tasks WHERE id = ANY(@ids::uuid[])`

// rename gives rows whose event is a task of this database another event, so that nothing that is imported refers to
// it. In a database that never had those tasks a copy keeps the ids of its events.
func (j ImportJob) rename(ctx context.Context, l worker.Lease, piece *importPiece) error {
	var events []*uuid.UUID
	for i := range piece.memories {
		events = append(events, &piece.memories[i].Event)
	}
	for i := range piece.history {
		events = append(events, &piece.history[i].Event)
	}
	for i := range piece.items {
		events = append(events, &piece.items[i].Event)
	}
	ids := make([]uuid.UUID, len(events))
	for i, event := range events {
		ids[i] = *event
	}
	taken := map[uuid.UUID]bool{}
	err := j.db.read(ctx, unbound, "tasks of this database", localTasksSQL, pgx.NamedArgs{"ids": ids}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			if err := rows.Scan(&id); err != nil {
				return err
			}
			taken[id] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, event := range events {
		if taken[*event] {
			*event = importedTask(l, *event)
		}
	}
	return nil
}

// read decodes a part that has been checked and answers the texts that need vectors: those of records that are current.
func (p *importPiece) read(body []byte) ([]string, error) {
	var texts []string
	for _, raw := range command.SnapshotLines(body) {
		line, err := command.DecodeSnapshotLine(raw)
		switch {
		case err != nil:
			return nil, err
		case line.Memory != nil:
			if line.Memory.DeletedAt == nil {
				texts, p.vectors = append(texts, line.Memory.Text), append(p.vectors, len(p.memories))
			}
			p.memories = append(p.memories, *line.Memory)
		case line.History != nil:
			p.history = append(p.history, *line.History)
		case line.Item != nil:
			p.items = append(p.items, *line.Item)
		}
	}
	return texts, nil
}

// check reads the whole snapshot part by part before anything of it is stored, and keeps the number of the first wrong
// line for the event.
func (j ImportJob) check(ctx context.Context, l worker.Lease, parts int) (int64, error) {
	check := command.NewSnapshotCheck(l.AcceptedAt.Add(importAhead))
	line := 0
	for part := range parts {
		body, found, err := j.db.ExportPart(ctx, l.WorkspaceID, l.TaskID, part)
		if err != nil {
			return 0, err
		}
		if !found {
			return 0, command.ErrUnreadable
		}
		wrong := 0
		lines := map[uuid.UUID]int{}
		var ids []uuid.UUID
		for _, raw := range command.SnapshotLines(body) {
			line++
			read, err := check.Line(raw)
			if err != nil {
				wrong = line
				break
			}
			if read.Memory != nil {
				lines[read.Memory.ID], ids = line, append(ids, read.Memory.ID)
			}
		}
		taken, err := j.db.takenIDs(ctx, ids)
		if err != nil {
			return 0, err
		}
		for _, id := range taken { // they come before the line that broke off the reading
			if wrong == 0 || lines[id] < wrong {
				wrong = lines[id]
			}
		}
		if wrong > 0 {
			return 0, j.wrong(ctx, l, wrong)
		}
	}
	total, err := check.End()
	if err != nil {
		return 0, j.wrong(ctx, l, line+1)
	}
	return total, nil
}

const wrongLineSQL = `
UPDATE tasks SET counts = jsonb_build_object('line', @line::int)
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'accepted'`

// wrong keeps the number of the line and answers worker.ErrRejected: whoever sent the snapshot has to mend it.
func (j ImportJob) wrong(ctx context.Context, l worker.Lease, line int) error {
	err := j.db.alone(ctx, of(l.WorkspaceID), "wrong line", wrongLineSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token, "line": line}, noRows)
	if err != nil {
		return err
	}
	return worker.ErrRejected
}

// moveImportSQL is the fence of a piece. It tells whether the part is still there, whether an erase has begun, and
// whether records were left out before.
const moveImportSQL = `
UPDATE tasks t
   SET stage = 'committed', cursor = t.cursor + 1,
       counts = coalesce(t.counts, '{}') - 'line' || jsonb_build_object(
         'done', coalesce((t.counts ->> 'done')::bigint, 0) + @lines::bigint, 'total', @total::bigint),
       committed_at = coalesce(t.committed_at, (SELECT coalesce(@now::timestamptz, clock_timestamp()))),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE t.id = @task AND t.status = 'running' AND t.lease_token = @token AND t.stage = @stage AND t.cursor = @cursor
RETURNING EXISTS (SELECT FROM task_parts p WHERE p.task_id = @task AND p.part = @cursor),
          EXISTS (SELECT FROM erasures e WHERE e.workspace_id = @workspace),
          coalesce((t.counts ->> 'left_out')::bigint, 0)`

const leftOutSQL = `
UPDATE tasks SET counts = counts || jsonb_build_object(
       'left_out', coalesce((counts ->> 'left_out')::bigint, 0) + @more::bigint,
       'done', (counts ->> 'done')::bigint - @more::bigint)
 WHERE id = @task`

// Apply implements worker.Job.
func (j ImportJob) Apply(ctx context.Context, l worker.Lease, chunk worker.Chunk, vectorModel string, vectors []model.Vector, work worker.Work) worker.Done {
	piece, ok := chunk.State.(*importPiece)
	if !ok {
		return worker.Done{Err: errors.New("import: the piece was not read")}
	}
	var done worker.Done
	err := j.db.InTx(ctx, l.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		done = worker.Done{Cursor: l.Cursor + 1}
		now := tx.db.now()
		stop, leftOut, err := tx.beginImport(ctx, l, piece, now)
		if err != nil {
			return err
		}
		failpoint.Hit("import.in_tx")
		if !stop {
			missing, err := tx.importRecords(ctx, l, piece, vectorModel, vectors, now)
			if err != nil {
				return err
			}
			leftOut += missing
		}
		done.Ended = stop || int(l.Cursor)+1 >= piece.parts
		if !done.Ended {
			return nil
		}
		outcome := task.Stored
		if stop || leftOut > 0 {
			outcome = task.Partial
		}
		b := &batch{}
		b.exec("drop parts", dropPartsSQL, pgx.NamedArgs{"task": l.TaskID}, nil)
		addFinish(b, l, outcome, now)
		addAttempt(b, l, endedSucceeded, "", 0, work, now)
		addCloseRun(b, l.TaskID, l.Generation, task.Succeeded, now)
		return tx.send(ctx, b)
	})
	if errors.Is(err, errNotHere) {
		return j.db.movedPiece(ctx, l)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	failpoint.Hit("import.committed")
	return done
}

// beginImport keeps the items of the piece, takes its lanes and passes the fence, in the order of locks. It tells
// whether nothing more is to be stored, and how many records were left out before.
func (tx *Tx) beginImport(ctx context.Context, l worker.Lease, piece *importPiece, now *time.Time) (stop bool, leftOut int64, err error) {
	held, there, fenced := false, false, false
	kept := int64(0)
	b := &batch{}
	if !piece.gone {
		addImportedItems(b, l, piece.items, &kept)
		addImportedLanes(b, l.WorkspaceID, piece.memories)
	}
	b.query("move import", moveImportSQL, pgx.NamedArgs{
		"task": l.TaskID, "token": l.Token, "stage": string(l.Stage), "cursor": l.Cursor, "workspace": l.WorkspaceID,
		"lines": len(piece.memories) + len(piece.items), "total": piece.total, "now": now,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			held = true
			if err := rows.Scan(&there, &fenced, &leftOut); err != nil {
				return err
			}
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil {
		return false, 0, err
	}
	if !held {
		return false, 0, errNotHere
	}
	b = &batch{}
	if l.Stage == task.Accepted {
		b.exec("insert plan", batchPlanSQL, pgx.NamedArgs{
			"task": l.TaskID, "workspace": l.WorkspaceID, "generation": l.Generation, "now": now,
		}, nil)
	}
	stop = piece.gone || !there || fenced
	missing := int64(len(piece.items)) - kept
	if stop {
		missing += int64(len(piece.memories))
	}
	addLeftOut(b, l, missing)
	return stop, leftOut + missing, tx.send(ctx, b)
}

// addLeftOut counts what the piece does not store.
func addLeftOut(b *batch, l worker.Lease, more int64) {
	if more > 0 {
		b.exec("left out", leftOutSQL, pgx.NamedArgs{"task": l.TaskID, "more": more}, nil)
	}
}
