package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// pooled is a world whose store goes through a PgBouncer of its own with so many server connections. What the test
// looks with goes past it.
func pooled(t testing.TB, size int, cfg postgres.Config) (*world, string) {
	t.Helper()
	w := newWorld(t, 1000)
	direct := testkit.Direct(w.url)
	through := testkit.NewPooler(t, direct, size).URL(direct)
	cfg.URL, cfg.TransactionPooler, cfg.Now = through, true, w.clock.Load
	db, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.sql, w.db = testkit.Pool(t, direct), db
	return w, through
}

// lifeOf runs a task of one user through everything that happens to tasks. It costs two credits.
func (w *world) lifeOf(user string) {
	w.t.Helper()
	id := w.accept(user, say(user, "a"))
	l := w.mustClaim(id)
	if _, err := w.db.Heartbeat(w.t.Context(), l, time.Minute, "stub"); err != nil {
		w.t.Error(err)
		return
	}
	wantDone(w.t, "later", w.later(l, task.ProviderTimeout, 0))
	l = w.mustClaim(id)
	wantDone(w.t, "commit", w.commit(l, "a fact of "+user))
	wantDone(w.t, "settle", w.settle(l))
}

// sessionSQL is what a session keeps beyond a transaction: statements, locks, settings, temporary tables, channels.
const sessionSQL = `
SELECT concat_ws('; ',
  (SELECT string_agg('statement ' || name, ', ') FROM pg_prepared_statements),
  (SELECT string_agg('lock ' || objid, ', ') FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
  (SELECT string_agg(name || '=' || setting, ', ') FROM pg_settings
    WHERE name IN ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'search_path', 'role',
                   'default_transaction_isolation', 'default_transaction_read_only')
      AND setting IS DISTINCT FROM reset_val),
  (SELECT string_agg('channel ' || c, ', ') FROM pg_listening_channels() c),
  CASE WHEN pg_my_temp_schema() <> 0 THEN 'temporary tables' END)`

// left looks at each of the pooler's server connections, by holding them all at once, and tells what was left in one.
func left(t testing.TB, through string, size int) string {
	t.Helper()
	var found []string
	for range size {
		conn, err := pgx.Connect(t.Context(), through+"&default_query_exec_mode=exec")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		var text string
		if err := tx.QueryRow(t.Context(), sessionSQL).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			found = append(found, text)
		}
	}
	return strings.Join(found, " | ")
}

// TestTransactionPooler holds that the store needs nothing of a session: PgBouncer in transaction mode gives each
// transaction any server connection.
func TestTransactionPooler(t *testing.T) {
	t.Parallel()

	t.Run("EveryStepOfATaskOnOneServerConnection", func(t *testing.T) {
		t.Parallel()
		w, through := pooled(t, 1, postgres.Config{})
		ids, _, err := w.db.Due(t.Context(), claimant("w"), 10)
		if err != nil || len(ids) != 0 {
			t.Fatalf("due %v: %v", ids, err)
		}
		w.lifeOf("u")
		failing := w.accept("k2", say("u", "b"))
		wantDone(t, "fail", w.fail(w.mustClaim(failing), task.OutputInvalid))
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, failing, &generation, nil); err != nil {
			t.Fatal(err)
		}
		wantDone(t, "complete", w.complete(w.mustClaim(failing), "other fact"))
		wantBalance(t, w, 996, 0)
		said := w.accept("k3", say(erasedUser, "c"))
		wantDone(t, "complete", w.complete(w.mustClaim(said), "a fact that goes"))
		w.erase("erase")
		wantGone(t, w, "a fact that goes")
		if found := w.search(recall.Lexical, "u", "fact"); len(found) != 2 {
			t.Errorf("found %d records of two", len(found))
		}
		if text := left(t, through, 1); text != "" {
			t.Errorf("left in the session: %s", text)
		}
	})

	t.Run("ThirtyConnectionsOnThree", func(t *testing.T) {
		t.Parallel()
		const clients, size = 30, 3
		w, through := pooled(t, size, postgres.Config{MaxConns: clients})
		together(clients, func(i int) { w.lifeOf(keyName(i)) })
		wantBalance(t, w, 1000-2*clients, 0)
		if n := one[int64](w, `SELECT count(*) FROM memories`); n != clients {
			t.Errorf("%d records of %d facts", n, clients)
		}
		if text := left(t, through, size); text != "" {
			t.Errorf("left in a session: %s", text)
		}
	})

	t.Run("NamedStatementsAreWhatItCannotCarry", func(t *testing.T) {
		t.Parallel()
		_, through := pooled(t, 1, postgres.Config{})
		for range 2 {
			db, err := postgres.Open(t.Context(), postgres.Config{URL: through})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			if _, err = db.ListWorkspaces(t.Context()); err != nil {
				return // the name is another connection's by now
			}
		}
		t.Error("two connections prepared one name in one session, and nothing told it: this pooler is none")
	})

	t.Run("WaitsAreBoundedByTheTransactionAlone", func(t *testing.T) {
		t.Parallel()
		w, through := pooled(t, 2, postgres.Config{LockTimeout: 200 * time.Millisecond, StatementTimeout: time.Second})
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		w.hold(`SELECT 1 FROM tasks WHERE id = $1 FOR UPDATE`, id)
		if done := w.commit(l, "fact"); done.Err == nil || errorsIs(done.Err, fault.ErrLeaseLost) {
			t.Fatalf("behind a held row: %v", done.Err)
		}
		if text := left(t, through, 2); text != "" {
			t.Errorf("left in a session: %s", text)
		}
	})

	t.Run("ACallerThatGivesUpHarmsNobodyElse", func(t *testing.T) {
		t.Parallel()
		w, _ := pooled(t, 2, postgres.Config{MaxConns: 2})
		id := w.accept("k", say("u", "a"))
		w.hold(`LOCK TABLE memories`)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if _, err := w.db.Memories(ctx, w.caller.Workspace.ID, recall.MemoryQuery{Limit: 1}); err == nil {
				t.Error("read a locked table")
			}
			cancel()
			wantDone(t, "give back", w.later(w.mustClaim(id), "", 0))
		}
		// A statement that nobody waits for must not keep one of the pooler's few server connections.
		deadline := time.Now().Add(20 * time.Second)
		for one[int64](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
			if time.Now().After(deadline) {
				t.Fatal("statements still wait")
			}
		}
	})

	t.Run("MigrationsRefuseIt", func(t *testing.T) {
		t.Parallel()
		_, through := pooled(t, 1, postgres.Config{})
		if _, err := postgres.Migrate(t.Context(), through); err == nil || !strings.Contains(err.Error(), "HOLDFAST_DATABASE_DIRECT_URL") {
			t.Errorf("migrating through the pooler: %v", err)
		}
		if current, latest, err := postgres.MigrationStatus(t.Context(), through); err != nil || current != latest {
			t.Errorf("version %d of %d: %v", current, latest, err)
		}
	})
}
