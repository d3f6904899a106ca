package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestRepairPlans holds that what repair asks every few seconds reads an index from a place, however large the tables
// are: 20,000 waiting, ended and archived tasks each, with their runs and closings, of 20 workspaces.
func TestRepairPlans(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	for _, statement := range []string{
		`CREATE TABLE filled AS SELECT gen_random_uuid() AS id, md5((n % 20)::text)::uuid AS ws, n,
		        clock_timestamp() - n * interval '1 minute' AS at FROM generate_series(1, 60000) n`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command,
		                    payload_format, accepted_at, updated_at)
		 SELECT id, ws, 'memory_infer', 'pending', 'accepted', at, at, sha256('x'), 'interactive', 'x', 1, at, at
		   FROM filled WHERE n <= 20000`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, payload_format,
		                    outcome, accepted_at, updated_at, completed_at)
		 SELECT id, ws, 'memory_infer', 'succeeded', 'projected', at, at, sha256('x'), 'interactive', 1, 'STORED', at, at, at
		   FROM filled WHERE n BETWEEN 20001 AND 40000`,
		`INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority,
		                            payload_format, outcome, accepted_at, updated_at, completed_at)
		 SELECT id, ws, 'memory_infer', 'succeeded', 'projected', at, at, sha256('x'), 'interactive', 1, 'STORED', at, at, at
		   FROM filled WHERE n > 40000`,
		`INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id)
		 SELECT ws, sha256(id::text::bytea), sha256('x'), 1, id FROM filled`,
		`WITH r AS (
		   INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
		   SELECT id, 1, ws, 2, CASE WHEN n > 20000 THEN 'succeeded' END, at FROM filled)
		 INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at, xid)
		 SELECT id, 1, ws, 'succeeded', 2, 2, 0, at, (n / 10)::text::xid8 FROM filled WHERE n > 20000`,
		`INSERT INTO credit_checkpoints SELECT ws, '5900'::xid8, 0, 0, now() FROM filled GROUP BY ws`,
		`ANALYZE`,
	} {
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	var ws uuid.UUID
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT ws FROM filled LIMIT 1`).Scan(&ws))
	args := pgx.NamedArgs{
		"now": nil, "after": uuid.UUID{}, "workspaces": dueWorkspaces, "page": unhintedPage, "limit": 200, "age": 30.0, "max_attempts": 5,
		"workspace": ws, "at": "2020-01-01", "older": 3600.0, "full": false, "look": 100, "random": 0.5,
		"key": make([]byte, 32), "window": 7200.0, "kinds": []string{"memory_infer"}, "ids": []uuid.UUID{ws},
		"seqs": []int64{1}, "fresh": 60.0, "none": uuid.UUID{},
	}
	for name, c := range map[string]struct {
		sql     string
		indexes []string
	}{
		"unhinted":      {unhintedSQL, []string{"tasks_due"}},
		"waiting range": {waitingRangeSQL, []string{"tasks_due"}},
		"rehint":        {rehintSQL, []string{"tasks_pkey"}},
		"waiting":       {waitingSQL, []string{"tasks_due"}},
		"ended":         {fmt.Sprintf(endedSQL, "tasks"), []string{"tasks_ended"}},
		"archived":      {fmt.Sprintf(endedSQL, "tasks_archive"), []string{"tasks_archive_ended"}},
		"expire input":  {expireInputSQL, []string{"tasks_pkey"}},
		"archive":       {archiveSQL, []string{"tasks_pkey"}},
		"retire":        {retireSQL, []string{"tasks_archive_pkey", "idempotency_keys_pkey", "idempotency_keys_retry"}},
		"sum books":     {sumBooksSQL, []string{"credit_closings_horizon", "task_runs_open"}},
		"check runs":    {checkRunsSQL, []string{"task_runs_workspace", "task_runs_open", "tasks_pkey", "credit_closings_pkey"}},
		"check tasks":   {checkTasksSQL, []string{"tasks_due", "tasks_pkey", "tasks_archive_pkey", "idempotency_keys_pkey"}},
		"check recent":  {checkRecentSQL, []string{"tasks_ended", "tasks_leased"}},
	} {
		plan := explain(t, pool, c.sql, args)
		for _, index := range c.indexes {
			require.Contains(t, plan, index, "%s\n%s", name, plan)
		}
		for _, table := range []string{"tasks", "tasks_archive", "credit_closings", "task_runs", "idempotency_keys"} {
			require.NotContains(t, plan+"\n", "Seq Scan on "+table+" ", "%s\n%s", name, plan)
		}
	}
}

func explain(t *testing.T, pool *pgxpool.Pool, sql string, args pgx.NamedArgs) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), "EXPLAIN "+sql, args)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err, sql)
	return strings.Join(lines, "\n")
}
