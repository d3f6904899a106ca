package postgres

import "github.com/holdfast-memory/holdfast/internal/audit"

// auditTaskSQL returns the query of a check of events and their lanes.
func auditTaskSQL(check string) string {
	switch check {
	case audit.Keys:
		return auditKeysSQL
	case audit.States:
		return auditStatesSQL
	case audit.Leases:
		return auditLeasesSQL
	case audit.Attempts:
		return auditAttemptsSQL
	case audit.Order:
		return auditOrderSQL
	case audit.Heads:
		return auditHeadsSQL
	case audit.Archive:
		return auditArchiveSQL
	case audit.Stuck:
		return auditStuckSQL
	}
	return ""
}

// auditKeysSQL: deliveries of webhooks are nobody's command and have no key. A task and its keys are retired together.
const auditKeysSQL = `
SELECT 'a key names an event that there is not', k.workspace_id, k.task_id, NULL::uuid
  FROM idempotency_keys k
 WHERE NOT EXISTS (SELECT FROM all_tasks t WHERE t.id = k.task_id)
UNION ALL
SELECT 'an event has no key', t.workspace_id, t.id, NULL
  FROM all_tasks t
  LEFT JOIN idempotency_keys k ON k.workspace_id = t.workspace_id AND k.key_hash = t.key_hash AND NOT k.retry
 WHERE t.kind <> 'webhook_delivery' AND k.task_id IS NULL
UNION ALL
SELECT 'the key of an event names another one', t.workspace_id, t.id, NULL
  FROM all_tasks t
  JOIN idempotency_keys k ON k.workspace_id = t.workspace_id AND k.key_hash = t.key_hash AND NOT k.retry
 WHERE k.task_id <> t.id
UNION ALL
SELECT 'an event is named by a key that is not its own', k.workspace_id, t.id, NULL
  FROM idempotency_keys k
  JOIN all_tasks t ON t.id = k.task_id
 WHERE NOT k.retry AND k.key_hash IS DISTINCT FROM t.key_hash`

// auditStatesSQL asks again what constraints forbid: one that is missing after a restore is not missed here.
const auditStatesSQL = `
SELECT CASE
         WHEN t.status NOT IN ('pending', 'running', 'succeeded', 'failed')
           OR t.stage NOT IN ('accepted', 'committed', 'projected') THEN 'an event has no known status or stage'
         WHEN t.status = 'failed' AND t.stage <> 'accepted' THEN 'an event failed after its commit'
         WHEN (t.status = 'succeeded') <> (t.stage = 'projected') THEN 'an event has not succeeded as far as its stage says'
         WHEN (t.status IN ('succeeded', 'failed')) <> (t.completed_at IS NOT NULL) THEN 'an event has ended without its time, or not with it'
         WHEN (t.status = 'succeeded') <> (t.outcome IS NOT NULL) THEN 'an event has an outcome without success, or success without one'
         WHEN t.status = 'failed' AND t.error_code IS NULL THEN 'an event failed without a reason'
         WHEN t.status IN ('pending', 'running') AND t.stage = 'accepted' AND t.command IS NULL
           THEN 'an event waits for its commit and has no input'
         WHEN (t.stage <> 'accepted') <> (t.committed_at IS NOT NULL) THEN 'an event has the time of a commit without one, or the other way round'
       END AS what, t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
 WHERE t.status NOT IN ('pending', 'running', 'succeeded', 'failed')
    OR t.stage NOT IN ('accepted', 'committed', 'projected')
    OR t.status = 'failed' AND (t.stage <> 'accepted' OR t.error_code IS NULL)
    OR (t.status = 'succeeded') <> (t.stage = 'projected')
    OR (t.status IN ('succeeded', 'failed')) <> (t.completed_at IS NOT NULL)
    OR (t.status = 'succeeded') <> (t.outcome IS NOT NULL)
    OR t.status IN ('pending', 'running') AND t.stage = 'accepted' AND t.command IS NULL
    OR (t.stage <> 'accepted') <> (t.committed_at IS NOT NULL)`

