package postgres

import (
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const insertPlansSQL = `
INSERT INTO plans (task_id, workspace_id, generation, body, created_at)
SELECT p.task, p.workspace, p.generation, p.body, (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@tasks::uuid[], @workspaces::uuid[], @generations::int[], @bodies::bytea[]) AS p (task, workspace, generation, body)`

// commitTasksSQL is commitTaskSQL for a group whose rows are held.
const commitTasksSQL = `
UPDATE tasks AS t
   SET stage = 'committed', head = false,
       committed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@tasks::uuid[], @tokens::uuid[]) AS i (task, token)
 WHERE t.id = i.task AND t.status = 'running' AND t.lease_token = i.token AND t.stage = 'accepted'`

// completeTasksSQL is completeTaskSQL for a group whose rows are held.
const completeTasksSQL = `
UPDATE tasks AS t
   SET status = 'succeeded', stage = 'projected', head = false, outcome = i.outcome, command = NULL,
       lease_token = NULL, lease_until = NULL, crashes = greatest(t.crashes - 1, 0), error_class = NULL, error_code = NULL,
       committed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       completed_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@tasks::uuid[], @tokens::uuid[], @outcomes::text[]) AS i (task, token, outcome)
 WHERE t.id = i.task AND t.status = 'running' AND t.lease_token = i.token AND t.stage = 'accepted'`

// handHeadsOnSQL is nextHeadSQL for the lanes of a group.
const handHeadsOnSQL = `
UPDATE tasks AS t
   SET head = true, hint_seq = t.hint_seq + 1,
       hint_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@items::int[], @workspaces::uuid[], @lanes::bytea[]) AS i (item, workspace, lane)
 CROSS JOIN LATERAL (SELECT w.id FROM tasks w
                      WHERE w.workspace_id = i.workspace AND w.lane = i.lane AND w.lane_seq IS NOT NULL AND NOT w.head
                        AND w.stage = 'accepted' AND w.completed_at IS NULL
                      ORDER BY w.lane_seq LIMIT 1) w
 WHERE t.id = w.id
   AND NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = i.workspace AND h.lane = i.lane AND h.head)
RETURNING i.item, t.id, t.hint_seq, t.priority`

// insertAllRecordsSQL is insertRecordsSQL for a group: what the records of one command have in common is in the row of
// that command.
const insertAllRecordsSQL = `
WITH o AS (
  SELECT * FROM unnest(@items::int[], @tasks::uuid[], @workspaces::uuid[], @users::text[], @agents::text[], @runs::text[],
                       @apps::text[], @lanes::bytea[], @accepted_ats::timestamptz[])
           AS o (item, task, workspace, user_id, agent_id, run_id, app_id, lane, accepted_at)
), r AS (
  SELECT * FROM unnest(@owners::int[], @ids::uuid[], @ordinals::int[], @texts::text[], @types::text[], @roles::text[],
                       @keys::bytea[], @metadata::text[], @event_dates::timestamptz[], @history::uuid[],
                       @terms::text[], @counts::text[], @lengths::int[], @expiries::timestamptz[],
                       @categories::text[])
           AS r (owner, id, ordinal, text, type, role, content_key, metadata, event_date, history_id, terms, counts, length,
                 expires_at, categories)
), clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), m AS (
  INSERT INTO memories (id, workspace_id, task_id, user_id, agent_id, run_id, app_id, lane, text, type, role,
                        content_key, metadata, event_date, accepted_at, said_at, valid_from, expires_at, categories, created_at, updated_at)
  SELECT r.id, o.workspace, o.task, nullif(o.user_id, ''), nullif(o.agent_id, ''), nullif(o.run_id, ''), nullif(o.app_id, ''),
         o.lane, r.text, nullif(r.type, ''), nullif(r.role, ''), r.content_key, r.metadata::json, r.event_date,
         o.accepted_at, o.accepted_at, o.accepted_at, r.expires_at, r.categories::text[], clock.at, clock.at
    FROM r JOIN o ON o.item = r.owner, clock
), h AS (
  INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, old_text, new_text, at)
  SELECT r.history_id, o.workspace, r.id, o.task, r.ordinal, 'ADD', 1, NULL, r.text, clock.at
    FROM r JOIN o ON o.item = r.owner, clock
)
INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
SELECT r.id, o.workspace, 1, r.content_key, string_to_array(r.terms, ' '), string_to_array(r.counts, ' ')::smallint[], r.length
  FROM r JOIN o ON o.item = r.owner`

const insertAllResultsSQL = `
INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event)
SELECT r.task, r.ordinal, r.workspace, r.record_id, r.event
  FROM unnest(@tasks::uuid[], @workspaces::uuid[], @ordinals::int[], @records::uuid[], @events::text[])
       AS r (task, workspace, ordinal, record_id, event)`

// newVectorsSQL writes the vectors of records that the same transaction has added: nobody else has seen them.
const newVectorsSQL = `
INSERT INTO memory_vectors (memory_id, workspace_id, version, content_key, model, vector, skipped, made_at)
SELECT p.id, p.workspace, 1, p.content_key, p.model, p.vector, p.vector IS NULL,
       (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM unnest(@ids::uuid[], @workspaces::uuid[], @keys::bytea[], @models::text[], @vectors::bytea[])
       AS p (id, workspace, content_key, model, vector)`

func addPlans(b *batch, in []*committing, now *time.Time) {
	n := len(in)
	tasks, workspaces, generations, bodies := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]int32, n), make([][]byte, n)
	for i, c := range in {
		tasks[i], workspaces[i], bodies[i] = c.Lease.TaskID, c.Lease.WorkspaceID, c.body
		generations[i] = int32(c.Lease.Generation) // #nosec G115 -- a small number
	}
	b.exec("insert plans", insertPlansSQL, pgx.NamedArgs{
		"tasks": tasks, "workspaces": workspaces, "generations": generations, "bodies": bodies, "now": now,
	}, nil)
}

