package postgres

import (
	"context"
	"encoding/json"
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

// ExportJob writes snapshots piece by piece, each piece one part. It implements worker.Job.
//
// What a snapshot holds: each record and item that was accepted up to the export, as it is when its piece is read, a
// record with its history in one view. What an open erase covers is left out; an erase that is over has removed the
// parts, and then the export begins anew: a piece reads under the workspace's gate, so that a fence which it doesn't see
// is later than the piece and finds its part.
type ExportJob struct{ db *DB }

// ExportJob returns the job of export tasks.
func (db *DB) ExportJob() ExportJob { return ExportJob{db} }

// exportPlace is how far an export is: behind which history row and item, and what has been written. Cap is the version
// at which the last memory was written, 0 if it wasn't. It is kept in the task's payload, as it is: it has ids and
// numbers.
type exportPlace struct {
	Began   bool                   `json:"began,omitempty"`
	Items   bool                   `json:"items,omitempty"`
	Memory  uuid.UUID              `json:"memory,omitzero"`
	Version int                    `json:"version,omitempty"`
	History uuid.UUID              `json:"history,omitzero"`
	Cap     int                    `json:"cap,omitempty"`
	Key     []byte                 `json:"key,omitempty"`
	Part    int                    `json:"part,omitempty"`
	Total   int64                  `json:"total,omitempty"`
	Written command.SnapshotFooter `json:"written,omitzero"`
}

// lockExportSQL is the fence of a piece: it holds the task's row to the commit.
const lockExportSQL = `
SELECT t.command, t.accepted_at,
       EXISTS (SELECT FROM task_parts p WHERE p.task_id = t.id AND p.part = 0), ` + wrappedSQL + `t.data_key)
  FROM tasks t
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = @stage AND cursor = @cursor
   FOR UPDATE OF t`

const moveExportSQL = `
UPDATE tasks
   SET stage = 'committed', cursor = cursor + 1, command = @place,
       counts = jsonb_build_object('done', @done::bigint, 'total', @total::bigint, 'parts', @parts::int),
       committed_at = coalesce(committed_at, (SELECT coalesce(@now::timestamptz, clock_timestamp()))),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task`

const exportTotalSQL = `
SELECT (SELECT count(*) FROM memories WHERE workspace_id = @workspace AND accepted_at <= @at)
     + (SELECT count(*) FROM items WHERE workspace_id = @workspace AND created_at <= @at)`

const insertPartSQL = `
INSERT INTO task_parts (task_id, part, workspace_id, body) VALUES (@task, @part, @workspace, @body)`

const dropPartsSQL = `DELETE FROM task_parts WHERE task_id = @task`

// Next implements worker.Job. A piece is read where it is written, under the gate.
func (ExportJob) Next(context.Context, worker.Lease) (worker.Chunk, error) {
	return worker.Chunk{}, nil
}

// Apply implements worker.Job.
func (j ExportJob) Apply(ctx context.Context, l worker.Lease, _ worker.Chunk, _ string, _ []model.Vector, work worker.Work) worker.Done {
	var done worker.Done
	err := j.db.InTx(ctx, l.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		done = worker.Done{Cursor: l.Cursor + 1}
		now := tx.db.now()
		place, at, err := tx.exportPlace(ctx, l)
		if err != nil {
			return err
		}
		failpoint.Hit("export.in_tx")
		body, ended, err := tx.exportPiece(ctx, l, at, &place)
		if err != nil {
			return err
		}
		b := &batch{}
		if err := tx.addExported(b, l, place, body, now); err != nil {
			return err
		}
		if done.Ended = ended; ended {
			addFinish(b, l, task.Stored, now)
			addAttempt(b, l, endedSucceeded, "", 0, work, now)
			addCloseRun(b, l.TaskID, l.Generation, task.Succeeded, now)
		}
		return tx.send(ctx, b)
	})
	if errors.Is(err, errNotHere) {
		return j.db.movedPiece(ctx, l)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	failpoint.Hit("export.committed")
	return done
}

// exportPlace locks the task and reads where it is: at the beginning when an erase has removed what it had.
func (tx *Tx) exportPlace(ctx context.Context, l worker.Lease) (exportPlace, time.Time, error) {
	var place exportPlace
	var kept []byte
	var wrapped [][]byte
	var at time.Time
	held, whole := false, false
	b := &batch{}
	b.query("lock export", lockExportSQL, pgx.NamedArgs{
		"task": l.TaskID, "token": l.Token, "stage": string(l.Stage), "cursor": l.Cursor,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			held = true
			if err := rows.Scan(&kept, &at, &whole, &wrapped); err != nil {
				return err
			}
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil {
		return place, at, err
	}
	if !held {
		return place, at, errNotHere
	}
	kept, err := tx.db.sealer.open(atCommand(l.WorkspaceID, l.TaskID), kept, wrapped)
	if err != nil {
		return place, at, err
	}
	if err := json.Unmarshal(kept, &place); err != nil {
		return place, at, command.ErrUnreadable
	}
	if place.Began && whole {
		return place, at, nil
	}
	place = exportPlace{Began: true}
	b = &batch{}
	b.exec("drop parts", dropPartsSQL, pgx.NamedArgs{"task": l.TaskID}, nil)
	b.query("export total", exportTotalSQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "at": at}, one(&place.Total))
	return place, at, tx.send(ctx, b)
}

// addExported keeps the part, if there is anything in it, and moves the place behind what was read.
func (tx *Tx) addExported(b *batch, l worker.Lease, place exportPlace, body []byte, now *time.Time) error {
	part := place.Part
	if len(body) > 0 {
		place.Part++
	}
	kept, err := json.Marshal(place)
	if err != nil {
		return err
	}
	if l.Stage == task.Accepted {
		b.exec("insert plan", batchPlanSQL, pgx.NamedArgs{
			"task": l.TaskID, "workspace": l.WorkspaceID, "generation": l.Generation, "now": now,
		}, nil)
	}
	if len(body) > 0 {
		if body, err = tx.seal(atPart(l.WorkspaceID, l.TaskID, part), body); err != nil {
			return err
		}
		b.exec("insert part", insertPartSQL, pgx.NamedArgs{
			"task": l.TaskID, "part": part, "workspace": l.WorkspaceID, "body": body,
		}, nil)
	}
	finished := place.Written.Memories + place.Written.Items
	b.exec("move export", moveExportSQL, pgx.NamedArgs{
		"task": l.TaskID, "place": kept, "done": finished, "total": max(place.Total, finished), "parts": place.Part, "now": now,
	}, nil)
	return nil
}

// exportPages bounds the pages that one piece reads in search of a line: of history whose records are gone there may be
// any number. What no line was found in is passed without a part.
const exportPages = 20

// exportPiece writes the lines of the next part and moves the place behind them. It tells whether the part is the last.
func (tx *Tx) exportPiece(ctx context.Context, l worker.Lease, at time.Time, place *exportPlace) (body []byte, ended bool, err error) {
	p := &partWriter{place: place}
	if place.Part == 0 {
		p.add(command.SnapshotLine{Header: &command.SnapshotHeader{
			Version: command.SnapshotVersion, Workspace: l.WorkspaceID, CreatedAt: at.UTC(),
		}})
	}
	for n := 0; n < exportPages && !ended && (n == 0 || len(p.body) == 0); n++ {
		if ended, err = tx.exportPage(ctx, l, at, p); err != nil {
			return nil, false, err
		}
	}
	return p.body, ended, p.err
}

// exportPage writes the lines of the next page and tells whether it was the last.
func (tx *Tx) exportPage(ctx context.Context, l worker.Lease, at time.Time, p *partWriter) (bool, error) {
	place := p.place
	if !place.Items {
		read, err := tx.exportRecords(ctx, l, at, p)
		if err != nil {
			return false, err
		}
		place.Items = read == 0
	}
	if !place.Items {
		return false, nil
	}
	read, err := tx.exportItems(ctx, l, at, p)
	if err != nil || read > 0 {
		return false, err
	}
	footer := place.Written
	place.Total = footer.Memories + footer.Items // what was erased meanwhile isn't part of it
	p.add(command.SnapshotLine{Footer: &footer})
	return true, p.err
}

// partWriter collects the lines of one part.
type partWriter struct {
	place *exportPlace
	body  []byte
	err   error
}

func (p *partWriter) add(line command.SnapshotLine) {
	if p.err != nil {
		return
	}
	p.body, p.err = line.AppendTo(p.body)
}
