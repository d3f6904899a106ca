package postgres

import "github.com/holdfast-memory/holdfast/internal/audit"

// auditMoneySQL returns the query of a check of runs and credits.
func auditMoneySQL(check string) string {
	switch check {
	case audit.Runs:
		return auditRunsSQL
	case audit.Closings:
		return auditClosingsSQL
	case audit.Balances:
		return auditBalancesSQL
	case audit.Checkpoints:
		return auditCheckpointsSQL
	}
	return ""
}

// auditRunsSQL: runs stay when their event is retired; one that is open then holds for nothing.
const auditRunsSQL = `
SELECT 'an event has not one run for each generation', t.workspace_id, t.id, NULL::uuid
  FROM all_tasks t
  LEFT JOIN (SELECT r.task_id, count(*) AS n, min(r.generation) AS low, max(r.generation) AS high FROM task_runs r GROUP BY r.task_id) r
    ON r.task_id = t.id
 WHERE coalesce(r.n, 0) <> t.generation OR r.low <> 1 OR r.high <> t.generation
UNION ALL
SELECT CASE WHEN r.outcome IS NULL THEN 'an event has ended and its run is open'
            WHEN t.completed_at IS NULL THEN 'an event has not ended and its run has'
            ELSE 'an event and its run ended differently' END, t.workspace_id, t.id, NULL
  FROM all_tasks t
  JOIN task_runs r ON r.task_id = t.id AND r.generation = t.generation
 WHERE r.outcome IS DISTINCT FROM CASE WHEN t.completed_at IS NOT NULL THEN t.status END
UNION ALL
SELECT 'an earlier run of an event did not fail', t.workspace_id, t.id, NULL
  FROM all_tasks t
  JOIN task_runs r ON r.task_id = t.id AND r.generation < t.generation
 WHERE r.outcome IS DISTINCT FROM 'failed'
UNION ALL
SELECT 'an open run is of an event that there is not', r.workspace_id, r.task_id, NULL
  FROM task_runs r
 WHERE r.outcome IS NULL AND NOT EXISTS (SELECT FROM all_tasks t WHERE t.id = r.task_id)`

const auditClosingsSQL = `
SELECT 'a run has ended and was neither settled nor released', r.workspace_id, r.task_id, NULL::uuid
  FROM task_runs r
 WHERE r.outcome IS NOT NULL
   AND NOT EXISTS (SELECT FROM credit_closings c WHERE c.task_id = r.task_id AND c.generation = r.generation)
UNION ALL
SELECT 'a closing is of no run that ended so', c.workspace_id, c.task_id, NULL
  FROM credit_closings c
  LEFT JOIN task_runs r ON r.task_id = c.task_id AND r.generation = c.generation
 WHERE r.outcome IS DISTINCT FROM c.outcome OR r.amount <> c.amount
UNION ALL
SELECT 'a closing has not settled or released the whole amount', c.workspace_id, c.task_id, NULL
  FROM credit_closings c
 WHERE c.settled + c.released <> c.amount OR c.settled < 0 OR c.released < 0
    OR CASE c.outcome WHEN 'succeeded' THEN c.released <> 0 ELSE c.settled <> 0 END`

// auditBalancesSQL adds up the whole journal, whatever reconciliation has added up before.
const auditBalancesSQL = `
SELECT CASE WHEN b.available < 0 OR b.held < 0 THEN 'a balance is below zero'
            WHEN b.held <> b.open THEN 'an account does not hold what its open runs do'
            ELSE 'a balance is not what the journal says' END, b.workspace, NULL::uuid, NULL::uuid
  FROM (SELECT workspace_id AS workspace, coalesce(a.available, 0) AS available, coalesce(a.held, 0) AS held, coalesce(g.amount, 0) AS granted,
               coalesce(s.amount, 0) AS settled, coalesce(o.amount, 0) AS open
          FROM credit_accounts a
          FULL JOIN (SELECT workspace_id, sum(amount) AS amount FROM credit_grants GROUP BY workspace_id) g USING (workspace_id)
          FULL JOIN (SELECT workspace_id, sum(settled) AS amount FROM credit_closings GROUP BY workspace_id) s USING (workspace_id)
          FULL JOIN (SELECT workspace_id, sum(amount) AS amount FROM task_runs WHERE outcome IS NULL GROUP BY workspace_id) o
               USING (workspace_id)) b
 WHERE b.available < 0 OR b.held < 0 OR b.held <> b.open OR b.available + b.held <> b.granted - b.settled`

// auditCheckpointsSQL leaves out a checkpoint of another cluster, which counts as none.
const auditCheckpointsSQL = `
SELECT 'a checkpoint is not the sum of the journal before it', c.workspace_id, NULL::uuid, NULL::uuid
  FROM credit_checkpoints c
  LEFT JOIN (SELECT g.workspace_id, sum(g.amount) AS amount FROM credit_grants g
               JOIN credit_checkpoints c ON c.workspace_id = g.workspace_id AND g.xid < c.horizon
              GROUP BY g.workspace_id) g ON g.workspace_id = c.workspace_id
  LEFT JOIN (SELECT s.workspace_id, sum(s.settled) AS amount FROM credit_closings s
               JOIN credit_checkpoints c ON c.workspace_id = s.workspace_id AND s.xid < c.horizon
              GROUP BY s.workspace_id) s ON s.workspace_id = c.workspace_id
 WHERE c.horizon <= pg_snapshot_xmin(pg_current_snapshot())
   AND (c.granted <> coalesce(g.amount, 0) OR c.settled <> coalesce(s.amount, 0))`
