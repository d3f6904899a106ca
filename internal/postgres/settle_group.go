package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// holdAllCommittedSQL is the fence of a group's settlements, in the order of tasks: what it doesn't answer has lost its
// lease.
const holdAllCommittedSQL = `
SELECT i.task
  FROM (SELECT * FROM unnest(@tasks::uuid[], @tokens::uuid[]) AS i (task, token) ORDER BY 1) i
 CROSS JOIN LATERAL (
   SELECT 1 AS held FROM tasks t
    WHERE t.id = i.task AND t.status = 'running' AND t.lease_token = i.token AND t.stage = 'committed'
      FOR NO KEY UPDATE) h`

const allResultEventsSQL = `
SELECT task_id, event FROM task_results WHERE task_id = ANY(@tasks::uuid[]) ORDER BY task_id, ordinal`

// projectAllSQL is vectorsSQL for a group, in the order of records.
const projectAllSQL = `
INSERT INTO memory_vectors AS v (memory_id, workspace_id, version, content_key, model, vector, skipped, made_at)
SELECT m.id, m.workspace_id, m.version, m.content_key, p.model, p.vector, p.vector IS NULL,
       (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM (SELECT * FROM unnest(@ids::uuid[], @workspaces::uuid[], @versions::int[], @keys::bytea[], @models::text[], @vectors::bytea[])
                 AS p (id, workspace, version, content_key, model, vector) ORDER BY 1) p
 CROSS JOIN LATERAL (
   SELECT id, workspace_id, version, content_key FROM memories r
    WHERE r.id = p.id AND r.workspace_id = p.workspace AND r.deleted_at IS NULL
      FOR SHARE) m
 WHERE m.version = p.version OR m.content_key = p.content_key
ON CONFLICT (memory_id) DO UPDATE
   SET version = excluded.version, content_key = excluded.content_key, model = excluded.model,
       vector = excluded.vector, skipped = excluded.skipped, made_at = excluded.made_at
 WHERE v.version <= excluded.version`

// finishTasksSQL is finishSQL for a group whose rows are held.
const finishTasksSQL = `
UPDATE tasks AS t
   SET status = 'succeeded', stage = 'projected', outcome = i.outcome, command = NULL, lease_token = NULL,
       lease_until = NULL, crashes = greatest(t.crashes - 1, 0), error_class = NULL, error_code = NULL,
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@tasks::uuid[], @tokens::uuid[], @outcomes::text[]) AS i (task, token, outcome)
 WHERE t.id = i.task AND t.status = 'running' AND t.lease_token = i.token AND t.stage = 'committed'`

const scrubPlansSQL = `UPDATE plans SET body = NULL WHERE task_id = ANY(@tasks::uuid[]) AND body IS NOT NULL`

// settling is a task on its way through a group.
type settling struct {
	worker.Settle
	results []memory.Result
	held    bool
}

// settleGroup ends committed tasks in one transaction. One that has lost its lease falls out and leaves nothing behind;
// everyone does when something is locked for long or the transaction breaks.
func (db *DB) settleGroup(ctx context.Context, items []worker.Settle) []stepped {
	all := make([]*settling, len(items))
	workspaces := make([]uuid.UUID, len(items))
	for i, item := range items {
		all[i] = &settling{Settle: item}
		workspaces[i] = item.Lease.WorkspaceID
	}
	err := db.inGroup(ctx, distinct(workspaces), func(ctx context.Context, tx *Tx) error {
		if err := tx.lookSettled(ctx, all); err != nil {
			return err
		}
		in := slices.DeleteFunc(slices.Clone(all), func(s *settling) bool { return !s.held })
		if len(in) == 0 {
			return errNobody
		}
		failpoint.Hit("settle.in_tx")
		return tx.finishAll(ctx, in)
	})
	answers := make([]stepped, len(items))
	for i, s := range all {
		switch {
		case !s.held || err != nil && !isUnknown(err):
			answers[i].alone = true
		case err != nil:
			answers[i].Err = err
		default:
			answers[i].Ended = true
		}
	}
	if err == nil {
		failpoint.Hit("settle.committed")
	}
	return answers
}

func (tx *Tx) lookSettled(ctx context.Context, all []*settling) error {
	tasks, tokens := make([]uuid.UUID, len(all)), make([]uuid.UUID, len(all))
	byID := make(map[uuid.UUID]*settling, len(all))
	for i, s := range all {
		tasks[i], tokens[i], byID[s.Lease.TaskID] = s.Lease.TaskID, s.Lease.Token, s
	}
	b := &batch{}
	b.query("hold committed", holdAllCommittedSQL, pgx.NamedArgs{"tasks": tasks, "tokens": tokens}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			if err := rows.Scan(&id); err != nil {
				return err
			}
			byID[id].held = true
		}
		return nil
	})
	b.query("results", allResultEventsSQL, pgx.NamedArgs{"tasks": tasks}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var r memory.Result
			if err := rows.Scan(&id, &r.Change); err != nil {
				return err
			}
			byID[id].results = append(byID[id].results, r)
		}
		return nil
	})
	return tx.send(ctx, b)
}

// finishAll writes vectors, ends the tasks and settles their runs.
func (tx *Tx) finishAll(ctx context.Context, in []*settling) error {
	now := tx.db.now()
	n := len(in)
	tasks, tokens, outcomes := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]string, n)
	ends := make([]taskEnd, n)
	for i, s := range in {
		tasks[i], tokens[i], outcomes[i] = s.Lease.TaskID, s.Lease.Token, string(outcomeOf(s.results))
		ends[i] = taskEnd{s.Lease, s.Work}
	}
	b := &batch{}
	addProjectAll(b, in, now)
	b.exec("finish tasks", finishTasksSQL, pgx.NamedArgs{
		"tasks": tasks, "tokens": tokens, "outcomes": outcomes, "now": now,
	}, allOf(n))
	b.exec("scrub plans", scrubPlansSQL, pgx.NamedArgs{"tasks": tasks}, nil)
	addEnds(b, ends, now)
	return tx.send(ctx, b)
}

func addProjectAll(b *batch, in []*settling, now *time.Time) {
	var ids, workspaces []uuid.UUID
	var versions []int32
	var keys, vectors [][]byte
	var models []string
	for _, s := range in {
		for _, p := range s.Projected {
			ids, workspaces, models = append(ids, p.RecordID), append(workspaces, s.Lease.WorkspaceID), append(models, s.VectorModel)
			versions, vectors = append(versions, int32(p.Version)), append(vectors, encodeVector(p.Vector)) // #nosec G115 -- small
			var key []byte
			if p.Key != nil {
				key = p.Key[:]
			}
			keys = append(keys, key)
		}
	}
	if len(ids) == 0 {
		return
	}
	b.exec("vectors", projectAllSQL, pgx.NamedArgs{
		"ids": ids, "workspaces": workspaces, "versions": versions, "keys": keys, "models": models, "vectors": vectors, "now": now,
	}, nil)
}
