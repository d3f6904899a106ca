package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// holdAcceptedSQL is the fence of the canonical commit: zero rows, and the lease is lost. It holds the row to the commit
// and leaves its change to the statement that knows how the step ends.
const holdAcceptedSQL = `
SELECT generation FROM tasks
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'accepted'
   FOR NO KEY UPDATE`

// commitTaskSQL marks a task whose records are committed and not projected yet. The lane's head is given up here and
// passed on in the same transaction.
const commitTaskSQL = `
UPDATE tasks SET stage = 'committed', head = false,
       committed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'accepted'
RETURNING generation`

// completeTaskSQL is commitTaskSQL and finishSQL in one change of the row.
const completeTaskSQL = `
UPDATE tasks SET status = 'succeeded', stage = 'projected', head = false, outcome = @outcome, command = NULL,
       lease_token = NULL, lease_until = NULL, crashes = greatest(crashes - 1, 0), error_class = NULL, error_code = NULL,
       committed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'accepted'
RETURNING generation`

// insertPlanSQL freezes the plan. A task that ends in the same transaction keeps no body.
const insertPlanSQL = `
INSERT INTO plans (task_id, workspace_id, generation, body, created_at)
VALUES (@task, @workspace, @generation, @body, (SELECT coalesce(@now::timestamptz, clock_timestamp())))`

// resultsSQL keeps what the commit did, so that it can be told without any text.
const resultsSQL = `
INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event)
SELECT @task, r.ordinal, @workspace, r.record_id, r.event
  FROM unnest(@ordinals::int[], @records::uuid[], @events::text[]) AS r (ordinal, record_id, event)`

// finishSQL ends a task whose records are committed: nothing of its input stays.
const finishSQL = `
UPDATE tasks SET status = 'succeeded', stage = 'projected', outcome = @outcome, command = NULL, lease_token = NULL,
       lease_until = NULL, crashes = greatest(crashes - 1, 0), error_class = NULL, error_code = NULL,
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id = @task AND status = 'running' AND lease_token = @token AND stage = 'committed'
RETURNING generation`

// Commit implements worker.Steps.
func (db *DB) Commit(ctx context.Context, items []worker.Commit) []worker.Done {
	answers := make([]worker.Done, len(items))
	for i, item := range items {
		if db.steps != nil {
			answers[i] = db.steps.commit(ctx, item)
			continue
		}
		answers[i] = db.commit(ctx, item)
	}
	return answers
}

func (db *DB) commit(ctx context.Context, item worker.Commit) worker.Done {
	done, err := db.tryCommit(ctx, item, db.lockTimeout)
	switch {
	case errors.Is(err, errFenced):
		return db.endFenced(ctx, item.Lease, item.Work)
	case errors.Is(err, errNotHere):
		return db.moved(ctx, item.Lease)
	case err != nil:
		return worker.Done{Err: err}
	}
	return done
}

// tryCommit commits one plan or answers what is in its way: errFenced, errNotHere, or what the database says.
func (db *DB) tryCommit(ctx context.Context, item worker.Commit, patience string) (worker.Done, error) {
	l := item.Lease
	var done worker.Done
	err := db.inTx(ctx, db.opening(openSQL, l.WorkspaceID, patience), func(ctx context.Context, tx *Tx) error {
		done = worker.Done{Ended: item.Complete}
		now := tx.db.now()
		held, fenced := false, false
		var seen seenRecords
		b := &batch{}
		addCommitLanes(b, l)
		addFenced(b, l.TaskID, &fenced)
		b.query("hold accepted", holdAcceptedSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token}, fence(&held))
		addRepeats(b, l, item.Plan, now, &seen.repeats)
		addLockChanged(b, l, item.Plan)
		addTargets(b, l, item.Plan, &seen.targets)
		addItemRecords(b, l, &seen)
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		switch {
		case fenced:
			return errFenced
		case !held:
			return errNotHere
		}
		failpoint.Hit("commit.in_tx")
		return tx.writePlan(ctx, item, seen, now, &done)
	})
	if err != nil {
		return worker.Done{}, err
	}
	failpoint.Hit("commit.committed")
	return done, nil
}

// seenRecords is what the commit found of the lane's live records, under the lane's lock.
type seenRecords struct {
	repeats  map[memory.ContentKey]uuid.UUID
	targets  map[memory.Target]bool
	replaced []uuid.UUID // what an earlier revision of the item left
}

