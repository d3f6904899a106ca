package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// lockCoveredSQL takes tasks that were found covered, which they stay, in id order, and tells what they are now.
// Another erase may have been here. A covered command that its worker has ended
// at the fence counts as cancelled by the erase: nobody else fails a task and removes its input at once.
const lockCoveredSQL = `
SELECT m.id, m.status, m.stage, m.generation, m.claims, m.worker_incarnation, m.claimed_at,
       m.status = 'failed' AND m.error_class = 'cancelled' AND m.command IS NULL AND m.completed_at >= e.placed_at
  FROM tasks m, (SELECT committed_at AS placed_at FROM tasks WHERE id = @task) e
 WHERE m.id = ANY(@ids::uuid[]) AND m.workspace_id = @workspace AND NOT m.erased
 ORDER BY m.id
   FOR UPDATE OF m`

// eraseTasksSQL ends the locked tasks: what has not committed fails, what has succeeds, what has ended loses its
// input. Nothing of their scope stays but the hash of the lane.
const eraseTasksSQL = `
UPDATE tasks AS t
   SET status = CASE WHEN t.stage = 'accepted' THEN 'failed' ELSE 'succeeded' END,
       stage = CASE WHEN t.stage = 'accepted' THEN 'accepted' ELSE 'projected' END,
       head = false, lease_token = NULL, lease_until = NULL,
       crashes = CASE WHEN t.status = 'running' THEN greatest(t.crashes - 1, 0) ELSE t.crashes END,
       outcome = CASE WHEN t.stage <> 'committed' THEN t.outcome
                      ELSE (SELECT CASE WHEN bool_or(r.event <> 'NONE') THEN 'STORED'
                                        WHEN count(*) > 0 THEN 'UNCHANGED' ELSE 'NO_MEMORY' END
                              FROM task_results r WHERE r.task_id = t.id) END,
       error_class = CASE WHEN t.completed_at IS NOT NULL THEN t.error_class
                          WHEN t.stage = 'accepted' THEN 'cancelled' END,
       error_code = CASE WHEN t.completed_at IS NOT NULL THEN t.error_code
                         WHEN t.stage = 'accepted' THEN 'CANCELLED' END,
       command = NULL, user_id = NULL, agent_id = NULL, run_id = NULL, app_id = NULL, item_key = NULL,
       item_revision = NULL, erased = true,
       completed_at = coalesce(t.completed_at, (SELECT coalesce(@now::timestamptz, clock_timestamp()))),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE t.id = ANY(@ids::uuid[]) AND t.workspace_id = @workspace`

// nextHeadsSQL is nextHeadSQL for several lanes.
const nextHeadsSQL = `
UPDATE tasks SET head = true, hint_seq = hint_seq + 1,
       hint_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id IN (SELECT (SELECT w.id FROM tasks w
                       WHERE w.workspace_id = @workspace AND w.lane = l.lane AND w.lane_seq IS NOT NULL AND NOT w.head
                         AND w.stage = 'accepted' AND w.completed_at IS NULL
                       ORDER BY w.lane_seq LIMIT 1)
                FROM unnest(@lanes::bytea[]) AS l (lane)
               WHERE NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = @workspace AND h.lane = l.lane AND h.head))
RETURNING id, hint_seq, priority`

// scrubTasksSQL removes what is kept of commands beside their tasks. A fence among it is that of an erase which the
// workspace's deletion has ended.
const scrubTasksSQL = `
WITH parts AS (
  DELETE FROM task_parts WHERE task_id = ANY(@ids::uuid[]) AND workspace_id = @workspace
), fences AS (
  DELETE FROM erasures WHERE task_id = ANY(@ids::uuid[]) AND workspace_id = @workspace
)
UPDATE plans SET body = NULL WHERE task_id = ANY(@ids::uuid[]) AND workspace_id = @workspace AND body IS NOT NULL`

// endedClaimsSQL writes the attempt rows of the claims that the erase has ended.
const endedClaimsSQL = `
INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class)
SELECT c.id, c.claim, @workspace, c.generation, c.worker, c.claimed_at,
       (SELECT coalesce(@now::timestamptz, clock_timestamp())), c.ending, CASE c.ending WHEN 'failed' THEN 'cancelled' END
  FROM unnest(@ids::uuid[], @claims::int[], @generations::int[], @workers::text[], @claimed::timestamptz[], @endings::text[])
       AS c (id, claim, generation, worker, claimed_at, ending)`

// closeRunsSQL is closeRunSQL for several runs of one workspace: the account is touched once, last.
const closeRunsSQL = `
WITH r AS (
  UPDATE task_runs AS r SET outcome = o.outcome
    FROM unnest(@ids::uuid[], @generations::int[], @outcomes::text[]) AS o (id, generation, outcome)
   WHERE r.task_id = o.id AND r.generation = o.generation AND r.outcome IS NULL
  RETURNING r.task_id, r.generation, r.workspace_id, r.amount, r.outcome
), c AS (
  INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
  SELECT task_id, generation, workspace_id, outcome, amount, CASE outcome WHEN 'succeeded' THEN amount ELSE 0 END,
         CASE outcome WHEN 'succeeded' THEN 0 ELSE amount END, (SELECT coalesce(@now::timestamptz, clock_timestamp()))
    FROM r
  RETURNING amount, released
), s AS (
  SELECT sum(amount)::bigint AS amount, sum(released)::bigint AS released FROM c HAVING sum(amount) > 0
), a AS (
  UPDATE credit_accounts AS a SET held = a.held - s.amount, available = a.available + s.released
    FROM s
   WHERE a.workspace_id = @workspace
)
SELECT count(*) FROM c`