// allOf rolls the group back unless the statement has touched every one of its n rows.
func allOf(n int) func(rows int64) error {
	return func(rows int64) error {
		if rows != int64(n) {
			return fault.ErrLeaseLost
		}
		return nil
	}
}

// addCommitAll moves the tasks on that are still to be projected.
func addCommitAll(b *batch, in []*committing, now *time.Time) {
	var tasks, tokens []uuid.UUID
	for _, c := range in {
		if !c.Complete {
			tasks, tokens = append(tasks, c.Lease.TaskID), append(tokens, c.Lease.Token)
		}
	}
	if len(tasks) > 0 {
		b.exec("commit tasks", commitTasksSQL, pgx.NamedArgs{"tasks": tasks, "tokens": tokens, "now": now}, allOf(len(tasks)))
	}
}

func addCompleteAll(b *batch, ended []*committing, now *time.Time) {
	n := len(ended)
	if n == 0 {
		return
	}
	tasks, tokens, outcomes := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]string, n)
	for i, c := range ended {
		tasks[i], tokens[i], outcomes[i] = c.Lease.TaskID, c.Lease.Token, string(outcomeOf(c.results))
	}
	b.exec("complete tasks", completeTasksSQL, pgx.NamedArgs{
		"tasks": tasks, "tokens": tokens, "outcomes": outcomes, "now": now,
	}, allOf(n))
}

// addPassHeads passes the lanes on and keeps the new heads' hints.
func addPassHeads(b *batch, in []*committing, now *time.Time) {
	var items []int32
	var workspaces []uuid.UUID
	var lanes [][]byte
	for i, c := range in {
		if c.Lease.Ordered {
			items, workspaces = append(items, int32(i)), append(workspaces, c.Lease.WorkspaceID) // #nosec G115 -- a group's size
			lanes = append(lanes, c.Lease.Lane[:])
		}
	}
	if len(items) == 0 {
		return
	}
	b.query("hand heads on", handHeadsOnSQL, pgx.NamedArgs{"items": items, "workspaces": workspaces, "lanes": lanes, "now": now},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var item int
				var hint task.Hint
				if err := rows.Scan(&item, &hint.TaskID, &hint.Seq, &hint.Priority); err != nil {
					return err
				}
				hint.WorkspaceID = in[item].Lease.WorkspaceID
				in[item].head = &hint
			}
			return nil
		})
}

// addAllRecords adds the new records of all plans of the group.
func addAllRecords(b *batch, in []*committing, now *time.Time) {
	n := len(in)
	items, tasks, workspaces := make([]int32, n), make([]uuid.UUID, n), make([]uuid.UUID, n)
	users, agents, runs, apps := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	lanes, ats := make([][]byte, n), make([]time.Time, n)
	rows := &recordRows{}
	for i, c := range in {
		items[i], tasks[i], workspaces[i] = int32(i), c.Lease.TaskID, c.Lease.WorkspaceID // #nosec G115 -- a group's size
		users[i], agents[i], runs[i], apps[i] = c.Lease.Scope.UserID, c.Lease.Scope.AgentID, c.Lease.Scope.RunID, c.Lease.Scope.AppID
		lanes[i], ats[i] = c.Lease.Lane[:], c.Lease.AcceptedAt
		for _, r := range c.added {
			rows.add(items[i], c.Lease.TaskID, r)
		}
	}
	if len(rows.ids) == 0 {
		return
	}
	args := rows.args()
	maps.Copy(args, pgx.NamedArgs{
		"items": items, "tasks": tasks, "workspaces": workspaces, "users": users, "agents": agents, "runs": runs, "apps": apps,
		"lanes": lanes, "accepted_ats": ats, "owners": rows.owners, "now": now,
	})
	b.exec("insert records", insertAllRecordsSQL, args, nil)
}

func addAllResults(b *batch, in []*committing) {
	var tasks, workspaces, records []uuid.UUID
	var ordinals []int32
	var events []string
	for _, c := range in {
		for _, r := range c.results {
			tasks, workspaces, records = append(tasks, c.Lease.TaskID), append(workspaces, c.Lease.WorkspaceID), append(records, r.RecordID)
			ordinals, events = append(ordinals, int32(r.Ordinal)), append(events, string(r.Change)) // #nosec G115 -- at most 500
		}
	}
	if len(tasks) == 0 {
		return
	}
	b.exec("insert results", insertAllResultsSQL, pgx.NamedArgs{
		"tasks": tasks, "workspaces": workspaces, "ordinals": ordinals, "records": records, "events": events,
	}, nil)
}

func addNewVectors(b *batch, ended []*committing, now *time.Time) {
	var ids, workspaces []uuid.UUID
	var keys, vectors [][]byte
	var models []string
	for _, c := range ended {
		for i, p := range vectorsOf(c.added, c.Commit) {
			key := memory.KeyOf(c.added[i].Text)
			ids, workspaces, models = append(ids, p.RecordID), append(workspaces, c.Lease.WorkspaceID), append(models, c.VectorModel)
			keys, vectors = append(keys, key[:]), append(vectors, encodeVector(p.Vector))
		}
	}
	if len(ids) == 0 {
		return
	}
	b.exec("vectors", newVectorsSQL, pgx.NamedArgs{
		"ids": ids, "workspaces": workspaces, "keys": keys, "models": models, "vectors": vectors, "now": now,
	}, nil)
}
