package postgres

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// lockLanesSQL takes the rows of several lanes, in their order.
const lockLanesSQL = `
SELECT 1 FROM lanes WHERE workspace_id = @workspace AND lane = ANY(@lanes::bytea[]) ORDER BY lane FOR UPDATE`

// fencePieceSQL is the fence of a piece: the lease, and that no other run has applied it. It moves the cursor behind
// the piece, and tells whether the caller has asked to stop.
const fencePieceSQL = `
UPDATE tasks
   SET stage = 'committed', cursor = @to,
       counts = coalesce(counts, '{}') || jsonb_build_object('done', @to::bigint, 'total', @total::bigint),
       committed_at = coalesce(committed_at, (SELECT coalesce(@now::timestamptz, clock_timestamp()))),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = @stage AND cursor = @from
RETURNING coalesce((counts ->> 'cancel')::boolean, false)`

// cutPieceSQL moves the cursor back to what was applied of the piece, in the transaction of its fence.
const cutPieceSQL = `
UPDATE tasks SET cursor = @to, counts = counts || jsonb_build_object('done', @to::bigint) WHERE id = @task`

// batchPlanSQL marks the canonical commit. A batch has no plan of its own: its input says what is to be done.
const batchPlanSQL = `
INSERT INTO plans (task_id, workspace_id, generation, body, created_at)
VALUES (@task, @workspace, @generation, NULL, (SELECT coalesce(@now::timestamptz, clock_timestamp())))`

const batchResultsSQL = `
INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event, error_code)
SELECT @task, r.ordinal, @workspace, r.record_id, r.event, nullif(r.error_code, '')
  FROM unnest(@ordinals::int[], @records::uuid[], @events::text[], @codes::text[])
       AS r (ordinal, record_id, event, error_code)`

const batchStoredSQL = `
SELECT EXISTS (SELECT FROM task_results WHERE task_id = @task AND event <> 'NONE')`

// whereInPiecesSQL tells how far a task in pieces is.
const whereInPiecesSQL = `
SELECT status, stage, cursor, coalesce(lease_token = @token, false) FROM all_tasks WHERE id = @task`

// lanesInOrder returns the lanes of the records that the piece has seen, each once.
func (p piece) lanesInOrder() [][]byte {
	lanes := make([][]byte, 0, len(p.seen))
	for _, r := range p.seen {
		lanes = append(lanes, r.lane)
	}
	slices.SortFunc(lanes, bytes.Compare)
	return slices.CompactFunc(lanes, bytes.Equal)
}

// cut leaves off what follows the first record that lacks the vector of a text it keeps, because somebody changed it
// since it was seen: it must be read again first.
func (p *piece) cut(found map[uuid.UUID]target) {
	for i, c := range p.changes {
		was, live := found[c.ID]
		if verdictOn(c, was, live).Change != memory.Updated || c.Content != nil || was.projected {
			continue
		}
		if before := p.seen[c.ID]; before.vector < 0 || before.version != was.version {
			p.changes = p.changes[:i]
			return
		}
	}
}

// Apply implements worker.Job: one transaction, fenced by the lease and the cursor.
func (j batchJob) Apply(ctx context.Context, l worker.Lease, chunk worker.Chunk, vectorModel string, vectors []model.Vector, work worker.Work) worker.Done {
	p, ok := chunk.State.(piece)
	if !ok {
		return worker.Done{Err: errors.New("apply batch: the piece is of another job")}
	}
	var done worker.Done
	err := j.db.InTx(ctx, l.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		done = worker.Done{Cursor: int64(p.to())}
		now := tx.db.now()
		found := map[uuid.UUID]target{}
		held, stop := false, false
		b := &batch{}
		b.exec("lock lanes", lockLanesSQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "lanes": p.lanesInOrder()}, nil)
		b.query("fence piece", fencePieceSQL, pgx.NamedArgs{
			"task": l.TaskID, "token": l.Token, "stage": string(l.Stage), "from": l.Cursor, "to": p.to(), "total": p.total,
			"now": now,
		}, func(rows pgx.Rows) error {
			held = false
			for rows.Next() {
				held = true
				if err := rows.Scan(&stop); err != nil {
					return err
				}
			}
			return nil
		})
		addLockTargets(b, l.WorkspaceID, slices.Collect(maps.Keys(p.seen)), now, found)
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !held {
			return errNotHere
		}
		failpoint.Hit("batch.in_tx")
		if !stop {
			applied := p // the closure may run again
			applied.cut(found)
			if err := tx.applyPiece(ctx, l, applied, found, vectorModel, vectors, now); err != nil {
				return err
			}
			if err := tx.moveBack(ctx, l, p, applied); err != nil {
				return err
			}
			done.Cursor = int64(applied.to())
		}
		done.Ended = stop || done.Cursor == int64(p.total)
		if !done.Ended {
			return nil
		}
		return tx.endBatch(ctx, l, stop, work, now)
	})
	if errors.Is(err, errNotHere) {
		return j.moved(ctx, l)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	failpoint.Hit("batch.committed")
	return done
}

