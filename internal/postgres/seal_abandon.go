package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// ErrMasterConfigured says that this process has the master key that is to be given up.
var ErrMasterConfigured = errors.New("the master key is configured")

// Lost is what needs a master key. Each number of payloads is counted up to a bound.
type Lost struct {
	DataKeys   int64
	Workspaces int64
	Waiting    int64 // not committed, and nobody runs them
	Committed  int64 // and not ended, and nobody runs them
	Running    int64 // under a lease that has not expired
	Inputs     int64 // of failed tasks
	Exports    int64 // that are kept to be fetched
	Webhooks   int64
}

// lostTasksSQL names the tasks that need a data key under the master key, each sort up to @limit behind @after.
const lostTasksSQL = `
  SELECT id FROM (
    (SELECT t.id FROM data_keys k JOIN tasks t ON t.data_key = k.id
      WHERE k.master_key = @master AND t.id > @after ORDER BY t.id LIMIT @limit)
    UNION
    (SELECT p.task_id FROM data_keys k JOIN plans p ON p.data_key = k.id
      WHERE k.master_key = @master AND p.task_id > @after ORDER BY p.task_id LIMIT @limit)
    UNION
    (SELECT DISTINCT p.task_id FROM data_keys k JOIN task_parts p ON p.data_key = k.id
      WHERE k.master_key = @master AND p.task_id > @after ORDER BY p.task_id LIMIT @limit)) found
   ORDER BY id LIMIT @limit`

// leasedSQL tells of a task t that somebody runs it.
const leasedSQL = `(t.status = 'running' AND t.lease_until > (SELECT coalesce(@now::timestamptz, clock_timestamp())))`

const countLostSQL = `
WITH found AS (` + lostTasksSQL + `)
SELECT (SELECT count(*) FROM data_keys k WHERE k.master_key = @master),
       (SELECT count(DISTINCT k.workspace_id) FROM data_keys k WHERE k.master_key = @master),
       count(*) FILTER (WHERE t.stage = 'accepted' AND t.completed_at IS NULL AND NOT ` + leasedSQL + `),
       count(*) FILTER (WHERE t.stage = 'committed' AND NOT ` + leasedSQL + `),
       count(*) FILTER (WHERE ` + leasedSQL + `),
       count(*) FILTER (WHERE t.status = 'failed'),
       count(*) FILTER (WHERE t.status = 'succeeded'),
       (SELECT count(*) FROM data_keys k JOIN webhooks w ON w.data_key = k.id WHERE k.master_key = @master)
  FROM found JOIN all_tasks t ON t.id = found.id`

// LostUnder counts what needs a master key. ErrMasterConfigured while this process has it: then nothing is lost.
func (db *DB) LostUnder(ctx context.Context, master string) (Lost, error) {
	var lost Lost
	if db.hasMaster(master) {
		return lost, ErrMasterConfigured
	}
	args := pgx.NamedArgs{"master": master, "after": uuid.Nil, "limit": countedPayloads, "now": db.now()}
	err := db.read(ctx, unbound, "count what is lost", countLostSQL, args, func(rows pgx.Rows) (err error) {
		lost, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Lost])
		return err
	})
	return lost, err
}

// Abandoned is one page of giving a master key up.
type Abandoned struct {
	Failed   int // not committed: their holds are released
	GoOn     int // committed: what they need is there, or they end with what they have
	Inputs   int // of failed tasks, removed
	Exports  int // snapshots, removed
	Webhooks int // without a secret now, and disabled
	DataKeys int
	Stuck    int       // could not be done
	Reason   error     // the first reason of those
	After    uuid.UUID // the next page of tasks begins behind it
	More     bool
}

// lostTask is a task that needs the master key, as it was found.
type lostTask struct {
	ID        uuid.UUID
	Workspace uuid.UUID
	Status    task.Status
	Stage     task.Stage
	Leased    bool
}

// lostPageSQL answers the tasks that were found and are there.
const lostPageSQL = `
WITH found AS (` + lostTasksSQL + `)
SELECT t.id, t.workspace_id, t.status, t.stage, ` + leasedSQL + `
  FROM found JOIN all_tasks t ON t.id = found.id ORDER BY t.id`

