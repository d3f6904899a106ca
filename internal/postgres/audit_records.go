package postgres

import "github.com/holdfast-memory/holdfast/internal/audit"

// auditRecordSQL returns the query of a check of what commits have written.
//
// Where memories and history came from an import, or their event has been retired, that event is not in this database:
// only what local events have written is compared with them. No imported row names a local event.
func auditRecordSQL(check string) string {
	switch check {
	case audit.Plans:
		return auditPlansSQL
	case audit.Results:
		return auditResultsSQL
	case audit.Records:
		return auditRecordsSQL
	case audit.History:
		return auditHistorySQL
	case audit.Outcomes:
		return auditOutcomesSQL
	case audit.Terms:
		return auditTermsSQL
	case audit.Vectors:
		return auditVectorsSQL
	case audit.Failed:
		return auditFailedSQL
	case audit.Supersede:
		return auditSupersedeSQL
	}
	return ""
}

// auditPlansSQL: the delivery of a webhook commits nothing. A body is there from the commit to the end, and is compared
// if it can be read without a key.
const auditPlansSQL = `
SELECT 'a commit has no plan', t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
 WHERE t.stage <> 'accepted' AND t.kind <> 'webhook_delivery' AND NOT EXISTS (SELECT FROM plans p WHERE p.task_id = t.id)
UNION ALL
SELECT 'a plan is of an event that there is not', p.workspace_id, p.task_id, NULL
  FROM plans p
 WHERE NOT EXISTS (SELECT FROM all_tasks t WHERE t.id = p.task_id)
UNION ALL
SELECT 'a plan was not committed by the last run of its event', t.workspace_id, t.id, NULL
  FROM plans p
  JOIN all_tasks t ON t.id = p.task_id
 WHERE p.generation <> t.generation OR t.stage = 'accepted'
UNION ALL
SELECT DISTINCT 'a commit did not do what its plan says', p.workspace_id, p.task_id, NULL::uuid
  FROM (SELECT p.task_id, p.workspace_id, convert_from(p.body, 'UTF8')::json -> 'records' AS records
          FROM plans p
          JOIN tasks t ON t.id = p.task_id AND t.stage = 'committed'
         WHERE substring(p.body FROM 1 FOR 1) = convert_to('{', 'UTF8')) p
 CROSS JOIN LATERAL json_array_elements(p.records) WITH ORDINALITY AS planned (record, place)
  LEFT JOIN task_results r ON r.task_id = p.task_id AND r.ordinal = planned.place - 1
 WHERE r.record_id IS NULL OR r.event NOT IN ('ADD', 'NONE')
    OR r.event = 'ADD' AND r.record_id::text <> planned.record ->> 'id'`

