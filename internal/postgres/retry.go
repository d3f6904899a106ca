package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// reopenSQL opens a new generation of a failed task at the end of its lane. It comes after the statement that
// locked the lane. Without the input, or while an erase is about to remove it, there is nothing to run: the task stays
// as it is.
const reopenSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), lane AS (
  SELECT next_seq - 1 AS seq FROM lanes WHERE workspace_id = @workspace AND lane = @lane
), t AS (
  UPDATE tasks AS t
     SET status = 'pending', generation = t.generation + 1, crashes = 0, starts = 0, spent = '{}',
         run_after = clock.at, hint_seq = t.hint_seq + 1, hint_at = clock.at, priority = 'interactive',
         lane_seq = CASE WHEN t.lane_seq IS NULL THEN NULL ELSE lane.seq END,
         head = t.lane_seq IS NOT NULL
                AND NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = @workspace AND h.lane = @lane AND h.head),
         error_class = NULL, error_code = NULL, started_at = NULL, completed_at = NULL, updated_at = clock.at
    FROM clock, lane
   WHERE t.id = @task AND t.workspace_id = @workspace AND t.status = 'failed' AND t.command IS NOT NULL
     AND NOT ` + fencedTaskSQL + `
     AND (@generation::int IS NULL OR t.generation = @generation)
  RETURNING t.id, t.workspace_id, t.generation, t.hint_seq, t.priority, t.ready
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
  SELECT t.id, t.generation, t.workspace_id, @price, clock.at FROM t, clock
)
SELECT hint_seq, priority, ready FROM t`

const retryStateSQL = `
SELECT t.status, t.generation, t.command IS NOT NULL AND NOT ` + fencedTaskSQL + `
  FROM all_tasks t WHERE t.id = @task AND t.workspace_id = @workspace`

// Retry implements write.RetryStore.
func (db *DB) Retry(ctx context.Context, ask write.RetryAsk) (hint *task.Hint, replayed bool, err error) {
	at, err := db.placeOf(ctx, &ask.WorkspaceID, ask.TaskID)
	if err != nil {
		return nil, false, err
	}
	if at == nil {
		return nil, false, db.notHot(ctx, ask)
	}
	price := ask.Prices.Of(at.kind, ask.Metered)
	in := db.InTx
	if at.kind == task.Import { // its workspace must still be empty, and stay so
		in = db.InTxAlone
	}
	err = in(ctx, ask.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		hint, replayed = nil, false
		if ask.Claim != nil {
			holder, err := tx.claimKey(ctx, ask.WorkspaceID, ask.TaskID, *ask.Claim, true)
			if err != nil || holder != nil {
				replayed = err == nil
				return err
			}
		}
		if at.kind == task.Import {
			if err := tx.requireEmpty(ctx, ask.WorkspaceID, ask.TaskID); err != nil {
				return err
			}
		}
		var err error
		hint, err = tx.reopen(ctx, ask, *at, price)
		return err
	})
	failpoint.Hit("retry.committed")
	if errors.Is(err, errNotHere) { // already where the caller wants it: nothing was done, so the key is free
		return nil, false, nil
	}
	if errors.Is(err, errInsufficient) {
		err = db.insufficient(ctx, ask.WorkspaceID, price)
	}
	if err != nil {
		return nil, false, err
	}
	return hint, replayed, nil
}

// reopen opens the new generation, or answers errNotHere when the task has moved on already.
func (tx *Tx) reopen(ctx context.Context, ask write.RetryAsk, at place, price credit.Amount) (*task.Hint, error) {
	now := tx.db.now()
	opened, ready := false, false
	hint := task.Hint{TaskID: ask.TaskID, WorkspaceID: ask.WorkspaceID}
	var s retryState
	b := &batch{}
	if at.kind != task.Webhook { // a delivery isn't counted either
		if err := tx.addRoom(b, ask.WorkspaceID, 1); err != nil {
			return nil, err
		}
	}
	b.exec("take lane", takeLaneSQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "lane": at.lane[:], "now": now}, nil)
	b.query("reopen", reopenSQL, pgx.NamedArgs{
		"task": ask.TaskID, "workspace": ask.WorkspaceID, "lane": at.lane[:], "generation": ask.Generation,
		"price": price, "now": now,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			opened = true
			if err := rows.Scan(&hint.Seq, &hint.Priority, &ready); err != nil {
				return err
			}
		}
		return nil
	})
	b.query("retry state", retryStateSQL, pgx.NamedArgs{"task": ask.TaskID, "workspace": ask.WorkspaceID}, s.read)
	if err := tx.send(ctx, b); err != nil {
		return nil, err
	}
	if !opened {
		return nil, s.refusal(ask.Generation)
	}
	failpoint.Hit("retry.in_tx")
	b = &batch{}
	addAct(ctx, b, now, act{ask.WorkspaceID, operator.Retry, eventSubject(ask.TaskID), nil})
	addHold(b, ask.WorkspaceID, price)
	if err := tx.send(ctx, b); err != nil {
		return nil, err
	}
	if !ready {
		return nil, nil
	}
	return &hint, nil
}

// retryState is what decides the answer to a retry that opened nothing.
type retryState struct {
	found      bool
	status     task.Status
	generation int
	input      bool
}

func (s *retryState) read(rows pgx.Rows) error {
	*s = retryState{}
	for rows.Next() {
		s.found = true
		if err := rows.Scan(&s.status, &s.generation, &s.input); err != nil {
			return err
		}
	}
	return nil
}

// refusal answers errNotHere when the task is already where the caller wants it.
func (s *retryState) refusal(seen *int) error {
	switch {
	case !s.found:
		return fault.New(fault.EventNotFound)
	case seen != nil && *seen > s.generation:
		return fault.At(fault.InvalidRequest, "/generation", "not reached yet")
	case seen != nil && *seen < s.generation, s.status == task.Pending, s.status == task.Running:
		return errNotHere
	case s.status == task.Failed && !s.input:
		return fault.New(fault.InputExpired)
	default:
		return fault.New(fault.NotRetryable)
	}
}

// notHot answers a retry of a task that is not in the hot table: unknown, succeeded long ago, or failed and
// without its input.
func (db *DB) notHot(ctx context.Context, ask write.RetryAsk) error {
	var s retryState
	err := db.read(ctx, of(ask.WorkspaceID), "retry state", retryStateSQL, pgx.NamedArgs{
		"task": ask.TaskID, "workspace": ask.WorkspaceID,
	}, s.read)
	if err != nil {
		return err
	}
	if err := s.refusal(ask.Generation); !errors.Is(err, errNotHere) {
		return err
	}
	return nil
}