// needsMasterSQL tells of a task t that its input needs the master key.
const needsMasterSQL = `(EXISTS (SELECT FROM data_keys k WHERE k.id = t.data_key AND k.master_key = @master)
        OR EXISTS (SELECT FROM task_parts p JOIN data_keys k ON k.id = p.data_key WHERE p.task_id = t.id AND k.master_key = @master))`

// AbandonTasks ends or lets go on up to limit tasks behind a place, each as far as nobody runs it: a task that is not
// committed fails with PAYLOAD_UNREADABLE and loses its input, one that is committed goes on without it. It may be broken
// off at any moment and begun anew. ErrMasterConfigured while this process has the master key.
func (db *DB) AbandonTasks(ctx context.Context, master string, after uuid.UUID, limit int) (Abandoned, error) {
	page := Abandoned{After: after}
	if db.hasMaster(master) {
		return page, ErrMasterConfigured
	}
	var found []lostTask
	args := pgx.NamedArgs{"master": master, "after": after, "limit": limit, "now": db.now()}
	err := db.read(ctx, unbound, "lost tasks", lostPageSQL, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[lostTask])
		return err
	})
	if err != nil {
		return page, err
	}
	page.More = len(found) > 0 // pages have gaps where tasks are gone
	for _, t := range found {
		if err := db.abandon(ctx, master, t, &page); err != nil {
			err = fmt.Errorf("event %s: %w", eventSubject(t.ID), err)
			if db.away(ctx, err) {
				return page, err
			}
			page.stuck(err)
		}
		page.After = t.ID
		failpoint.Hit("abandon.committed")
	}
	return page, nil
}

// Events is how many events something was done about.
func (p *Abandoned) Events() int { return p.Failed + p.GoOn + p.Inputs + p.Exports }

// Add adds the numbers of another page.
func (p *Abandoned) Add(page Abandoned) {
	p.Failed, p.GoOn, p.Inputs, p.Exports = p.Failed+page.Failed, p.GoOn+page.GoOn, p.Inputs+page.Inputs, p.Exports+page.Exports
	p.Webhooks, p.DataKeys, p.Stuck = p.Webhooks+page.Webhooks, p.DataKeys+page.DataKeys, p.Stuck+page.Stuck
	if p.Reason == nil {
		p.Reason = page.Reason
	}
}

// stuck counts what the others don't wait for.
func (p *Abandoned) stuck(err error) {
	p.Stuck++
	if p.Reason == nil {
		p.Reason = err
	}
}

func (db *DB) hasMaster(master string) bool {
	return db.sealer.Ring != nil && db.sealer.Ring.Has(master)
}

// abandon does what is to be done about one task in one transaction, and counts it.
func (db *DB) abandon(ctx context.Context, master string, t lostTask, page *Abandoned) error {
	count := func(n *int, done bool) {
		if done {
			*n++
		}
	}
	switch {
	case t.Leased: // its worker ends it, or its lease does
	case t.Status == task.Failed:
		done, err := db.abandonInput(ctx, master, t)
		count(&page.Inputs, done)
		return err
	case t.Stage == task.Accepted:
		moved, err := db.failIdle(ctx, t.ID, idle{
			name: "abandon", where: needsMasterSQL, args: pgx.NamedArgs{"master": master}, class: task.PayloadUnreadable,
			also: func(b *batch, at place) { addExpireInput(ctx, db, b, at.workspace, t.ID, master) },
		})
		count(&page.Failed, moved != nil)
		return err
	default:
		done, err := db.letGoOn(ctx, master, t)
		if t.Status == task.Succeeded {
			count(&page.Exports, done)
		} else {
			count(&page.GoOn, done)
		}
		return err
	}
	return nil
}

// addExpireInput removes the input of a failed task as its retention does, and records whose doing it is.
func addExpireInput(ctx context.Context, db *DB, b *batch, workspace, id uuid.UUID, master string) {
	now := db.now()
	b.exec("expire input", expireInputSQL, pgx.NamedArgs{"ids": []uuid.UUID{id}, "older": inSeconds(0), "now": now}, nil)
	addAct(ctx, b, now, act{workspace, operator.AbandonEncryption, master, nil})
}

