package postgres

import "github.com/holdfast-memory/holdfast/internal/audit"

// auditEdgeSQL returns the query of a check of what rows say of rows of other tables.
func auditEdgeSQL(check string) string {
	switch check {
	case audit.Tenancy:
		return auditTenancySQL
	case audit.Webhooks:
		return auditWebhooksSQL
	case audit.Items:
		return auditItemsSQL
	}
	return ""
}

// auditTenancySQL: what an erase leaves of the history of a memory may be in one workspace, and the memory in another
// one that has imported it.
const auditTenancySQL = `
SELECT 'a key and its event are of different workspaces', x.workspace_id, t.id, NULL::uuid
  FROM idempotency_keys x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a run and its event are of different workspaces', x.workspace_id, t.id, NULL
  FROM task_runs x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a closing and its run are of different workspaces', x.workspace_id, r.task_id, NULL
  FROM credit_closings x JOIN task_runs r ON r.task_id = x.task_id AND r.generation = x.generation WHERE x.workspace_id <> r.workspace_id
UNION ALL
SELECT 'a plan and its event are of different workspaces', x.workspace_id, t.id, NULL
  FROM plans x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a result and its event are of different workspaces', x.workspace_id, t.id, x.record_id
  FROM task_results x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'an attempt and its event are of different workspaces', x.workspace_id, t.id, NULL
  FROM task_attempts x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a part and its event are of different workspaces', x.workspace_id, t.id, NULL
  FROM task_parts x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a memory and its event are of different workspaces', x.workspace_id, t.id, x.id
  FROM memories x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'history and its event are of different workspaces', x.workspace_id, t.id, x.memory_id
  FROM memory_history x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'terms and their memory are of different workspaces', x.workspace_id, m.task_id, m.id
  FROM memory_terms x JOIN memories m ON m.id = x.memory_id WHERE x.workspace_id <> m.workspace_id
UNION ALL
SELECT 'a vector and its memory are of different workspaces', x.workspace_id, m.task_id, m.id
  FROM memory_vectors x JOIN memories m ON m.id = x.memory_id WHERE x.workspace_id <> m.workspace_id
UNION ALL
SELECT 'feedback and its memory are of different workspaces', x.workspace_id, m.task_id, m.id
  FROM memory_feedback x JOIN memories m ON m.id = x.memory_id WHERE x.workspace_id <> m.workspace_id
UNION ALL
SELECT 'an item and its event are of different workspaces', x.workspace_id, t.id, NULL
  FROM items x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a fence and its erase are of different workspaces', x.workspace_id, t.id, NULL
  FROM erasures x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a delivery and its event are of different workspaces', x.workspace_id, t.id, NULL
  FROM webhook_deliveries x JOIN all_tasks t ON t.id = x.task_id WHERE x.workspace_id <> t.workspace_id
UNION ALL
SELECT 'a delivery and its webhook are of different workspaces', x.workspace_id, x.task_id, NULL
  FROM webhook_deliveries x JOIN webhooks w ON w.id = x.webhook_id WHERE x.workspace_id <> w.workspace_id`

// auditWebhooksSQL: a delivery goes with its event. A place beyond the snapshot is one of another cluster, and is given
// up by the next look for news.
const auditWebhooksSQL = `
SELECT 'a delivery has no event', d.workspace_id, d.task_id, NULL::uuid
  FROM webhook_deliveries d
  LEFT JOIN all_tasks t ON t.id = d.task_id
 WHERE t.id IS NULL OR t.kind <> 'webhook_delivery'
UNION ALL
SELECT 'a delivery has no webhook', d.workspace_id, d.task_id, NULL
  FROM webhook_deliveries d
 WHERE NOT EXISTS (SELECT FROM webhooks w WHERE w.id = d.webhook_id)
UNION ALL
SELECT 'a webhook is ahead of what has happened', w.workspace_id, NULL, NULL
  FROM webhooks w
 WHERE w.deleted_at IS NULL AND w.feed_xid > pg_snapshot_xmin(pg_current_snapshot())`

// auditItemsSQL: the event of an imported item is in another database. An erase ends the events of items before it
// removes the items.
const auditItemsSQL = `
SELECT 'an item landed a revision that it has not reached', i.workspace_id, i.task_id, NULL::uuid
  FROM items i
 WHERE i.landed_revision > i.revision OR i.landed_revision < 0
UNION ALL
SELECT 'an item points to an event that is not of its revision', i.workspace_id, i.task_id, NULL
  FROM items i
  JOIN all_tasks t ON t.id = i.task_id
 WHERE t.kind <> 'memory_item'
    OR NOT t.erased AND (t.item_key, t.item_revision) IS DISTINCT FROM (i.item_key, i.revision)
UNION ALL
SELECT 'an event of an item waits to which its item does not point', t.workspace_id, t.id, NULL
  FROM tasks t
  LEFT JOIN items i ON i.workspace_id = t.workspace_id AND i.item_key = t.item_key
 WHERE t.kind = 'memory_item' AND t.completed_at IS NULL AND t.stage = 'accepted' AND i.task_id IS DISTINCT FROM t.id
UNION ALL
SELECT 'a memory is of an item with another id or account', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN items i ON i.workspace_id = m.workspace_id AND i.item_key = m.item_key
 WHERE m.item_id IS DISTINCT FROM i.item_id OR m.user_id IS DISTINCT FROM i.account`
