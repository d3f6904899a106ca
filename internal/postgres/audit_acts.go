package postgres

import "github.com/holdfast-memory/holdfast/internal/audit"

// auditActSQL returns the query of a check of the log of acts.
func auditActSQL(check string) string {
	if check == audit.Acts {
		return auditActsSQL
	}
	return ""
}

// auditActsSQL holds what tables tell against the log, and the log against them. Records and events may go after 30
// days, so what is nearly as old is not looked at. What is held against the log is found by its index of workspaces or
// read once.
const auditActsSQL = auditKeyActsSQL + ` UNION ALL ` + auditWorkspaceActsSQL + ` UNION ALL ` + auditGrantActsSQL +
	` UNION ALL ` + auditEventActsSQL

// recentSQL is from when on both sides are kept.
const recentSQL = `@at::timestamptz - interval '29 days'`

// auditKeyActsSQL: the keys of a deleted workspace are gone, and its deletion revokes them all.
const auditKeyActsSQL = `
SELECT 'a key has no record of its creation', k.workspace_id, NULL::uuid, NULL::uuid
  FROM api_keys k
  LEFT JOIN operator_acts a ON a.act = 'key.create' AND a.workspace_id = k.workspace_id AND a.subject = k.id
 WHERE k.created_at > ` + recentSQL + ` AND a.id IS NULL
UNION ALL
SELECT 'a key has no record of its end', k.workspace_id, NULL, NULL
  FROM api_keys k
 WHERE k.revoked_at > ` + recentSQL + `
   AND NOT EXISTS (SELECT FROM operator_acts a WHERE a.act = 'key.revoke' AND a.workspace_id = k.workspace_id AND a.subject = k.id)
   AND NOT EXISTS (SELECT FROM operator_acts a WHERE a.act = 'workspace.delete' AND a.workspace_id = k.workspace_id AND a.subject = k.workspace_id::text)
UNION ALL
SELECT 'the log tells of a key that there is not', a.workspace_id, NULL, NULL
  FROM operator_acts a
  LEFT JOIN workspaces w ON w.id = a.workspace_id
  LEFT JOIN api_keys k ON k.workspace_id = a.workspace_id AND k.id = a.subject
 WHERE a.act IN ('key.create', 'key.revoke') AND k.id IS NULL AND w.deletion IS NULL
UNION ALL
SELECT 'the log tells of the end of a key that goes on', a.workspace_id, NULL, NULL
  FROM operator_acts a
  JOIN api_keys k ON k.workspace_id = a.workspace_id AND k.id = a.subject
 WHERE a.act = 'key.revoke' AND k.revoked_at IS NULL
UNION ALL
SELECT 'a token of an operator has no record', NULL, NULL, NULL
  FROM operators o
 WHERE o.created_at > ` + recentSQL + ` AND NOT EXISTS (SELECT FROM operator_acts a WHERE a.workspace_id IS NULL AND a.act = 'operator.create' AND a.subject = o.id)
    OR o.revoked_at > ` + recentSQL + ` AND NOT EXISTS (SELECT FROM operator_acts a WHERE a.workspace_id IS NULL AND a.act = 'operator.revoke' AND a.subject = o.id)
UNION ALL
SELECT 'the log tells of a token of an operator that there is not', NULL, NULL, NULL
  FROM operator_acts a
  LEFT JOIN operators o ON o.id = a.subject
 WHERE a.act IN ('operator.create', 'operator.revoke') AND (o.id IS NULL OR a.act = 'operator.revoke' AND o.revoked_at IS NULL)`

// auditWorkspaceActsSQL: of suspending and resuming the last one counts. Two at one moment leave it open.
const auditWorkspaceActsSQL = `
SELECT 'a workspace has no record of its creation', w.id, NULL, NULL
  FROM workspaces w
  LEFT JOIN operator_acts a ON a.act = 'workspace.create' AND a.workspace_id = w.id AND a.subject = w.id::text
 WHERE w.created_at > ` + recentSQL + ` AND a.id IS NULL
UNION ALL
SELECT 'a suspended workspace has no record of it', w.id, NULL, NULL
  FROM workspaces w
 WHERE w.suspended_at > ` + recentSQL + `
   AND NOT EXISTS (SELECT FROM operator_acts a WHERE a.act = 'workspace.suspend' AND a.workspace_id = w.id AND a.subject = w.id::text)
UNION ALL
SELECT 'a workspace is suspended, or not, against the log', w.id, NULL, NULL
  FROM workspaces w
  JOIN (SELECT a.workspace_id, coalesce(max(a.at) FILTER (WHERE a.act = 'workspace.suspend'), '-infinity') AS suspended,
               coalesce(max(a.at) FILTER (WHERE a.act = 'workspace.resume'), '-infinity') AS resumed
          FROM operator_acts a WHERE a.act IN ('workspace.suspend', 'workspace.resume') GROUP BY a.workspace_id) l ON l.workspace_id = w.id
 WHERE w.deletion IS NULL
   AND CASE WHEN w.suspended_at IS NULL THEN l.suspended > l.resumed ELSE l.resumed > l.suspended END
UNION ALL
SELECT 'a workspace has no record of its deletion', w.id, w.deletion, NULL
  FROM workspaces w
  JOIN all_tasks t ON t.id = w.deletion
  LEFT JOIN operator_acts a ON a.act = 'workspace.delete' AND a.workspace_id = w.id AND a.subject = w.id::text
                           AND a.details->>'event' = 'evt_' || w.deletion
 WHERE t.accepted_at > ` + recentSQL + ` AND a.id IS NULL
UNION ALL
SELECT 'the log tells of a workspace that there is not, or of a deletion that did not begin', a.workspace_id, NULL, NULL
  FROM operator_acts a
  LEFT JOIN workspaces w ON w.id = a.workspace_id
 WHERE a.act LIKE 'workspace.%' AND w.id IS NULL OR a.act = 'workspace.delete' AND w.deletion IS NULL`

