package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestWebhookPlans holds that what every worker asks each second reads indexes from a place, whatever waits and whatever
// has been told: 20 webhooks with 1,000 waiting deliveries each, beside 20,000 waiting memory tasks and 20,000 ends.
func TestWebhookPlans(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	for _, statement := range []string{
		`CREATE TABLE filled AS SELECT gen_random_uuid() AS id, md5((n % 20)::text)::uuid AS ws, sha256((n % 20)::text::bytea) AS lane, n,
		        clock_timestamp() - n * interval '1 second' AS at FROM generate_series(1, 40000) n`,
		`INSERT INTO webhooks (id, workspace_id, url, event_types, secret, feed_xid, created_at, updated_at)
		 SELECT ws, ws, 'https://x.example', '{event.succeeded}', lane, '4000'::xid8, now(), now() FROM filled WHERE n <= 20`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command,
		                    payload_format, accepted_at, updated_at)
		 SELECT id, ws, CASE WHEN n > 20000 THEN 'webhook_delivery' ELSE 'memory_infer' END, 'pending', 'accepted', at, at, lane,
		        'bulk', 'x', 1, at, at FROM filled`,
		`INSERT INTO webhook_deliveries (id, workspace_id, webhook_id, task_id, type, body, created_at)
		 SELECT id, ws, ws, id, 'event.succeeded', 'x', at FROM filled WHERE n > 20000`,
		`WITH r AS (
		   INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
		   SELECT id, 1, ws, 0, 'succeeded', at FROM filled WHERE n <= 20000)
		 INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at, xid)
		 SELECT id, 1, ws, 'succeeded', 0, 0, 0, at, (n / 10)::text::xid8 FROM filled WHERE n <= 20000`,
		`ANALYZE`,
	} {
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	var ws uuid.UUID
	var lane []byte
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT ws, lane FROM filled LIMIT 1`).Scan(&ws, &lane))
	args := pgx.NamedArgs{
		"now": nil, "hooks": dueHooks, "each": 4, "limit": 16, "max_attempts": 5, "payload_format": 1, "webhook": ws, "lane": lane,
		"most": maxWaiting, "workspace": ws, "after_at": nil, "after_id": nil, "message": ws, "ids": []uuid.UUID{ws},
		"tasks": []uuid.UUID{ws},
	}
	for name, c := range map[string]struct {
		sql     string
		after   any
		indexes []string
	}{
		"due deliveries": {dueDeliveriesSQL, []byte{}, []string{"tasks_deliveries", "tasks_delivering"}},
		"news":           {newsSQL, uuid.UUID{}, []string{"credit_closings_horizon"}},
		"take webhook":   {takeEndpointSQL, nil, []string{"tasks_deliveries"}},
		"deliveries":     {deliveriesSQL, nil, []string{"webhook_deliveries_listed", "tasks_pkey"}},
		"parcel":         {parcelSQL, nil, []string{"webhook_deliveries_pkey"}},
		"left":           {leftDeliveriesSQL, nil, []string{"webhook_deliveries_listed"}},
		"wake":           {wakeDeliveriesSQL, nil, []string{"tasks_pkey"}},
	} {
		args["after"] = c.after
		plan := explain(t, pool, c.sql, args)
		for _, index := range c.indexes {
			require.Contains(t, plan, index, "%s\n%s", name, plan)
		}
		for _, table := range []string{"tasks", "credit_closings", "webhook_deliveries"} {
			require.NotContains(t, plan+"\n", "Seq Scan on "+table+" ", "%s\n%s", name, plan)
		}
	}
	args["after"] = []byte{}
	_, err := pool.Exec(t.Context(), `
INSERT INTO workspaces (id, name, fingerprint_key, suspended_at) SELECT DISTINCT ws, ws::text, lane, now() FROM filled WHERE ws <> $1`, ws)
	require.NoError(t, err)
	plan := explain(t, pool, "(ANALYZE, BUFFERS, COSTS OFF) "+dueDeliveriesSQL, args)
	var hit, read int // of the topmost node, which counts those below
	_, after, found := strings.Cut(plan, "shared hit=")
	require.True(t, found, plan)
	if n, _ := fmt.Sscanf(after, "%d read=%d", &hit, &read); n == 0 || hit+read > 300 {
		t.Errorf("%d pages are read to pass the 19,000 waiting deliveries of suspended workspaces\n%s", hit+read, plan)
	}
	_, err = pool.Exec(t.Context(), `UPDATE workspaces SET suspended_at = NULL`)
	require.NoError(t, err)
	var took time.Duration
	for range 5 { // the first ones read the tables into memory
		began := time.Now()
		rows, err := pool.Query(t.Context(), dueDeliveriesSQL, args)
		require.NoError(t, err)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		require.NoError(t, err)
		require.Len(t, ids, 16)
		took = time.Since(began)
	}
	t.Logf("a look at 20,000 waiting deliveries takes %s", took)
}
