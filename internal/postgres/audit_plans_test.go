package postgres

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/audit"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// planNode is what a plan with its runs says of one step.
type planNode struct {
	Type    string     `json:"Node Type"`
	Rows    float64    `json:"Actual Rows"`
	Loops   float64    `json:"Actual Loops"`
	Dropped float64    `json:"Rows Removed by Filter"`
	Apart   float64    `json:"Rows Removed by Join Filter"`
	Plans   []planNode `json:"Plans"`
}

// touched is how many rows all steps have handled.
func (n planNode) touched() float64 {
	total := (n.Rows + n.Dropped + n.Apart) * n.Loops
	for _, below := range n.Plans {
		total += below.touched()
	}
	return total
}

// TestAuditPlans holds that no check compares each row with each other one: beside 20,000 events with all that belongs
// to them in a few lanes, also before the planner knows anything of the tables, as after a restore.
func TestAuditPlans(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	const events = 20_000
	fillAudit(t, pool, events)
	db, err := Open(t.Context(), Config{URL: pool.Config().ConnString()})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	auditor, err := audit.New(db, audit.Options{Checks: nil})
	require.NoError(t, err)
	report, err := auditor.Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Findings())
	require.True(t, report.Complete())
	for _, known := range []bool{false, true} {
		if known {
			_, err := pool.Exec(t.Context(), `ANALYZE`)
			require.NoError(t, err)
		}
		for _, check := range audit.Checks() {
			sql, found := auditSQL(check.Name)
			require.True(t, found, check.Name)
			args := checkArgs(time.Now(), audit.DefaultOptions().Question)
			var raw []byte
			require.NoError(t, pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+fmt.Sprintf(foundSQL, sql), args).Scan(&raw), check.Name)
			var plans []struct{ Plan planNode }
			require.NoError(t, json.Unmarshal(raw, &plans))
			touched := plans[0].Plan.touched()
			t.Logf("%s, analyzed %v: %.0f rows", check.Name, known, touched)
			require.Less(t, touched, 60.0*events, "check %s, analyzed %v: %s", check.Name, known, raw)
		}
	}
}

// fillAudit inserts events that have succeeded, each with a memory, some of them archived, and a few that wait.
func fillAudit(t *testing.T, pool *pgxpool.Pool, events int) {
	t.Helper()
	columns := `id, workspace_id, kind, status, stage, claims, starts, run_after, hint_at, user_id, lane, lane_seq, priority, payload_format,
 key_hash, outcome, accepted_at, updated_at, committed_at, completed_at`
	ended := `SELECT id, ws, 'memory_infer', 'succeeded', 'projected', 1, 1, at, at, 'u', lane, n, 'interactive', 1,
 sha256(id::text::bytea), 'STORED', at, at, at, at FROM filled WHERE `
	for _, statement := range []string{
		fmt.Sprintf(`CREATE TABLE filled AS SELECT gen_random_uuid() AS id, gen_random_uuid() AS memory, md5((n %% 3)::text)::uuid AS ws,
 sha256((n %% 3)::text::bytea) AS lane, n, clock_timestamp() - interval '1 day' + n * interval '1 millisecond' AS at FROM generate_series(1, %d) n`, events),
		`INSERT INTO workspaces (id, name, fingerprint_key) SELECT DISTINCT ws, ws::text, lane FROM filled`,
		`INSERT INTO tasks (` + columns + `) ` + ended + `n % 4 > 0`,
		`INSERT INTO tasks_archive (` + columns + `) ` + ended + `n % 4 = 0`,
		`INSERT INTO lanes SELECT ws, lane, max(n) + 1, max(at) FROM filled GROUP BY ws, lane`,
		`INSERT INTO idempotency_keys SELECT ws, sha256(id::text::bytea), lane, 1, id FROM filled`,
		`INSERT INTO credit_accounts SELECT DISTINCT ws, 0, 0 FROM filled`,
		`INSERT INTO credit_grants (id, workspace_id, reference, amount) SELECT gen_random_uuid(), ws, 'r', 2 * count(*) FROM filled GROUP BY ws`,
		`INSERT INTO api_keys (id, workspace_id, secret_hash, scopes) SELECT lpad(n::text, 12, '0'), ws, lane, '{}' FROM filled WHERE n % 10 = 0`,
		`INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject, details)
 SELECT gen_random_uuid(), now(), 'x', 'y', '', x.ws, x.act, x.subject, x.details
   FROM (SELECT DISTINCT ws, 'workspace.create' AS act, ws::text AS subject, '{}'::jsonb AS details FROM filled
         UNION ALL SELECT ws, 'credits.grant', 'r', jsonb_build_object('amount', 2 * count(*)) FROM filled GROUP BY ws
         UNION ALL SELECT ws, 'key.create', lpad(n::text, 12, '0'), '{}' FROM filled WHERE n % 10 = 0
         UNION ALL SELECT ws, 'webhook.change', n::text, '{}' FROM filled) x`,
		`WITH r AS (INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at) SELECT id, 1, ws, 2, 'succeeded', at FROM filled)
 INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at) SELECT id, 1, ws, 'succeeded', 2, 2, 0, at FROM filled`,
		`INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending) SELECT id, 1, ws, 1, 'w', at, at, 'succeeded' FROM filled`,
		`INSERT INTO plans (task_id, workspace_id, generation, created_at) SELECT id, ws, 1, at FROM filled`,
		`INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event) SELECT id, 0, ws, memory, 'ADD' FROM filled`,
		`INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, accepted_at, said_at, valid_from, created_at, updated_at)
 SELECT memory, ws, id, 'u', lane, n::text, lane, at, at, at, at, at FROM filled`,
		`INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, new_text, at) SELECT memory, ws, memory, id, 0, 'ADD', 1, n::text, at FROM filled`,
		`INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length) SELECT memory, ws, 1, lane, '{x}', '{1}', 1 FROM filled`,
		`INSERT INTO memory_vectors (memory_id, workspace_id, version, content_key, model, vector, made_at) SELECT memory, ws, 1, lane, 'm', 'x', at FROM filled`,
	} {
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}