// auditResultsSQL: an import replaces the history of a record that comes back after it was erased, with what came with
// it; then the results of before have none. A batch that was asked to stop may have passed changes without applying
// them, and one that an erase has ended stays where it was.
const auditResultsSQL = `
SELECT 'a result is of an event that there is not', r.workspace_id, r.task_id, r.record_id
  FROM task_results r
 WHERE NOT EXISTS (SELECT FROM all_tasks t WHERE t.id = r.task_id)
UNION ALL
SELECT 'a result has no history that says the same', r.workspace_id, r.task_id, r.record_id
  FROM task_results r
  JOIN all_tasks t ON t.id = r.task_id
  LEFT JOIN memory_history h ON h.task_id = r.task_id AND h.ordinal = r.ordinal AND h.workspace_id = r.workspace_id
 WHERE r.event <> 'NONE'
   AND (h.id IS NULL AND NOT (
          EXISTS (SELECT FROM all_tasks i WHERE i.workspace_id = r.workspace_id AND i.kind = 'import'
                     AND i.stage <> 'accepted' AND i.accepted_at > t.accepted_at)
          AND EXISTS (SELECT FROM memory_history x WHERE x.workspace_id = r.workspace_id AND x.memory_id = r.record_id
                         AND NOT EXISTS (SELECT FROM all_tasks o WHERE o.id = x.task_id)))
        OR h.memory_id <> r.record_id OR h.event <> r.event)
UNION ALL
SELECT 'history is of no result of its event', h.workspace_id, h.task_id, h.memory_id
  FROM memory_history h
  JOIN all_tasks t ON t.id = h.task_id
 WHERE NOT EXISTS (SELECT FROM task_results r WHERE r.task_id = h.task_id AND r.ordinal = h.ordinal AND r.event <> 'NONE')
UNION ALL
SELECT 'the results of an event have a gap', r.workspace_id, r.task_id, NULL
  FROM (SELECT r.task_id, r.workspace_id,
               count(*) FILTER (WHERE r.ordinal < ` + replacedFromSQL + `) AS planned,
               max(r.ordinal) FILTER (WHERE r.ordinal < ` + replacedFromSQL + `) AS last_planned,
               count(*) FILTER (WHERE r.ordinal >= ` + replacedFromSQL + `) AS replaced,
               max(r.ordinal) FILTER (WHERE r.ordinal >= ` + replacedFromSQL + `) - ` + replacedFromSQL + ` AS last_replaced
          FROM task_results r
         GROUP BY r.task_id, r.workspace_id) r
 WHERE r.planned <> coalesce(r.last_planned + 1, 0) OR r.replaced <> coalesce(r.last_replaced + 1, 0)
UNION ALL
SELECT 'a batch has not one result for each change', t.workspace_id, t.id, NULL
  FROM all_tasks t
  LEFT JOIN (SELECT r.task_id, count(*) AS n FROM task_results r GROUP BY r.task_id) r ON r.task_id = t.id
 WHERE t.kind IN ('memory_batch_update', 'memory_batch_delete') AND t.stage <> 'accepted' AND NOT t.erased
   AND CASE WHEN t.counts ->> 'cancel' = 'true' THEN coalesce(r.n, 0) > t.cursor
            WHEN t.status = 'succeeded' THEN coalesce(r.n, 0) <> (t.counts ->> 'total')::bigint
            ELSE coalesce(r.n, 0) <> t.cursor END`

// replacedFromSQL is replacedFrom.
const replacedFromSQL = `1000000`

const auditRecordsSQL = `
SELECT 'a memory is of no result of its event', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN all_tasks t ON t.id = m.task_id
  LEFT JOIN task_results r ON r.task_id = m.task_id AND r.record_id = m.id AND r.event = 'ADD'
 WHERE r.task_id IS NULL
UNION ALL
SELECT 'a memory has not the lane or the time of its event', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN all_tasks t ON t.id = m.task_id
 WHERE m.lane IS DISTINCT FROM t.lane OR m.accepted_at <> t.accepted_at
UNION ALL
SELECT 'a memory has not the scope of its event', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN all_tasks t ON t.id = m.task_id
 WHERE NOT t.erased
   AND (m.user_id, m.agent_id, m.run_id, m.app_id) IS DISTINCT FROM (t.user_id, t.agent_id, t.run_id, t.app_id)`

// auditHistorySQL: the history of an imported memory is as long as the snapshot's.
const auditHistorySQL = `
SELECT 'a memory has not one history row for each version', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN all_tasks t ON t.id = m.task_id
  LEFT JOIN (SELECT h.workspace_id, h.memory_id, count(*) AS n, count(DISTINCT h.version) AS versions, min(h.version) AS low,
                    max(h.version) AS high
               FROM memory_history h GROUP BY h.workspace_id, h.memory_id) h ON h.memory_id = m.id AND h.workspace_id = m.workspace_id
 WHERE coalesce(h.n, 0) <> m.version OR h.versions <> h.n OR h.low <> 1 OR h.high <> m.version
UNION ALL
SELECT 'a memory is not what its history says', m.workspace_id, h.task_id, m.id
  FROM memories m
  JOIN memory_history h ON h.workspace_id = m.workspace_id AND h.memory_id = m.id AND h.version = m.version
  JOIN all_tasks t ON t.id = h.task_id
 WHERE (h.event = 'DELETE') <> (m.deleted_at IS NOT NULL)
    OR h.event IN ('ADD', 'UPDATE') AND h.new_text IS DISTINCT FROM m.text
    OR h.event = 'INVALIDATE' AND (h.old_text IS DISTINCT FROM m.text OR m.valid_to IS NULL OR m.superseded_by IS NULL)`