// lockLostSQL takes a task that is as it was found, and still needs the master key.
const lockLostSQL = `
SELECT t.id FROM tasks t
 WHERE t.id = @task AND t.status = @status AND t.stage = @stage
   AND NOT ` + leasedSQL + `
   AND (` + needsMasterSQL + `
        OR EXISTS (SELECT FROM plans p JOIN data_keys k ON k.id = p.data_key WHERE p.task_id = t.id AND k.master_key = @master))
   FOR UPDATE OF t SKIP LOCKED`

// lock takes the task; false when it isn't as it was found, or somebody has it at this moment.
func (t lostTask) lock(ctx context.Context, tx *Tx, master string) (bool, error) {
	held := false
	b := &batch{}
	b.query("lock lost", lockLostSQL, pgx.NamedArgs{
		"task": t.ID, "status": string(t.Status), "stage": string(t.Stage), "master": master, "now": tx.db.now(),
	}, fence(&held))
	return held, tx.send(ctx, b)
}

func (db *DB) abandonInput(ctx context.Context, master string, t lostTask) (done bool, err error) {
	err = db.InTx(ctx, t.Workspace, func(ctx context.Context, tx *Tx) error {
		if done, err = t.lock(ctx, tx, master); err != nil || !done {
			return err
		}
		b := &batch{}
		addExpireInput(ctx, db, b, t.Workspace, t.ID, master)
		return tx.send(ctx, b)
	})
	return done && err == nil, err
}

// dropLostInputSQL removes what a committed task has of its input. An export has the place where it is, in plain text.
const dropLostInputSQL = `
UPDATE tasks t SET command = NULL, updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE t.id = @task AND t.stage = 'committed'
   AND EXISTS (SELECT FROM data_keys k WHERE k.id = t.data_key AND k.master_key = @master)`

// dropLostPartsSQL removes all parts when one is lost: an import then ends with what it has, an export that is being made
// begins anew, and one that is made answers that it is gone.
const dropLostPartsSQL = dropPartsSQL + `
   AND EXISTS (SELECT FROM task_parts p JOIN data_keys k ON k.id = p.data_key WHERE p.task_id = @task AND k.master_key = @master)`

// letGoOn removes what can't be opened of a task whose records are there. Of a conversation nothing is needed any more; a
// batch is stopped and an import finds no part, so that their worker ends them with what they have.
func (db *DB) letGoOn(ctx context.Context, master string, t lostTask) (done bool, err error) {
	err = db.InTx(ctx, t.Workspace, func(ctx context.Context, tx *Tx) error {
		if t.Stage == task.Projected {
			done, err = tx.dropArchivedParts(ctx, master, t)
			return err
		}
		if done, err = t.lock(ctx, tx, master); err != nil || !done {
			return err
		}
		now := tx.db.now()
		emptied := false
		args := pgx.NamedArgs{"task": t.ID, "master": master, "now": now}
		b := &batch{}
		b.query("drop lost input", dropLostInputSQL+` RETURNING t.id`, args, fence(&emptied))
		b.exec("scrub plan", scrubPlanSQL, pgx.NamedArgs{"task": t.ID}, nil)
		b.exec("drop lost parts", dropLostPartsSQL, args, nil)
		addAct(ctx, b, now, act{t.Workspace, operator.AbandonEncryption, master, nil})
		if err := tx.send(ctx, b); err != nil || !emptied {
			return err
		}
		failpoint.Hit("abandon.in_tx")
		_, err := tx.stopPieces(ctx, t.ID, func(task.Hint) {}) // the workers look for it themselves
		return err
	})
	return done && err == nil, err
}

// dropArchivedParts removes the snapshot of an export that has ended, wherever its task is kept.
func (tx *Tx) dropArchivedParts(ctx context.Context, master string, t lostTask) (done bool, err error) {
	dropped := int64(0)
	b := &batch{}
	b.exec("drop lost parts", dropLostPartsSQL, pgx.NamedArgs{"task": t.ID, "master": master}, func(rows int64) error {
		dropped = rows
		return nil
	})
	addAct(ctx, b, tx.db.now(), act{t.Workspace, operator.AbandonEncryption, master, nil})
	err = tx.send(ctx, b)
	return dropped > 0, err
}
