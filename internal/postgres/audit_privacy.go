package postgres

import "github.com/holdfast-memory/holdfast/internal/audit"

// auditPrivacySQL returns the query of a check of what must not be kept.
func auditPrivacySQL(check string) string {
	switch check {
	case audit.Input:
		return auditInputSQL
	case audit.Erased:
		return auditErasedSQL
	case audit.Leftovers:
		return auditLeftoversSQL
	case audit.Fences:
		return auditFencesSQL
	}
	return ""
}

// auditInputSQL: the parts of an export are its result and stay as long as its event.
const auditInputSQL = `
SELECT 'an event has succeeded and its input is kept', t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
 WHERE t.status = 'succeeded' AND t.command IS NOT NULL
UNION ALL
SELECT 'the archive has input', a.workspace_id, a.id, NULL
  FROM tasks_archive a
 WHERE a.status <> 'succeeded' AND a.command IS NOT NULL
UNION ALL
SELECT 'the input of a failed event is kept for too long', t.workspace_id, t.id, NULL
  FROM tasks t
 WHERE t.status = 'failed' AND t.command IS NOT NULL
   AND t.completed_at < @at::timestamptz - make_interval(secs => @input_kept)
UNION ALL
SELECT 'an event has ended and the body of its plan is kept', p.workspace_id, t.id, NULL
  FROM plans p
  JOIN all_tasks t ON t.id = p.task_id
 WHERE p.body IS NOT NULL AND t.completed_at IS NOT NULL
UNION ALL
SELECT DISTINCT 'an import has ended and its snapshot is kept', p.workspace_id, t.id, NULL::uuid
  FROM task_parts p
  JOIN all_tasks t ON t.id = p.task_id
 WHERE t.kind <> 'export' AND t.completed_at IS NOT NULL AND t.command IS NULL
UNION ALL
SELECT DISTINCT 'a part is of an event that there is not', p.workspace_id, p.task_id, NULL::uuid
  FROM task_parts p
 WHERE NOT EXISTS (SELECT FROM all_tasks t WHERE t.id = p.task_id)`

// auditErasedSQL: a finished erase has forgotten its scope, but not the lane of exactly that scope. Whatever was accepted
// there before it must be gone. What an import has brought back since is of no event of this database.
const auditErasedSQL = `
WITH erases AS MATERIALIZED (
  SELECT DISTINCT ON (t.workspace_id, t.lane) t.workspace_id, t.lane, t.id, t.accepted_at
    FROM all_tasks t
   WHERE t.kind = 'scope_erase' AND t.status = 'succeeded'
   ORDER BY t.workspace_id, t.lane, t.accepted_at DESC
)
SELECT 'an erased event names somebody or has input', t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
 WHERE t.erased AND (t.user_id IS NOT NULL OR t.agent_id IS NOT NULL OR t.run_id IS NOT NULL OR t.app_id IS NOT NULL
       OR t.item_key IS NOT NULL OR t.item_revision IS NOT NULL OR t.command IS NOT NULL)
UNION ALL
SELECT DISTINCT 'an erased event has a snapshot', t.workspace_id, t.id, NULL::uuid
  FROM task_parts p
  JOIN all_tasks t ON t.id = p.task_id
 WHERE t.erased
UNION ALL
SELECT 'a finished erase has left a memory', m.workspace_id, e.id, m.id
  FROM erases e
  JOIN memories m ON m.workspace_id = e.workspace_id AND m.lane = e.lane AND m.accepted_at <= e.accepted_at
  JOIN all_tasks t ON t.id = m.task_id
UNION ALL
SELECT 'a finished erase has left an event', t.workspace_id, t.id, NULL
  FROM erases e
  JOIN all_tasks t ON t.workspace_id = e.workspace_id AND t.lane = e.lane AND t.accepted_at <= e.accepted_at
 WHERE t.kind <> 'scope_erase' AND NOT t.erased`

// auditLeftoversSQL: a deleted memory keeps its row and its texts; one that was erased or forgotten has no row.
const auditLeftoversSQL = `
SELECT 'history says what a memory said that is gone', h.workspace_id, h.task_id, h.memory_id
  FROM memory_history h
 WHERE (h.old_text IS NOT NULL OR h.new_text IS NOT NULL)
   AND NOT EXISTS (SELECT FROM memories m WHERE m.id = h.memory_id AND m.workspace_id = h.workspace_id)
UNION ALL
SELECT 'feedback is of a memory that is gone', f.workspace_id, NULL, f.memory_id
  FROM memory_feedback f
 WHERE NOT EXISTS (SELECT FROM memories m WHERE m.id = f.memory_id AND m.deleted_at IS NULL)`

const auditFencesSQL = `
SELECT 'a fence has outlived its erase', e.workspace_id, e.task_id, NULL::uuid
  FROM erasures e
  LEFT JOIN all_tasks t ON t.id = e.task_id
 WHERE t.id IS NULL OR t.completed_at IS NOT NULL OR t.kind <> 'scope_erase'
UNION ALL
SELECT 'an erase runs without its fence', t.workspace_id, t.id, NULL
  FROM tasks t
 WHERE t.kind = 'scope_erase' AND t.completed_at IS NULL AND NOT EXISTS (SELECT FROM erasures e WHERE e.task_id = t.id)
UNION ALL
SELECT 'a fence has another time than its erase', e.workspace_id, e.task_id, NULL
  FROM erasures e
  JOIN tasks t ON t.id = e.task_id
 WHERE e.erased_at <> t.accepted_at`
