package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// EraseJob runs erases in pieces. It implements worker.Job.
//
// The order of the phases is what makes an erase complete: tasks before records, so that nothing is left that could
// still write; the hot table before the archive, because tasks move from the one to the other and never back; current
// records before ended ones, for the same reason; and within a piece the records first and then, in a later statement,
// what is made from them, because a statement doesn't see what was committed while it waited for a lock.
type EraseJob struct{ db *DB }

// EraseJob returns the job of scope_erase tasks.
func (db *DB) EraseJob() EraseJob { return EraseJob{db} }

// phase is one part of an erase.
type phase string

const (
	phaseTasks   phase = "tasks"
	phaseArchive phase = "archive"
	phaseBatches phase = "batches"
	phaseCurrent phase = "current"
	phaseEnded   phase = "ended"
	phaseItems   phase = "items"
	phaseCopies  phase = "copies"
	phaseRest    phase = "rest"
	phaseEnd     phase = "end"
)

// after is the order of the phases.
func (p phase) after() phase {
	switch p {
	case phaseTasks:
		return phaseArchive
	case phaseArchive:
		return phaseBatches
	case phaseBatches:
		return phaseCurrent
	case phaseCurrent:
		return phaseEnded
	case phaseEnded:
		return phaseItems
	case phaseItems:
		return phaseCopies
	case phaseCopies:
		return phaseRest
	case phaseRest, phaseEnd:
	}
	return phaseEnd
}

// erasePlace is how far an erase is: the phase and the last row of it that was looked at. It is kept in the task's
// payload, names nobody and goes with the end. It is never sealed: an erase needs no key to go on.
type erasePlace struct {
	Phase phase     `json:"phase"`
	Kind  string    `json:"kind,omitempty"`
	At    time.Time `json:"at,omitzero"`
	ID    uuid.UUID `json:"id,omitzero"`
	Key   []byte    `json:"key,omitempty"`
}

// next is the beginning of the next phase.
func (p erasePlace) next() erasePlace { return erasePlace{Phase: p.Phase.after()} }

// erasePiece is what one piece is about: up to so many rows, and where the next piece begins.
type erasePiece struct {
	at       phase
	to       erasePlace
	erasedAt time.Time
	ids      []uuid.UUID
	keys     [][]byte // of items
	lanes    [][]byte
}

const erasePlaceSQL = `
SELECT t.command, e.erased_at
  FROM tasks t JOIN erasures e ON e.task_id = t.id
 WHERE t.id = @task AND t.status = 'running' AND t.lease_token = @token AND t.cursor = @cursor`

