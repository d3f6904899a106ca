package postgres

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestReachEndsWithItsStatement holds that a connection keeps nothing of the workspace that it was used for: in and out of
// a transaction, after an answer and after an error.
func TestReachEndsWithItsStatement(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	url := testkit.Direct(w.api.Config().ConnString())
	pooler := testkit.NewPooler(t, testkit.Direct(w.url), 1)
	for name, cfg := range map[string]Config{
		"ToTheServer":              {URL: url, MaxConns: 1},
		"BehindATransactionPooler": {URL: pooler.URL(url), MaxConns: 4, TransactionPooler: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := Open(t.Context(), cfg)
			require.NoError(t, err)
			t.Cleanup(db.Close)
			reachEnds(t, db)
			reachesMix(t, db)
		})
	}
}

func reachEnds(t *testing.T, db *DB) {
	t.Helper()
	const leftSQL = `SELECT coalesce(current_setting('holdfast.workspace', true), '') || coalesce(current_setting('holdfast.reach', true), '')`
	var text string
	left := func(after string) {
		t.Helper()
		require.NoError(t, db.read(t.Context(), unbound, "what is left", leftSQL, nil, one(&text)))
		require.Empty(t, text, after)
		n := -1
		require.NoError(t, db.read(t.Context(), unbound, "rows", `SELECT count(*) FROM memories`, nil, one(&n)))
		require.Zero(t, n, after)
	}
	count := func(r reach, want int) {
		t.Helper()
		n := -1
		require.NoError(t, db.read(t.Context(), r, "rows", `SELECT count(*) FROM memories`, nil, one(&n)))
		require.Equal(t, want, n)
	}
	left("the start")
	count(of(filledID), 1)
	left("a read")
	count(of(strangerID), 0)
	count(everyone, 0)
	left("a read of everyone's")
	require.Error(t, db.read(t.Context(), of(filledID), "fails", `SELECT 1 / (SELECT count(*) - 1 FROM memories)`, nil, one(&text)))
	left("an error")
	require.Error(t, db.read(t.Context(), of(filledID), "unread", `SELECT id::text FROM memories`, nil, func(pgx.Rows) error { return errNotHere }))
	left("an answer that nobody read")
	require.NoError(t, db.alone(t.Context(), of(filledID), "alone", `UPDATE memories SET text = text`, nil, noRows))
	left("a statement alone")
	require.NoError(t, db.InTx(t.Context(), filledID, func(ctx context.Context, tx *Tx) error {
		b := &batch{}
		b.query("rows", `SELECT text FROM memories`, nil, one(&text))
		return tx.send(ctx, b)
	}))
	require.Equal(t, "canary", text)
	left("a transaction")
	require.ErrorIs(t, db.InTx(t.Context(), filledID, func(ctx context.Context, tx *Tx) error {
		b := &batch{}
		b.query("rows", `SELECT text FROM memories`, nil, one(&text))
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		return errNotHere
	}), errNotHere)
	left("a rollback")
}

// reachesMix reads of both workspaces at once: each answer is the asked workspace's.
func reachesMix(t *testing.T, db *DB) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				r, want := of(filledID), 1
				if i%2 == 1 {
					r, want = of(strangerID), 0
				}
				n := -1
				if err := db.read(t.Context(), r, "rows", `SELECT count(*) FROM memories`, nil, one(&n)); err != nil || n != want {
					t.Errorf("%d rows instead of %d, %v", n, want, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestAloneIsRefusedAtItsEnd holds that what the server refuses where a statement's own transaction ends is known not to
// have happened.
func TestAloneIsRefusedAtItsEnd(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	db, err := Open(t.Context(), Config{URL: w.api.Config().ConnString()})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	// A run that ends has its closing at the commit: the constraint is deferred.
	err = db.alone(t.Context(), of(filledID), "open and end", `
INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at) VALUES (@id, 2, @id, 1, 'failed', now())`,
		pgx.NamedArgs{"id": filledID}, noRows)
	require.Equal(t, "23503", stateOf(err))
	require.NotErrorIs(t, err, fault.ErrCommitUnknown)
	n := -1
	require.NoError(t, db.read(t.Context(), of(filledID), "runs", `SELECT count(*) FROM task_runs`, nil, one(&n)))
	require.Equal(t, 1, n)
}
