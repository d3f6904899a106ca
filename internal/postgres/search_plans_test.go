package postgres

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// TestSearchedPlan holds that a search learns what a user has from one index, in its order and without a row of the table,
// for a role that the policies hold too: two hundred pages for ten thousand records, whatever else there is.
func TestSearchedPlan(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	// VACUUM calls a page visible to all once its commits are on disk, which the servers of tests don't wait for.
	tx, err := w.owner.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SET LOCAL synchronous_commit = on`)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `
INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, accepted_at, said_at, valid_from, created_at, updated_at)
SELECT gen_random_uuid(), $1, gen_random_uuid(), CASE WHEN n % 5 = 0 THEN 'many' ELSE 'u' || n % 500 END, sha256('x'), repeat('a fact ', 10),
       sha256(n::text::bytea), at, at, at, at, at
  FROM generate_series(1, 50000) n, LATERAL (SELECT clock_timestamp() - n * interval '1 second' AS at) a`, filledID)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	_, err = w.owner.Exec(t.Context(), `VACUUM (ANALYZE) memories`)
	require.NoError(t, err)
	for user, most := range map[string]int{"many": 300, "u3": 20} {
		args := pgx.NamedArgs{"workspace": filledID, "latest": true, "limit": 10_000, "now": nil}
		sql := searchIDsSQL + searchedSQL + visibleSQL(false) + inScope(memory.Scope{UserID: user}, args) + newestSQL + searchIDsEndSQL
		for _, pool := range []*pgxpool.Pool{w.owner, w.api} {
			plan := w.ran(pool, of(filledID), sql, args)
			require.Equal(t, []string{"Index memories_user"}, accesses(plan), plan)
			require.Contains(t, plan, "Index Only Scan", plan)
			require.NotContains(t, plan, "Sort", plan)
			require.LessOrEqual(t, touched(t, plan), most, plan)
		}
	}
}

// ran is the plan of a statement that has been executed, with the pages it touched.
func (w *beltWorld) ran(pool *pgxpool.Pool, r reach, sql string, args pgx.NamedArgs) (plan string) {
	w.t.Helper()
	require.NoError(w.t, w.within(pool, r, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) "+sql, args)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	}), sql)
	return plan
}

// touched is how many pages the whole plan touched.
func touched(t *testing.T, plan string) (pages int) {
	t.Helper()
	first, _, _ := strings.Cut(plan[strings.Index(plan, "Buffers:"):], "\n")
	for _, n := range regexp.MustCompile(`(?:hit|read)=(\d+)`).FindAllStringSubmatch(first, -1) {
		found, err := strconv.Atoi(n[1])
		require.NoError(t, err)
		pages += found
	}
	require.Positive(t, pages, plan)
	return pages
}