// auditLeasesSQL: an expired lease may be its holder's still, until somebody takes it over; workers and repair do that
// within seconds.
const auditLeasesSQL = `
SELECT 'an event has a lease without running, or runs without one', t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
 WHERE (t.status = 'running') <> (t.lease_token IS NOT NULL) OR (t.lease_token IS NULL) <> (t.lease_until IS NULL)
    OR t.status = 'running' AND (t.claimed_at IS NULL OR t.worker_incarnation IS NULL OR t.claims = 0)
UNION ALL
SELECT 'an expired lease was taken over by nobody', t.workspace_id, t.id, NULL
  FROM tasks t
 WHERE t.status = 'running' AND t.lease_until < @at::timestamptz - make_interval(secs => @stuck)`

// auditAttemptsSQL: the claim of a running event has not ended. Crashes are counted when a claim begins.
const auditAttemptsSQL = `
SELECT 'an event has not one attempt for each claim that ended', t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
  LEFT JOIN (SELECT a.task_id, count(*) AS n, min(a.claim) AS low, max(a.claim) AS high FROM task_attempts a GROUP BY a.task_id) a
    ON a.task_id = t.id
 WHERE coalesce(a.n, 0) <> t.claims - (t.status = 'running')::int OR a.low < 1 OR a.high > t.claims - (t.status = 'running')::int
UNION ALL
SELECT 'an attempt is of an event that there is not', a.workspace_id, a.task_id, NULL
  FROM task_attempts a
 WHERE NOT EXISTS (SELECT FROM all_tasks t WHERE t.id = a.task_id)
UNION ALL
SELECT 'an event counts more starts or crashes than claims', t.workspace_id, t.id, NULL
  FROM all_tasks t
 WHERE t.crashes > t.claims OR t.starts > t.claims
UNION ALL
SELECT 'an event was claimed after its last crash', t.workspace_id, t.id, NULL
  FROM tasks t
 WHERE t.completed_at IS NULL AND t.stage = 'accepted' AND t.crashes > @max_attempts
UNION ALL
SELECT 'an event crashed too often without a crash', t.workspace_id, t.id, NULL
  FROM all_tasks t
 WHERE t.status = 'failed' AND t.error_code = 'ATTEMPTS_EXHAUSTED'
   AND NOT EXISTS (SELECT FROM task_attempts a
                    WHERE a.task_id = t.id AND a.generation = t.generation AND a.ending = 'crashed')`

// auditOrderSQL: a manual retry moves to the end of its lane and keeps the time at which it was accepted. Whoever
// commits holds the lane's row, so that times of commits grow with the database's clock.
const auditOrderSQL = `
SELECT CASE WHEN o.lane_seq = o.seq_before THEN 'two events have the same place in their lane'
            WHEN o.committed_at < o.committed_before THEN 'an event was committed before an earlier one of its lane'
            ELSE 'an event was accepted before an earlier one of its lane' END AS what, o.workspace_id, o.id, NULL::uuid
  FROM (SELECT t.workspace_id, t.id, t.lane_seq, t.committed_at, t.accepted_at, t.generation = 1 AS first_run,
               max(t.committed_at) OVER w AS committed_before,
               max(t.accepted_at) FILTER (WHERE t.generation = 1) OVER w AS accepted_before, max(t.lane_seq) OVER w AS seq_before
          FROM all_tasks t
         WHERE t.lane_seq IS NOT NULL
        WINDOW w AS (PARTITION BY t.workspace_id, t.lane ORDER BY t.lane_seq, t.accepted_at, t.id
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) o
 WHERE o.committed_at < o.committed_before OR o.first_run AND o.accepted_at <= o.accepted_before OR o.lane_seq = o.seq_before
UNION ALL
SELECT 'a lane has not given the place or the time of an event', t.workspace_id, t.id, NULL
  FROM all_tasks t
  LEFT JOIN lanes l ON l.workspace_id = t.workspace_id AND l.lane = t.lane
 WHERE t.lane_seq IS NOT NULL
   AND (l.lane IS NULL OR t.lane_seq < 1 OR t.lane_seq >= l.next_seq OR t.accepted_at > l.last_accepted_at)`