// moveBack sets the cursor behind what was applied, if that is less than the piece.
func (tx *Tx) moveBack(ctx context.Context, l worker.Lease, whole, applied piece) error {
	if applied.to() == whole.to() {
		return nil
	}
	b := &batch{}
	b.exec("cut piece", cutPieceSQL, pgx.NamedArgs{"task": l.TaskID, "to": applied.to()}, nil)
	return tx.send(ctx, b)
}

// applyPiece changes what can be changed and keeps a result for each item.
func (tx *Tx) applyPiece(ctx context.Context, l worker.Lease, p piece, found map[uuid.UUID]target, vectorModel string, vectors []model.Vector, now *time.Time) error {
	results := make([]memory.Result, len(p.changes))
	edits := make([]edit, 0, len(p.changes))
	projected := make([]worker.Projection, 0, len(vectors))
	for i, c := range p.changes {
		was, live := found[c.ID]
		results[i] = verdictOn(c, was, live)
		results[i].Ordinal = p.from + i
		if results[i].Change == memory.None {
			continue
		}
		edits = append(edits, edit{c, p.from + i})
		// A vector of the kept text is of use only if the record hasn't one by now.
		if place := p.seen[c.ID].vector; place >= 0 && place < len(vectors) && (c.Content != nil || !was.projected) {
			projected = append(projected, worker.Projection{RecordID: c.ID, Version: was.version + 1, Vector: vectors[place]})
		}
	}
	b := &batch{}
	if l.Stage == task.Accepted {
		b.exec("insert plan", batchPlanSQL, pgx.NamedArgs{
			"task": l.TaskID, "workspace": l.WorkspaceID, "generation": l.Generation, "now": now,
		}, nil)
	}
	addEdits(b, editor{l.TaskID, l.WorkspaceID, l.Lane, &l.AcceptedAt}, edits, now)
	addVectors(b, l.WorkspaceID, vectorModel, projected, now)
	addBatchResults(b, l, results)
	return tx.send(ctx, b)
}

// verdictOn says what becomes of one change: it applies, or the code of why it doesn't.
func verdictOn(c command.Change, was target, live bool) memory.Result {
	result := memory.Result{RecordID: c.ID, Change: memory.Updated}
	switch {
	case !live:
		result.Change, result.Error = memory.None, string(fault.MemoryNotFound)
	case c.Version != nil && *c.Version != was.version:
		result.Change, result.Error = memory.None, string(fault.VersionConflict)
	case c.Delete:
		result.Change = memory.Deleted
	}
	return result
}

func addBatchResults(b *batch, l worker.Lease, results []memory.Result) {
	ordinals, records := make([]int32, len(results)), make([]uuid.UUID, len(results))
	events, codes := make([]string, len(results)), make([]string, len(results))
	for i, r := range results {
		ordinals[i] = int32(r.Ordinal) // #nosec G115 -- at most command.MaxBatch
		records[i], events[i], codes[i] = r.RecordID, string(r.Change), r.Error
	}
	b.exec("insert results", batchResultsSQL, pgx.NamedArgs{
		"task": l.TaskID, "workspace": l.WorkspaceID, "ordinals": ordinals, "records": records, "events": events,
		"codes": codes,
	}, nil)
}

// endBatch ends the task after its last piece, or before it on the caller's wish.
func (tx *Tx) endBatch(ctx context.Context, l worker.Lease, stopped bool, work worker.Work, now *time.Time) error {
	var stored bool
	b := &batch{}
	b.query("stored", batchStoredSQL, pgx.NamedArgs{"task": l.TaskID}, one(&stored))
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	outcome := task.Unchanged
	switch {
	case stopped:
		outcome = task.Partial
	case stored:
		outcome = task.Stored
	}
	b = &batch{}
	addFinish(b, l, outcome, now)
	addAttempt(b, l, endedSucceeded, "", 0, work, now)
	addCloseRun(b, l.TaskID, l.Generation, task.Succeeded, now)
	return tx.send(ctx, b)
}

// moved tells what became of a piece that touched nothing: it was applied before under the same lease, or the lease
// is lost. A piece of which nothing could be applied has left the cursor and, if it was the first, moved the stage.
func (j batchJob) moved(ctx context.Context, l worker.Lease) worker.Done {
	var status task.Status
	var stage task.Stage
	var cursor int64
	var mine bool
	err := j.db.alone(ctx, of(l.WorkspaceID), "where is it", whereInPiecesSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token},
		func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&status, &stage, &cursor, &mine); err != nil {
					return err
				}
			}
			return nil
		})
	switch {
	case err != nil:
		return worker.Done{Err: err}
	case mine && status == task.Running && (cursor > l.Cursor || stage == task.Committed && l.Stage == task.Accepted):
		return worker.Done{Cursor: cursor}
	}
	return worker.Done{Err: fault.ErrLeaseLost, Ended: status.Terminal()}
}