// auditOutcomesSQL is about commands whose outcome follows from their results alone.
const auditOutcomesSQL = `
SELECT 'the outcome of an event is not that of its results', t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
  LEFT JOIN LATERAL (SELECT count(*) AS n, coalesce(bool_or(r.event <> 'NONE'), false) AS changed
                       FROM task_results r WHERE r.task_id = t.id) r ON true
 WHERE t.status = 'succeeded' AND t.kind IN ('memory_infer', 'memory_add', 'memory_item', 'memory_update', 'memory_delete')
   AND t.outcome IS DISTINCT FROM CASE WHEN r.changed THEN 'STORED' WHEN r.n > 0 THEN 'UNCHANGED' ELSE 'NO_MEMORY' END`

const auditTermsSQL = `
SELECT 'a live memory has no terms of its text', m.workspace_id, m.task_id, m.id
  FROM memories m
  LEFT JOIN memory_terms p ON p.memory_id = m.id
 WHERE m.deleted_at IS NULL AND (p.memory_id IS NULL OR p.content_key <> m.content_key)
UNION ALL
SELECT 'terms are newer than their memory', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN memory_terms p ON p.memory_id = m.id
 WHERE p.version > m.version
UNION ALL
SELECT 'terms are of a memory that is gone', p.workspace_id, NULL, p.memory_id
  FROM memory_terms p
 WHERE NOT EXISTS (SELECT FROM memories m WHERE m.id = p.memory_id AND m.deleted_at IS NULL)`

// auditVectorsSQL: a vector comes after the commit, so that a memory may wait for it as long as an event that changed it
// has not ended. What an open erase is about to remove waits for nothing any more.
const auditVectorsSQL = `
SELECT 'a live memory has no vector of its text and waits for none', m.workspace_id, m.task_id, m.id
  FROM memories m
  LEFT JOIN memory_vectors p ON p.memory_id = m.id AND p.content_key = m.content_key
  LEFT JOIN (SELECT DISTINCT r.record_id FROM task_results r
               JOIN tasks t ON t.id = r.task_id AND t.stage = 'committed'
              WHERE r.event IN ('ADD', 'UPDATE')) waits ON waits.record_id = m.id
 WHERE m.deleted_at IS NULL AND p.memory_id IS NULL AND waits.record_id IS NULL AND NOT ` + fencedRecordSQL + `
UNION ALL
SELECT 'a vector is newer than its memory', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN memory_vectors p ON p.memory_id = m.id
 WHERE p.version > m.version
UNION ALL
SELECT 'a vector is of a memory that is gone', p.workspace_id, NULL, p.memory_id
  FROM memory_vectors p
 WHERE NOT EXISTS (SELECT FROM memories m WHERE m.id = p.memory_id AND m.deleted_at IS NULL)
UNION ALL
SELECT 'a vector is missing and not skipped, or the other way round', p.workspace_id, NULL, p.memory_id
  FROM memory_vectors p
 WHERE p.skipped <> (p.vector IS NULL)`

const auditFailedSQL = `
SELECT 'an event without a commit has a memory', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN all_tasks t ON t.id = m.task_id
 WHERE t.stage = 'accepted'
UNION ALL
SELECT 'an event without a commit has history', h.workspace_id, h.task_id, h.memory_id
  FROM memory_history h
  JOIN all_tasks t ON t.id = h.task_id
 WHERE t.stage = 'accepted'
UNION ALL
SELECT 'an event without a commit has results', r.workspace_id, r.task_id, r.record_id
  FROM task_results r
  JOIN all_tasks t ON t.id = r.task_id
 WHERE t.stage = 'accepted'`

// auditSupersedeSQL is about memories whose latest change was that. Later ones may say when a text was said anew.
const auditSupersedeSQL = `
SELECT 'a memory was superseded by what was not said later', m.workspace_id, h.task_id, m.id
  FROM memories m
  JOIN memory_history h ON h.workspace_id = m.workspace_id AND h.memory_id = m.id AND h.version = m.version AND h.event = 'INVALIDATE'
  JOIN all_tasks t ON t.id = h.task_id
 WHERE m.said_at >= t.accepted_at OR m.valid_to IS DISTINCT FROM t.accepted_at
UNION ALL
SELECT 'a memory is superseded by nothing, or valid beside what superseded it', m.workspace_id, m.task_id, m.id
  FROM memories m
  JOIN all_tasks t ON t.id = m.task_id
 WHERE (m.valid_to IS NULL) <> (m.superseded_by IS NULL)`