// Next implements worker.Job: it looks for the next rows that the erase covers, outside of every lock. What has
// changed by the time the piece is applied is left out there, and found again in the phase to which it has moved.
func (j EraseJob) Next(ctx context.Context, l worker.Lease) (worker.Chunk, error) {
	var place erasePlace
	piece := &erasePiece{}
	found := false
	err := j.db.read(ctx, of(l.WorkspaceID), "place of erase", erasePlaceSQL, pgx.NamedArgs{
		"task": l.TaskID, "token": l.Token, "cursor": l.Cursor,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var kept []byte
			if err := rows.Scan(&kept, &piece.erasedAt); err != nil {
				return err
			}
			found = true
			place = erasePlace{Phase: phaseTasks}
			if kept == nil {
				continue
			}
			if err := json.Unmarshal(kept, &place); err != nil {
				return fmt.Errorf("read place: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return worker.Chunk{}, err
	}
	if !found {
		return worker.Chunk{}, fault.ErrLeaseLost
	}
	if err := j.look(ctx, l, place, piece); err != nil {
		return worker.Chunk{}, err
	}
	return worker.Chunk{State: piece}, nil
}

// eraseWindows is how many windows are looked through for one piece: between two pieces a stop of the worker is
// noticed and the place is kept.
const eraseWindows = 20

// look fills the piece with the next covered rows behind place.
func (j EraseJob) look(ctx context.Context, l worker.Lease, place erasePlace, piece *erasePiece) error {
	for range eraseWindows {
		piece.at = place.Phase
		if place.Phase == phaseEnd {
			return nil
		}
		to, err := j.window(ctx, l, place, piece)
		if err != nil {
			return err
		}
		piece.to = to
		if len(piece.ids) > 0 || len(piece.keys) > 0 {
			return nil
		}
		place = to
	}
	return nil
}

func (j EraseJob) window(ctx context.Context, l worker.Lease, place erasePlace, piece *erasePiece) (erasePlace, error) {
	switch place.Phase {
	case phaseTasks:
		return j.taskWindow(ctx, "tasks", l, place, piece)
	case phaseArchive:
		return j.taskWindow(ctx, "tasks_archive", l, place, piece)
	case phaseBatches:
		return j.batchWindow(ctx, l, place, piece)
	case phaseCurrent, phaseEnded:
		return j.recordWindow(ctx, l, place, piece)
	case phaseItems:
		return j.itemWindow(ctx, l, place, piece)
	case phaseCopies:
		return j.copyWindow(ctx, l, place, piece)
	case phaseRest:
		return j.restWindow(ctx, l, place, piece)
	case phaseEnd:
	}
	return erasePlace{Phase: phaseEnd}, nil
}

// moveEraseSQL is the fence of a piece: it holds the task's row to the commit and moves the place in the same
// statement.
const moveEraseSQL = `
UPDATE tasks SET cursor = cursor + 1, command = @place, updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'committed' AND cursor = @cursor
RETURNING generation`

const countErasedSQL = `
UPDATE tasks
   SET counts = jsonb_build_object('deleted', coalesce((counts ->> 'deleted')::bigint, 0) + @deleted,
                                   'cancelled', coalesce((counts ->> 'cancelled')::bigint, 0) + @cancelled)
 WHERE id = @task AND workspace_id = @workspace`

// Apply implements worker.Job.
func (j EraseJob) Apply(ctx context.Context, l worker.Lease, chunk worker.Chunk, _ string, _ []model.Vector, work worker.Work) worker.Done {
	piece, ok := chunk.State.(*erasePiece)
	if !ok {
		return worker.Done{Err: errors.New("erase: the piece was not read")}
	}
	var done worker.Done
	err := j.db.InTx(ctx, l.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		done = worker.Done{Cursor: l.Cursor + 1}
		switch piece.at {
		case phaseTasks:
			return tx.eraseTasks(ctx, l, piece, &done)
		case phaseArchive:
			return tx.eraseArchived(ctx, l, piece)
		case phaseBatches:
			return tx.eraseFromBatches(ctx, l, piece)
		case phaseCurrent, phaseEnded:
			return tx.eraseRecords(ctx, l, piece)
		case phaseItems:
			return tx.eraseItems(ctx, l, piece)
		case phaseCopies:
			return tx.eraseCopies(ctx, l, piece)
		case phaseRest:
			return tx.eraseRest(ctx, l, piece)
		case phaseEnd:
			done.Ended = true
			return tx.endErase(ctx, l, work)
		}
		return fmt.Errorf("erase: unknown phase %q", piece.at)
	})
	if errors.Is(err, errNotHere) {
		return j.db.movedPiece(ctx, l)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	failpoint.Hit("erase.piece_committed")
	return done
}

// addMove adds the fence of a piece.
func (p *erasePiece) addMove(b *batch, l worker.Lease, now *time.Time, held *bool) error {
	place, err := json.Marshal(p.to)
	if err != nil {
		return fmt.Errorf("encode place: %w", err)
	}
	b.query("move erase", moveEraseSQL, pgx.NamedArgs{
		"task": l.TaskID, "token": l.Token, "cursor": l.Cursor, "place": place, "now": now,
	}, fence(held))
	return nil
}

func addErased(b *batch, l worker.Lease, deleted, cancelled int) {
	if deleted == 0 && cancelled == 0 {
		return
	}
	b.exec("count erased", countErasedSQL, pgx.NamedArgs{
		"task": l.TaskID, "workspace": l.WorkspaceID, "deleted": deleted, "cancelled": cancelled,
	}, nil)
}

// endEraseSQL ends an erase. Its own scope goes with it, so that nothing names whom it was about.
const endEraseSQL = `
UPDATE tasks SET status = 'succeeded', stage = 'projected', command = NULL, lease_token = NULL, lease_until = NULL,
       crashes = greatest(crashes - 1, 0), cursor = cursor + 1, error_class = NULL, error_code = NULL, erased = true,
       user_id = NULL, agent_id = NULL, run_id = NULL, app_id = NULL,
       outcome = CASE WHEN counts IS NULL THEN 'UNCHANGED' ELSE 'STORED' END,
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'committed' AND cursor = @cursor
RETURNING generation`

const dropFenceSQL = `DELETE FROM erasures WHERE task_id = @task AND workspace_id = @workspace`

// endErase removes the fence and ends the task: nothing that it covered is left.
func (tx *Tx) endErase(ctx context.Context, l worker.Lease, work worker.Work) error {
	now := tx.db.now()
	held := false
	b := &batch{}
	b.query("end erase", endEraseSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token, "cursor": l.Cursor, "now": now}, fence(&held))
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	b = &batch{}
	b.exec("drop fence", dropFenceSQL, pgx.NamedArgs{"task": l.TaskID, "workspace": l.WorkspaceID}, nil)
	if deletes(l) {
		addEndWorkspace(b, l, now)
	}
	addAttempt(b, l, endedSucceeded, "", 0, work, now)
	addCloseRun(b, l.TaskID, l.Generation, task.Succeeded, now)
	return tx.send(ctx, b)
}

const wherePieceSQL = `
SELECT status, coalesce(lease_token = @token, false), cursor FROM all_tasks WHERE id = @task`

// movedPiece tells what became of a piece that touched nothing: it was done before under the same lease, or the
// lease is lost.
func (db *DB) movedPiece(ctx context.Context, l worker.Lease) worker.Done {
	var status task.Status
	var mine bool
	var cursor int64
	err := db.read(ctx, of(l.WorkspaceID), "where is the piece", wherePieceSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token},
		func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&status, &mine, &cursor); err != nil {
					return err
				}
			}
			return nil
		})
	switch {
	case err != nil:
		return worker.Done{Err: err}
	case mine && status == task.Running && cursor == l.Cursor+1:
		return worker.Done{Cursor: cursor}
	}
	return worker.Done{Err: fault.ErrLeaseLost, Ended: status.Terminal()}
}

// eraseArgs returns the conditions of the erase's scope on the row m with their arguments, the workspace and the
// fence's time among them.
func eraseArgs(l worker.Lease, piece *erasePiece) (string, pgx.NamedArgs) {
	args := pgx.NamedArgs{"workspace": l.WorkspaceID, "erased_at": piece.erasedAt}
	return inScope(l.Scope, args), args
}
