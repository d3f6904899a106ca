package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestByName(t *testing.T) {
	t.Parallel()
	url := testkit.NewDatabase(t)
	connect := func(t *testing.T) *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	t.Run("AnswersWhatPgxAnswers", func(t *testing.T) {
		t.Parallel()
		conn := connect(t)
		for _, sql := range []string{
			`SELECT 1`, `SELECT @a`, `SELECT @a, @b, @a::text, '@c', "@d" -- @e`, `SELECT @missing, @a`, `SELECT @a, @missing`,
			"SELECT /* @a */ @b_2", authenticateSQL, reachSQL, searchTermsSQL, memorySQL,
		} {
			for turn := range 3 { // found out, known, known
				for _, args := range []pgx.NamedArgs{
					{"a": turn, "b": "x", "b_2": uuid.Nil, "workspace": uuid.Max, "id": turn, "ids": nil, "key": "k", "now": nil},
					{"a": nil},
					{"missing": turn, "a": "a", "more": 1},
					{},
				} {
					wantSQL, wantArgs, wantErr := args.RewriteQuery(t.Context(), conn, sql, nil)
					gotSQL, gotArgs, err := byName(args).RewriteQuery(t.Context(), conn, sql, nil)
					require.Equal(t, wantErr, err, sql)
					require.Equal(t, wantSQL, gotSQL)
					require.Equal(t, len(wantArgs), len(gotArgs), sql)
					for i := range wantArgs {
						require.Equal(t, wantArgs[i], gotArgs[i], "%s %v", sql, args)
					}
				}
			}
		}
	})
	t.Run("FindsOutOnce", func(t *testing.T) {
		t.Parallel()
		conn := connect(t)
		first, _, err := byName{"once": 1}.RewriteQuery(t.Context(), conn, `SELECT @once`, nil)
		require.NoError(t, err)
		known := conn.PgConn().CustomData()[placesKey].(map[string]places) //nolint:forcetypeassert // a test's
		require.Equal(t, places{first, []string{"once"}}, known[`SELECT @once`])
	})
	t.Run("KnowsNoMoreThanItsBound", func(t *testing.T) {
		t.Parallel()
		conn := connect(t)
		for i := range 3*maxPlaces + 1 {
			_, _, err := byName{"a": 1}.RewriteQuery(t.Context(), conn, fmt.Sprintf(`SELECT @a, %d`, i), nil)
			require.NoError(t, err)
			require.LessOrEqual(t, len(conn.PgConn().CustomData()[placesKey].(map[string]places)), maxPlaces) //nolint:forcetypeassert // a test's
		}
	})
}

// BenchmarkByName tells what a statement's names cost, as pgx and as a connection that knows them has it.
func BenchmarkByName(b *testing.B) {
	conn, err := pgx.Connect(b.Context(), testkit.NewDatabase(b))
	require.NoError(b, err)
	b.Cleanup(func() { _ = conn.Close(context.WithoutCancel(b.Context())) })
	args := pgx.NamedArgs{"key": "k", "now": nil}
	for name, rewriter := range map[string]pgx.QueryRewriter{"Pgx": args, "Known": byName(args)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := rewriter.RewriteQuery(b.Context(), conn, authenticateSQL, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