// auditGrantActsSQL: grants are never removed.
const auditGrantActsSQL = `
SELECT 'a grant has no record of its amount', g.workspace_id, NULL, NULL
  FROM credit_grants g
  LEFT JOIN operator_acts a ON a.act = 'credits.grant' AND a.workspace_id = g.workspace_id AND a.subject = g.reference
                           AND a.details->>'amount' = g.amount::text
 WHERE g.granted_at > ` + recentSQL + ` AND a.id IS NULL
UNION ALL
SELECT 'the log tells of a grant that there is not', a.workspace_id, NULL, NULL
  FROM operator_acts a
  LEFT JOIN credit_grants g ON g.workspace_id = a.workspace_id AND g.reference = a.subject AND g.amount::text = a.details->>'amount'
 WHERE a.act = 'credits.grant' AND g.id IS NULL`

// auditEventActsSQL: runs stay when their event is retired. An erase, a forget and a later revision cancel too, without
// an act for each event; while an erase is under way, what it has cancelled is not marked yet.
const auditEventActsSQL = `
SELECT 'an event was retried without a record', r.workspace_id, r.task_id, NULL
  FROM (SELECT r.workspace_id, r.task_id, count(*) AS n FROM task_runs r
         WHERE r.generation > 1 AND r.opened_at > ` + recentSQL + ` GROUP BY r.workspace_id, r.task_id) r
  LEFT JOIN (SELECT a.workspace_id, a.subject, count(*) AS n FROM operator_acts a
              WHERE a.act = 'event.retry' GROUP BY a.workspace_id, a.subject) a
    ON a.workspace_id = r.workspace_id AND a.subject = 'evt_' || r.task_id
 WHERE coalesce(a.n, 0) < r.n
UNION ALL
SELECT 'the log tells of a retry that there was not', a.workspace_id, NULL, NULL
  FROM (SELECT a.workspace_id, a.subject, count(*) AS n FROM operator_acts a
         WHERE a.act = 'event.retry' GROUP BY a.workspace_id, a.subject) a
  LEFT JOIN (SELECT r.workspace_id, r.task_id, count(*) AS n FROM task_runs r
              WHERE r.generation > 1 GROUP BY r.workspace_id, r.task_id) r
    ON r.workspace_id = a.workspace_id AND a.subject = 'evt_' || r.task_id
 WHERE coalesce(r.n, 0) < a.n
UNION ALL
SELECT 'an event was cancelled without a record', t.workspace_id, t.id, NULL
  FROM all_tasks t
  LEFT JOIN operator_acts a ON a.act = 'event.cancel' AND a.workspace_id = t.workspace_id AND a.subject = 'evt_' || t.id
 WHERE t.status = 'failed' AND t.error_code = 'CANCELLED' AND NOT t.erased
   AND t.kind IN ('memory_infer', 'memory_batch_update', 'memory_batch_delete')
   AND t.completed_at > ` + recentSQL + ` AND a.id IS NULL
   AND NOT EXISTS (SELECT FROM erasures e WHERE e.workspace_id = t.workspace_id AND e.erased_at <= t.completed_at)
UNION ALL
SELECT 'the log tells of a cancel of an event that went on', t.workspace_id, t.id, NULL
  FROM operator_acts a
  JOIN all_tasks t ON t.workspace_id = a.workspace_id AND a.subject = 'evt_' || t.id
 WHERE a.act = 'event.cancel' AND t.status = 'succeeded' AND t.generation = 1
   AND t.kind NOT IN ('memory_batch_update', 'memory_batch_delete')
UNION ALL
SELECT 'an erase, export or import has no record', t.workspace_id, t.id, NULL
  FROM all_tasks t
  LEFT JOIN workspaces w ON w.deletion = t.id
  LEFT JOIN operator_acts a ON a.workspace_id = t.workspace_id AND a.subject = 'evt_' || t.id
                           AND a.act = CASE t.kind WHEN 'scope_erase' THEN 'scope.erase' WHEN 'export' THEN 'workspace.export' ELSE 'workspace.import' END
 WHERE t.kind IN ('scope_erase', 'export', 'import') AND t.accepted_at > ` + recentSQL + `
   AND a.id IS NULL AND w.id IS NULL
UNION ALL
SELECT 'the log tells of an event that there is not', a.workspace_id, NULL, NULL
  FROM operator_acts a
  LEFT JOIN all_tasks t ON t.workspace_id = a.workspace_id AND a.subject = 'evt_' || t.id
 WHERE a.act IN ('event.cancel', 'event.retry', 'scope.erase', 'workspace.export', 'workspace.import')
   AND a.at > ` + recentSQL + ` AND t.id IS NULL`