// writePlan writes everything that the commit makes visible: plan, records, history, terms, results and the next
// head; and with a local embedder also the vectors and the end of the task.
func (tx *Tx) writePlan(ctx context.Context, item worker.Commit, seen seenRecords, now *time.Time, done *worker.Done) error {
	l := item.Lease
	results, added := decide(item.Plan, seen.repeats)
	ended, pairs := supersede(item.Plan, added, seen.targets)
	results = append(results, ended...)
	results = append(results, replacedResults(l, seen.replaced)...)
	b := &batch{}
	if err := tx.addPlan(b, item, now); err != nil {
		return err
	}
	if item.Complete {
		addMove(b, "complete task", completeTaskSQL, l, outcomeOf(results), now)
	} else {
		addMove(b, "commit task", commitTaskSQL, l, "", now)
	}
	if l.Ordered {
		addNextHead(b, l.WorkspaceID, l.Lane, now, func(h task.Hint) { done.Head = &h })
	}
	addRecords(b, recordOwner{l.TaskID, l.WorkspaceID, l.Scope, l.Lane, &l.AcceptedAt}, added, now)
	addSupersede(b, l, pairs, now)
	addReplaceItem(b, l, seen.replaced, added, now)
	addResults(b, l.TaskID, l.WorkspaceID, results)
	if item.Complete {
		addVectors(b, l.WorkspaceID, item.VectorModel, vectorsOf(added, item), now)
		addAttempt(b, l, endedSucceeded, "", 0, item.Work, now)
		addCloseRun(b, l.TaskID, l.Generation, task.Succeeded, now)
	}
	return tx.send(ctx, b)
}

func (tx *Tx) addPlan(b *batch, item worker.Commit, now *time.Time) error {
	var body []byte
	if !item.Complete {
		var err error
		if body, err = item.Plan.Encode(); err != nil {
			return err
		}
		if body, err = tx.seal(atPlan(item.Lease.WorkspaceID, item.Lease.TaskID), body); err != nil {
			return err
		}
	}
	b.exec("insert plan", insertPlanSQL, pgx.NamedArgs{
		"task": item.Lease.TaskID, "workspace": item.Lease.WorkspaceID, "generation": item.Lease.Generation,
		"body": body, "now": now,
	}, nil)
	return nil
}

func addFinish(b *batch, l worker.Lease, outcome task.Outcome, now *time.Time) {
	addMove(b, "finish task", finishSQL, l, outcome, now)
}

// addMove changes the task's row under its token. The fence has held the row before, so that it is there.
func addMove(b *batch, name, sql string, l worker.Lease, outcome task.Outcome, now *time.Time) {
	args := pgx.NamedArgs{"task": l.TaskID, "token": l.Token, "now": now}
	if outcome != "" {
		args["outcome"] = string(outcome)
	}
	b.query(name, sql, args, func(rows pgx.Rows) error {
		if !rows.Next() {
			return fault.ErrLeaseLost
		}
		return nil
	})
}

// planned is a record of a plan with its ordinal and its place in the plan.
type planned struct {
	memory.Planned
	ordinal int
}

// decide says for each record of the plan whether it is added or repeats a live one of the lane, or an earlier
// one of the same plan. Verbatim records are always added.
func decide(plan memory.Plan, repeats map[memory.ContentKey]uuid.UUID) ([]memory.Result, []planned) {
	results := make([]memory.Result, 0, len(plan.Records))
	added := make([]planned, 0, len(plan.Records))
	seen := make(map[memory.ContentKey]uuid.UUID, len(plan.Records))
	for i, r := range plan.Records {
		key := memory.KeyOf(r.Text)
		id, repeat := repeats[key]
		if !repeat {
			id, repeat = seen[key]
		}
		if repeat && !r.Verbatim {
			results = append(results, memory.Result{Ordinal: i, RecordID: id, Change: memory.None})
			continue
		}
		seen[key] = r.ID
		results = append(results, memory.Result{Ordinal: i, RecordID: r.ID, Change: memory.Added})
		added = append(added, planned{r, i})
	}
	return results, added
}

// outcomeOf names what all that a commit did amounts to: an edit of an item that leaves nothing of what was there has
// changed something.
func outcomeOf(results []memory.Result) task.Outcome {
	if len(results) == 0 {
		return task.NoMemory
	}
	for _, r := range results {
		if r.Change != memory.None {
			return task.Stored
		}
	}
	return task.Unchanged
}

func addResults(b *batch, id, workspace uuid.UUID, results []memory.Result) {
	if len(results) == 0 {
		return
	}
	ordinals := make([]int32, len(results))
	records := make([]uuid.UUID, len(results))
	events := make([]string, len(results))
	for i, r := range results {
		ordinals[i], records[i], events[i] = int32(r.Ordinal), r.RecordID, string(r.Change) // #nosec G115 -- at most 500
	}
	b.exec("insert results", resultsSQL, pgx.NamedArgs{
		"task": id, "workspace": workspace, "ordinals": ordinals, "records": records, "events": events,
	}, nil)
}
