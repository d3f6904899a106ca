package postgres

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// targetsSQL locks, in id order, the records that a plan wants to supersede, and answers those that still may be:
// live, of the command's own lane, and said before it (I10).
const targetsSQL = `
SELECT id, version
  FROM memories
 WHERE workspace_id = @workspace AND lane = @lane AND id = ANY(@targets::uuid[]) AND deleted_at IS NULL
   AND valid_to IS NULL AND said_at < @accepted_at
 ORDER BY id
   FOR UPDATE`

// supersedeSQL ends the validity of records in favour of new ones. Their text stays, in the record and in history;
// their projections keep step with the version, because the text they were made from is the same.
const supersedeSQL = `
WITH s AS (
  SELECT * FROM unnest(@targets::uuid[], @versions::int[], @by::uuid[], @ordinals::int[], @history::uuid[])
           AS s (id, version, by, ordinal, history_id)
), m AS (
  UPDATE memories AS m
     SET valid_to = @accepted_at, superseded_by = s.by, version = m.version + 1,
         updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
    FROM s
   WHERE m.id = s.id AND m.version = s.version AND m.workspace_id = @workspace
  RETURNING m.id, m.version, m.text, m.updated_at, s.ordinal, s.history_id
), t AS (
  UPDATE memory_terms AS t SET version = m.version FROM m WHERE t.memory_id = m.id AND t.version = m.version - 1
), v AS (
  UPDATE memory_vectors AS v SET version = m.version FROM m WHERE v.memory_id = m.id AND v.version = m.version - 1
)
INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, old_text, new_text, at)
SELECT m.history_id, @workspace, m.id, @task, m.ordinal, 'INVALIDATE', m.version, m.text, NULL, m.updated_at FROM m`

// addTargets locks the records that the plan wants to supersede and gives those that may be to found.
func addTargets(b *batch, l worker.Lease, plan memory.Plan, found *map[memory.Target]bool) {
	ids := targetsOf(plan)
	*found = make(map[memory.Target]bool, len(ids))
	if len(ids) == 0 {
		return
	}
	b.query("lock targets", targetsSQL, pgx.NamedArgs{
		"workspace": l.WorkspaceID, "lane": l.Lane[:], "targets": ids, "accepted_at": l.AcceptedAt,
	}, func(rows pgx.Rows) error {
		clear(*found)
		for rows.Next() {
			var t memory.Target
			if err := rows.Scan(&t.ID, &t.Version); err != nil {
				return err
			}
			(*found)[t] = true
		}
		return nil
	})
}

// targetsOf names the records that the plan wants to supersede.
func targetsOf(plan memory.Plan) []uuid.UUID {
	var ids []uuid.UUID
	for _, r := range plan.Records {
		if r.Supersedes != nil {
			ids = append(ids, r.Supersedes.ID)
		}
	}
	return ids
}

// superseded is one record that a record of the plan takes the place of.
type superseded struct {
	target  memory.Target
	by      uuid.UUID
	ordinal int
}

// supersede pairs added records with their targets, as far as these may still be superseded; each target once. The
// changes come after those of the plan's own records, so their ordinals begin there.
func supersede(plan memory.Plan, added []planned, targets map[memory.Target]bool) ([]memory.Result, []superseded) {
	var results []memory.Result
	var pairs []superseded
	taken := make(map[uuid.UUID]bool, len(targets))
	for _, r := range added {
		if r.Supersedes == nil || !targets[*r.Supersedes] || taken[r.Supersedes.ID] {
			continue
		}
		taken[r.Supersedes.ID] = true
		ordinal := len(plan.Records) + len(pairs)
		results = append(results, memory.Result{Ordinal: ordinal, RecordID: r.Supersedes.ID, Change: memory.Invalidated})
		pairs = append(pairs, superseded{*r.Supersedes, r.ID, ordinal})
	}
	return results, pairs
}

func addSupersede(b *batch, l worker.Lease, pairs []superseded, now *time.Time) {
	n := len(pairs)
	if n == 0 {
		return
	}
	targets, by, history := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n)
	versions, ordinals := make([]int32, n), make([]int32, n)
	for i, p := range pairs {
		targets[i], by[i], history[i] = p.target.ID, p.by, memory.HistoryID(l.TaskID, p.ordinal)
		versions[i], ordinals[i] = int32(p.target.Version), int32(p.ordinal) // #nosec G115 -- small numbers
	}
	b.exec("supersede", supersedeSQL, pgx.NamedArgs{
		"targets": targets, "versions": versions, "by": by, "ordinals": ordinals, "history": history,
		"accepted_at": l.AcceptedAt, "workspace": l.WorkspaceID, "task": l.TaskID, "now": now,
	}, nil)
}