// covered is a locked task of a piece.
type covered struct {
	ID         uuid.UUID
	Status     task.Status
	Stage      task.Stage
	Generation int
	Claim      int
	Worker     *string
	ClaimedAt  *time.Time
	Fenced     bool
}

func (c covered) outcome() task.Status {
	if c.Stage == task.Accepted {
		return task.Failed
	}
	return task.Succeeded
}

// eraseTasks ends the covered tasks of a piece under their lanes' locks.
func (tx *Tx) eraseTasks(ctx context.Context, l worker.Lease, piece *erasePiece, done *worker.Done) error {
	now := tx.db.now()
	held := false
	var found []covered
	b := &batch{}
	b.exec("lock lanes", lockLanesSQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "lanes": piece.lanes}, nil)
	if err := piece.addMove(b, l, now, &held); err != nil {
		return err
	}
	b.query("lock covered", lockCoveredSQL, pgx.NamedArgs{
		"ids": piece.ids, "workspace": l.WorkspaceID, "task": l.TaskID,
	}, func(rows pgx.Rows) error {
		var err error
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[covered])
		return err
	})
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	b = &batch{}
	addForgetPolicies(b, l, piece, forgetPoliciesSQL)
	if len(found) == 0 {
		return tx.sendSome(ctx, b)
	}
	addEraseTasks(b, l, found, now)
	b.query("pass heads", nextHeadsSQL, pgx.NamedArgs{"workspace": l.WorkspaceID, "lanes": piece.lanes, "now": now},
		func(rows pgx.Rows) error {
			done.Heads = nil
			for rows.Next() {
				hint := task.Hint{WorkspaceID: l.WorkspaceID}
				if err := rows.Scan(&hint.TaskID, &hint.Seq, &hint.Priority); err != nil {
					return err
				}
				done.Heads = append(done.Heads, hint)
			}
			return nil
		})
	addErased(b, l, 0, cancelledOf(found))
	addCloseRuns(b, l.WorkspaceID, found, now)
	return tx.send(ctx, b)
}

func cancelledOf(found []covered) int {
	n := 0
	for _, c := range found {
		if c.Fenced || !c.Status.Terminal() && c.outcome() == task.Failed {
			n++
		}
	}
	return n
}

func addEraseTasks(b *batch, l worker.Lease, found []covered, now *time.Time) {
	ids := make([]uuid.UUID, len(found))
	var claimed []uuid.UUID
	var claims, generations []int32
	var workers, endings []string
	var times []time.Time
	for i, c := range found {
		ids[i] = c.ID
		if c.Status != task.Running || c.ClaimedAt == nil {
			continue
		}
		claimed, times = append(claimed, c.ID), append(times, *c.ClaimedAt)
		claims, generations = append(claims, int32(c.Claim)), append(generations, int32(c.Generation)) // #nosec G115 -- small
		workers, endings = append(workers, orEmpty(c.Worker)), append(endings, string(c.outcome()))
	}
	b.exec("erase tasks", eraseTasksSQL, pgx.NamedArgs{"ids": ids, "workspace": l.WorkspaceID, "now": now}, nil)
	b.exec("scrub tasks", scrubTasksSQL, pgx.NamedArgs{"ids": ids, "workspace": l.WorkspaceID}, nil)
	if len(claimed) > 0 {
		b.exec("ended claims", endedClaimsSQL, pgx.NamedArgs{
			"workspace": l.WorkspaceID, "ids": claimed, "claims": claims, "generations": generations, "workers": workers,
			"claimed": times, "endings": endings, "now": now,
		}, nil)
	}
}

// addCloseRuns settles or releases the holds of those tasks that had not ended.
func addCloseRuns(b *batch, workspace uuid.UUID, found []covered, now *time.Time) {
	var ids []uuid.UUID
	var generations []int32
	var outcomes []string
	for _, c := range found {
		if !c.Status.Terminal() {
			ids, outcomes = append(ids, c.ID), append(outcomes, string(c.outcome()))
			generations = append(generations, int32(c.Generation)) // #nosec G115 -- small
		}
	}
	if len(ids) == 0 {
		return
	}
	b.query("close runs", closeRunsSQL, pgx.NamedArgs{
		"workspace": workspace, "ids": ids, "generations": generations, "outcomes": outcomes, "now": now,
	}, func(rows pgx.Rows) error {
		closed, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		if err == nil && closed != int64(len(ids)) {
			return errNoRun
		}
		return err
	})
}

// eraseArchivedSQL takes what the archive knows of whom its tasks were about. They have ended; their input is gone.
const eraseArchivedSQL = `
WITH old AS (
  SELECT m.id FROM tasks_archive m
   WHERE m.id = ANY(@ids::uuid[]) AND m.workspace_id = @workspace AND NOT m.erased
   ORDER BY m.id
     FOR UPDATE
)
UPDATE tasks_archive AS t
   SET command = NULL, user_id = NULL, agent_id = NULL, run_id = NULL, app_id = NULL, item_key = NULL,
       item_revision = NULL, erased = true, updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM old
 WHERE t.id = old.id`

func (tx *Tx) eraseArchived(ctx context.Context, l worker.Lease, piece *erasePiece) error {
	now := tx.db.now()
	held := false
	b := &batch{}
	if err := piece.addMove(b, l, now, &held); err != nil {
		return err
	}
	b.exec("erase archived", eraseArchivedSQL, pgx.NamedArgs{"ids": piece.ids, "workspace": l.WorkspaceID, "now": now}, nil)
	b.exec("scrub tasks", scrubTasksSQL, pgx.NamedArgs{"ids": piece.ids, "workspace": l.WorkspaceID}, nil)
	addForgetPolicies(b, l, piece, forgetArchivedPoliciesSQL)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !held {
		return errNotHere
	}
	failpoint.Hit("erase.in_tx")
	return nil
}