// auditHeadsSQL: numbers only grow and the lowest waiting one becomes head, so that nobody who waits is before it.
const auditHeadsSQL = `
WITH waiting AS MATERIALIZED (
  SELECT t.workspace_id, t.lane, t.lane_seq, t.id, t.head FROM tasks t
   WHERE t.lane_seq IS NOT NULL AND t.stage = 'accepted' AND t.completed_at IS NULL
), heads AS MATERIALIZED (
  SELECT w.workspace_id, w.lane, count(*) AS n, max(w.lane_seq) AS lane_seq FROM waiting w WHERE w.head GROUP BY w.workspace_id, w.lane
)
SELECT 'a lane has two heads', w.workspace_id, w.id, NULL::uuid
  FROM waiting w
  JOIN heads h ON h.workspace_id = w.workspace_id AND h.lane = w.lane
 WHERE w.head AND h.n > 1
UNION ALL
SELECT 'a lane whose events wait has no head', w.workspace_id, w.id, NULL
  FROM (SELECT DISTINCT ON (w.workspace_id, w.lane) w.workspace_id, w.lane, w.id FROM waiting w
         ORDER BY w.workspace_id, w.lane, w.lane_seq) w
  LEFT JOIN heads h ON h.workspace_id = w.workspace_id AND h.lane = w.lane
 WHERE h.lane IS NULL
UNION ALL
SELECT 'an event waits behind a later one', w.workspace_id, w.id, NULL
  FROM waiting w
  JOIN heads h ON h.workspace_id = w.workspace_id AND h.lane = w.lane
 WHERE NOT w.head AND w.lane_seq < h.lane_seq
UNION ALL
SELECT 'an event is head that does not wait', t.workspace_id, t.id, NULL
  FROM all_tasks t
 WHERE t.head AND (t.lane_seq IS NULL OR t.stage <> 'accepted' OR t.completed_at IS NOT NULL)`

const auditArchiveSQL = `
SELECT 'an event is in both tables', t.workspace_id, t.id, NULL::uuid
  FROM tasks t
  JOIN tasks_archive a ON a.id = t.id
UNION ALL
SELECT 'the archive has an event that has not ended', a.workspace_id, a.id, NULL
  FROM tasks_archive a
 WHERE a.completed_at IS NULL OR a.status NOT IN ('succeeded', 'failed')`

// auditStuckSQL: what is due may wait while others of its workspace are worked on; that is a backlog. It is stuck when
// nothing of its workspace has moved since. Nothing has to move in a suspended workspace, while a provider is paused, or
// under an open erase, which is not excused itself.
const auditStuckSQL = `
WITH moved AS MATERIALIZED (
  SELECT DISTINCT t.workspace_id, t.kind = 'webhook_delivery' AS delivery FROM tasks t
   WHERE greatest(t.claimed_at, t.completed_at) > @at::timestamptz - make_interval(secs => @stuck)
), due AS (
  SELECT t.workspace_id, t.id, t.kind, t.kind = 'webhook_delivery' AS delivery, t.stage = 'accepted' AND t.crashes >= @max_attempts AS exhausted
    FROM tasks t
   WHERE t.status = 'pending' AND (t.ready OR t.kind = 'webhook_delivery')
     AND t.run_after < @at::timestamptz - make_interval(secs => @stuck)
     AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = t.workspace_id AND (w.suspended_at IS NOT NULL OR w.paused_at IS NOT NULL))
     AND NOT ` + fencedTaskSQL + `
)
SELECT 'an event is due and nobody works on it', d.workspace_id, d.id, NULL::uuid
  FROM due d
 WHERE NOT d.exhausted
   AND NOT EXISTS (SELECT FROM moved m WHERE m.workspace_id = d.workspace_id AND m.delivery = d.delivery)
   AND (d.kind = 'scope_erase'
        OR NOT EXISTS (SELECT FROM provider_pauses p WHERE p.stopped_at IS NOT NULL OR p.paused_until > @at::timestamptz - make_interval(secs => @stuck)))
UNION ALL
SELECT 'an event crashed too often and nobody ended it', d.workspace_id, d.id, NULL
  FROM due d
 WHERE d.exhausted`
