package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// errFenced says that an open erase covers the command: it must not write anything.
const errFenced verdict = "an erase covers the command"

// The hash of one scope value of the row t, as a fence keeps it. The workspace is part of it, so that the same id
// looks different elsewhere; the length keeps values from running into what stands before them.
const (
	userHashSQL  = `sha256(convert_to('fence/1 user ' || t.workspace_id || ' ' || octet_length(t.user_id) || ':' || t.user_id, 'UTF8'))`
	agentHashSQL = `sha256(convert_to('fence/1 agent ' || t.workspace_id || ' ' || octet_length(t.agent_id) || ':' || t.agent_id, 'UTF8'))`
	runHashSQL   = `sha256(convert_to('fence/1 run ' || t.workspace_id || ' ' || octet_length(t.run_id) || ':' || t.run_id, 'UTF8'))`
	appHashSQL   = `sha256(convert_to('fence/1 app ' || t.workspace_id || ' ' || octet_length(t.app_id) || ':' || t.app_id, 'UTF8'))`
)

// coversSQL tells whether the fence e covers the row t: all values of the fence match, and t was accepted before it.
const coversSQL = `e.workspace_id = t.workspace_id AND e.erased_at >= t.accepted_at
           AND (e.user_hash IS NULL OR e.user_hash = ` + userHashSQL + `)
           AND (e.agent_hash IS NULL OR e.agent_hash = ` + agentHashSQL + `)
           AND (e.run_hash IS NULL OR e.run_hash = ` + runHashSQL + `)
           AND (e.app_hash IS NULL OR e.app_hash = ` + appHashSQL + `)`

// fencedTaskSQL is true while an open erase covers the task t. Nearly always there is no fence, and all it costs is a
// look into an empty index.
const fencedTaskSQL = `(t.kind <> 'scope_erase' AND EXISTS (SELECT FROM erasures e
         WHERE ` + coversSQL + `))`

// fencedRecordSQL is true while an open erase covers the record m. To whoever would change such a record it is gone.
const fencedRecordSQL = `EXISTS (SELECT FROM erasures e,
              (SELECT m.workspace_id, m.accepted_at, m.user_id, m.agent_id, m.run_id, m.app_id) AS t
         WHERE ` + coversSQL + `)`

const taskFencedSQL = `SELECT ` + fencedTaskSQL + ` FROM tasks t WHERE t.id = @task`

// addFenced reads whether an open erase covers the task. It follows the gate, so that a fence which isn't seen is
// later than everything that this transaction does.
func addFenced(b *batch, id uuid.UUID, fenced *bool) {
	b.query("fenced", taskFencedSQL, pgx.NamedArgs{"task": id}, func(rows pgx.Rows) error {
		*fenced = false
		for rows.Next() {
			if err := rows.Scan(fenced); err != nil {
				return err
			}
		}
		return nil
	})
}

// endFencedSQL ends a command that an open erase covers as the erase itself would: failed, its input removed.
const endFencedSQL = `
UPDATE tasks SET status = 'failed', head = false, lease_token = NULL, lease_until = NULL,
       crashes = greatest(crashes - 1, 0), error_class = 'cancelled', error_code = 'CANCELLED', command = NULL,
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'accepted'
RETURNING generation`

// endFenced ends a covered command in place of its canonical commit, which was rolled back.
func (db *DB) endFenced(ctx context.Context, l worker.Lease, work worker.Work) worker.Done {
	var done worker.Done
	err := db.InTx(ctx, l.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		done = worker.Done{Ended: true, Cancelled: true}
		now := tx.db.now()
		held := false
		b := &batch{}
		addLockLane(b, l.WorkspaceID, l.Lane)
		b.query("end fenced", endFencedSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token, "now": now}, fence(&held))
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		if !held {
			return errNotHere
		}
		b = &batch{}
		addNextHead(b, l.WorkspaceID, l.Lane, now, func(h task.Hint) { done.Head = &h })
		addAttempt(b, l, endedFailed, task.Cancelled, 0, work, now)
		addCloseRun(b, l.TaskID, l.Generation, task.Failed, now)
		return tx.send(ctx, b)
	})
	if errors.Is(err, errNotHere) {
		return db.ended(ctx, l)
	}
	if err != nil {
		return worker.Done{Err: err}
	}
	return done
}
