package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestClaimGroupPlan claims fifty of a hundred thousand waiting tasks in one statement, by the plan that was made while the
// table was empty and by one that is made when it is full: each costs what it costs alone.
func TestClaimGroupPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	fresh, err := testkit.Pool(t, testkit.Direct(w.url)).Acquire(t.Context())
	require.NoError(t, err)
	defer fresh.Release()
	claim := func(tx pgx.Tx, ids []uuid.UUID) string {
		_, err := tx.Exec(t.Context(), postgres.PlanForManySQL)
		require.NoError(t, err)
		list := func(v string) string { return "'{" + v + "}'" }
		tokens := asksFor(ids)
		names, secrets := make([]string, len(ids)), make([]string, len(ids))
		for i, id := range ids {
			names[i], secrets[i] = id.String(), tokens[i].Token.String()
		}
		rows, err := tx.Query(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE claims (`+
			list(strings.Join(names, ","))+`, `+list(strings.Join(secrets, ","))+`, `+
			list(strings.Join(slices.Repeat([]string{"0"}, len(ids)), ","))+`)`)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return strings.Join(lines, "\n")
	}
	within := func(f func(tx pgx.Tx)) {
		tx, err := fresh.Begin(t.Context())
		require.NoError(t, err)
		f(tx)
		require.NoError(t, tx.Commit(t.Context()))
	}
	_, err = fresh.Exec(t.Context(), `PREPARE claims (uuid[], uuid[], float8[]) AS `+claimGroupText())
	require.NoError(t, err)
	within(func(tx pgx.Tx) { claim(tx, []uuid.UUID{uuid.New(), uuid.New()}) })
	w.backlog(w.caller.Workspace.ID, 100_000, 0)
	ids, err := collect[uuid.UUID](w, `SELECT id FROM tasks LIMIT 100`)
	require.NoError(t, err)
	look := func(name string, ids []uuid.UUID) {
		within(func(tx pgx.Tx) {
			plan := claim(tx, ids)
			n := len(ids)
			if read, all := foundBy(t, plan)/n, buffers(t, plan)/n; read >= 20 || all >= 60 {
				t.Errorf("%s: a claim in a group reads %d pages and touches %d:\n%s", name, read, all, plan)
			}
		})
	}
	look("the plan for an empty table", ids[:50])
	w.exec(`ANALYZE`)
	_, err = fresh.Exec(t.Context(), `DISCARD PLANS`)
	require.NoError(t, err)
	look("the plan for a full one", ids[50:])
	if n := one[int64](w, `SELECT count(*) FROM tasks WHERE status = 'running'`); n != 100 {
		t.Fatalf("%d tasks were claimed", n)
	}
}

// claimGroupText is the statement of a group, with the arguments of a claimant in it.
func claimGroupText() string {
	who := claimant("w")
	return strings.NewReplacer(
		"@tasks", "$1", "@tokens", "$2", "@restarts", "$3", "@now", "NULL", "@ttl", "60.0", "@worker", "'w'", "@kinds", "'{memory_infer}'",
		"@payload_format", "1", "@max_attempts", fmt.Sprint(who.MaxAttempts), "@extractor", "'"+who.Extractor+"'",
		"@embedder", "'"+who.Embedder+"'", "@among", "'steady'", "@master_keys", "'{}'",
	).Replace(postgres.ClaimGroupSQL)
}
