package testkit_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestCommitCutProxy(t *testing.T) {
	t.Parallel()
	commits := map[string]func(context.Context, *pgx.Conn) error{
		"Simple": func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.PgConn().Exec(ctx, "COMMIT;").ReadAll()
			return err
		},
		"SimpleAtTheEnd": func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.PgConn().Exec(ctx, "SELECT 1; commit").ReadAll()
			return err
		},
		"Extended": func(ctx context.Context, c *pgx.Conn) error {
			return c.PgConn().ExecParams(ctx, "commit", nil, nil, nil, nil).Read().Err
		},
		"PreparedByName": func(ctx context.Context, c *pgx.Conn) error {
			return c.PgConn().ExecPrepared(ctx, "done", nil, nil, nil).Read().Err
		},
		"Batch": func(ctx context.Context, c *pgx.Conn) error {
			b := &pgx.Batch{}
			b.Queue("SELECT 1")
			b.Queue("commit")
			return c.SendBatch(ctx, b).Close()
		},
	}
	for name, commit := range commits {
		for _, after := range []bool{true, false} {
			side := map[bool]string{true: "AfterTheServer", false: "BeforeTheServer"}[after]
			t.Run(name+side, func(t *testing.T) {
				t.Parallel()
				ctx := bounded(t)
				direct := testkit.NewDatabase(t)
				proxy := testkit.CommitCutProxy(t, direct)
				pool := testkit.Pool(t, direct)
				_, err := pool.Exec(ctx, "CREATE TABLE written (n int)")
				require.NoError(t, err)
				conn, err := pgx.Connect(ctx, proxy.URL())
				require.NoError(t, err)
				defer func() { _ = conn.Close(ctx) }()
				_, err = conn.PgConn().Prepare(ctx, "done", "commit", nil)
				require.NoError(t, err)
				for _, sql := range []string{"BEGIN", "INSERT INTO written VALUES (1)", "COMMIT", "BEGIN", "INSERT INTO written VALUES (2)"} {
					_, err = conn.Exec(ctx, sql)
					require.NoError(t, err)
				}

				cut := proxy.CutNextCommit(after)
				require.Error(t, commit(ctx, conn))
				require.True(t, conn.IsClosed())
				want := map[bool]int{true: 2, false: 1}[after]
				select {
				case tag := <-cut:
					require.Equal(t, map[bool]string{true: "COMMIT", false: ""}[after], tag)
				case <-ctx.Done():
					require.Fail(t, "nothing was cut")
				}
				require.Equal(t, want, count(t, pool))
			})
		}
	}

	t.Run("CutsOneCommitOnly", func(t *testing.T) {
		t.Parallel()
		ctx := bounded(t)
		proxy := testkit.CommitCutProxy(t, testkit.NewDatabase(t))
		pool := testkit.Pool(t, proxy.URL())
		cut := proxy.CutNextCommit(true)
		insert := func() error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS written (n int); INSERT INTO written VALUES (1)")
				return err
			})
		}
		require.Error(t, insert())
		require.Equal(t, "COMMIT", <-cut)
		require.NoError(t, insert())
		require.Equal(t, 2, count(t, pool))
	})

	t.Run("PassesLargeResultsAndCopies", func(t *testing.T) {
		t.Parallel()
		ctx := bounded(t)
		proxy := testkit.CommitCutProxy(t, testkit.NewDatabase(t))
		pool := testkit.Pool(t, proxy.URL())
		_, err := pool.Exec(ctx, "CREATE TABLE written (n int)")
		require.NoError(t, err)
		rows := make([][]any, 5000)
		for i := range rows {
			rows[i] = []any{i}
		}
		n, err := pool.CopyFrom(ctx, pgx.Identifier{"written"}, []string{"n"}, pgx.CopyFromRows(rows))
		require.NoError(t, err)
		require.Equal(t, int64(5000), n)
		var length int
		require.NoError(t, pool.QueryRow(ctx, "SELECT length(repeat('x', 3000000) || $1)", "y").Scan(&length))
		require.Equal(t, 3000001, length)
	})

	t.Run("BlackholeHoldsAndResumes", func(t *testing.T) {
		t.Parallel()
		proxy := testkit.CommitCutProxy(t, testkit.NewDatabase(t))
		conn, err := pgx.Connect(bounded(t), proxy.URL())
		require.NoError(t, err)
		proxy.Blackhole(true)
		answered := make(chan error, 1)
		go func() {
			_, err := conn.Exec(context.Background(), "SELECT 1")
			answered <- err
		}()
		select {
		case err := <-answered:
			require.NoError(t, err)
			require.Fail(t, "answered through a black hole")
		case <-time.After(100 * time.Millisecond): // nothing can come, so there is no signal to wait for
		}
		proxy.Blackhole(false)
		require.NoError(t, <-answered)
		require.NoError(t, conn.Close(bounded(t)))
	})
}

func count(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	var n int
	require.NoError(t, pool.QueryRow(bounded(t), "SELECT count(*) FROM written").Scan(&n))
	return n
}
