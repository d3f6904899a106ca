package testkit_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestPostgres(t *testing.T) {
	t.Parallel()

	t.Run("EveryTestHasItsOwnMigratedDatabase", func(t *testing.T) {
		t.Parallel()
		ctx := bounded(t)
		one, two := testkit.Postgres(t), testkit.Postgres(t)
		for _, pool := range []interface {
			QueryRow(context.Context, string, ...any) pgx.Row
		}{one, two} {
			var tables int
			err := pool.QueryRow(ctx, "SELECT count(*) FROM goose_db_version WHERE version_id > 0").Scan(&tables)
			require.NoError(t, err)
			require.Positive(t, tables)
		}
		_, err := one.Exec(ctx, "CREATE TABLE only_here ()")
		require.NoError(t, err)
		_, err = two.Exec(ctx, "SELECT FROM only_here")
		require.ErrorContains(t, err, "42P01")
	})

	t.Run("ADatabaseEndsWithItsTestEvenWhenInUse", func(t *testing.T) {
		t.Parallel()
		var url string
		var conn *pgx.Conn
		t.Run("Inner", func(t *testing.T) {
			url = testkit.NewDatabase(t)
			var err error
			conn, err = pgx.Connect(bounded(t), url)
			require.NoError(t, err)
		})
		ctx := bounded(t)
		_, err := conn.Exec(ctx, "SELECT 1")
		require.Error(t, err)
		_, err = pgx.Connect(ctx, url)
		require.ErrorContains(t, err, "3D000")
	})

	t.Run("TheLogIsTheServersOwn", func(t *testing.T) {
		t.Parallel()
		_, err := testkit.Postgres(t).Exec(bounded(t), "SELECT FROM missing_6f1c")
		require.Error(t, err)
		require.Contains(t, testkit.PostgresLog(t), "missing_6f1c")
	})

	t.Run("APrivateServerRestartsOnItsAddress", func(t *testing.T) {
		t.Parallel()
		ctx := bounded(t)
		pg := testkit.PrivatePostgres(t, true)
		pool := testkit.Pool(t, pg.URL())
		var pid int
		require.NoError(t, pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid))
		before := pg.PID()
		testkit.RestartPostgres(t, pg, true)
		require.NotEqual(t, before, pg.PID())
		conn, err := pgx.Connect(ctx, pg.URL())
		require.NoError(t, err)
		require.NoError(t, conn.Close(ctx))
	})
}
