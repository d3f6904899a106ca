package postgres

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// Everything of the filled workspace has this id where it has one at all, and these values elsewhere.
var (
	filledID   = uuid.MustParse("0197f000-0000-7000-8000-00000000000a")
	strangerID = uuid.MustParse("0197f000-0000-7000-8000-00000000000b")
	exportID   = uuid.MustParse("0197f000-0000-7000-8000-00000000000c") // the filled workspace's export
)

// beltWorld is a database whose workspace filledID has a row in every table, beside the workspace strangerID, which has
// none but itself.
type beltWorld struct {
	t     *testing.T
	url   string
	owner *pgxpool.Pool
	api   *pgxpool.Pool
	work  *pgxpool.Pool
}

func newBeltWorld(t *testing.T) *beltWorld {
	t.Helper()
	w := &beltWorld{t: t, url: testkit.NewDatabase(t)}
	w.owner = testkit.Pool(t, w.url)
	w.api = testkit.Pool(t, testkit.As(t, localdev.APILogin, w.url))
	w.work = testkit.Pool(t, testkit.As(t, localdev.WorkerLogin, w.url))
	tx, err := w.owner.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range filledSQL() {
		_, err := tx.Exec(t.Context(), sql, pgx.NamedArgs{"a": filledID, "b": strangerID, "export": exportID})
		require.NoError(t, err, sql)
	}
	require.NoError(t, tx.Commit(t.Context()))
	w.wait()
	return w
}

// wait returns when the feed has what was filled in: transactions of other tests on the same server hold its horizon back
// for moments.
func (w *beltWorld) wait() {
	w.t.Helper()
	deadline, look := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer look.Stop()
	for {
		var passed bool
		const sql = `SELECT max(xid) < pg_snapshot_xmin(pg_current_snapshot()) FROM credit_closings`
		require.NoError(w.t, w.owner.QueryRow(w.t.Context(), sql).Scan(&passed))
		if passed {
			return
		}
		select {
		case <-look.C:
		case <-deadline:
			w.t.Fatal("the feed is held back")
		}
	}
}

// filledSQL fills every table for workspace @a. Texts that a reader could show say canary.
func filledSQL() []string {
	const hash = `sha256('x')`
	return []string{
		`INSERT INTO workspaces (id, name, fingerprint_key) VALUES (@a, 'canary', ` + hash + `), (@b, 'stranger', ` + hash + `)`,
		`INSERT INTO api_keys (id, workspace_id, name, secret_hash, scopes) VALUES ('aaaaaaaaaaaa', @a, 'canary', ` + hash + `, '{}')`,
		`INSERT INTO data_keys (id, workspace_id, master_key, wrapped, created_at)
		 VALUES (@a, @a, 'canary', decode(repeat('00', 60), 'hex'), clock_timestamp())`,
		`INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id) VALUES (@a, ` + hash + `, ` + hash + `, 1, @a)`,
		`INSERT INTO lanes (workspace_id, lane, next_seq, last_accepted_at) VALUES (@a, ` + hash + `, 2, clock_timestamp())`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, payload_format,
		                    outcome, error_code, accepted_at, updated_at, completed_at)
		 SELECT @a, @a, 'memory_infer', 'succeeded', 'projected', now(), now(), 'canary', ` + hash + `, 'bulk', 1, 'STORED', 'CANARY',
		        now(), now(), now()`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, outcome, counts, accepted_at,
		                    updated_at, completed_at)
		 SELECT @export, @a, 'export', 'succeeded', 'projected', now(), now(), 'bulk', 1, 'STORED', '{"parts": 1}', now(), now(), now()`,
		`INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, payload_format,
		                    outcome, accepted_at, updated_at, completed_at)
		 SELECT md5('archived')::uuid, @a, 'memory_infer', 'succeeded', 'projected', now(), now(), 'canary', ` + hash + `, 'bulk', 1, 'STORED',
		        now(), now(), now()`,
		`INSERT INTO credit_accounts (workspace_id, available) VALUES (@a, 4711)`,
		`INSERT INTO credit_grants (id, workspace_id, reference, amount) VALUES (@a, @a, 'canary', 4713)`,
		`INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at) VALUES (@a, 1, @a, 2, 'succeeded', now())`,
		`INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
		 VALUES (@a, 1, @a, 'succeeded', 2, 2, 0, now())`,
		`INSERT INTO credit_checkpoints (workspace_id, horizon, granted, settled, checked_at) VALUES (@a, '1', 1, 0, now())`,
		`INSERT INTO plans (task_id, workspace_id, generation, body, created_at) VALUES (@a, @a, 1, 'canary', now())`,
		`INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event) VALUES (@a, 0, @a, @a, 'ADD')`,
		`INSERT INTO task_parts (task_id, part, workspace_id, body) VALUES (@a, 0, @a, 'canary'), (@export, 0, @a, 'canary')`,
		`INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, metadata, accepted_at, said_at, valid_from,
		                       item_key, item_id, created_at, updated_at)
		 VALUES (@a, @a, @a, 'canary', ` + hash + `, 'canary', ` + hash + `, '{"canary": 1}', now(), now(), now(), ` + hash + `, 'canary', now(), now())`,
		`INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, new_text, at)
		 VALUES (@a, @a, @a, @a, 0, 'ADD', 1, 'canary', now())`,
		`INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
		 VALUES (@a, @a, 1, ` + hash + `, '{canary}', '{1}', 1)`,
		`INSERT INTO memory_vectors (memory_id, workspace_id, version, content_key, model, vector, made_at)
		 VALUES (@a, @a, 1, ` + hash + `, 'canary', 'canaries', now())`,
		`INSERT INTO memory_feedback (memory_id, workspace_id, feedback, reason, at) VALUES (@a, @a, 'POSITIVE', 'canary', now())`,
		`INSERT INTO memory_exports (id, workspace_id, filter, filter_hash, created_at) VALUES (@a, @a, '{"canary": 1}', ` + hash + `, now())`,
		`INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class)
		 VALUES (@a, 1, @a, 1, 'canary', now(), now(), 'retry', 'canary')`,
		`INSERT INTO items (workspace_id, item_key, account, item_id, event_id, revision, content_hash, text, at, task_id, created_at, updated_at)
		 VALUES (@a, ` + hash + `, 'canary', 'canary', 'canary', 1, ` + hash + `, 'canary', now(), @a, now(), now())`,
		`INSERT INTO erasures (task_id, workspace_id, erased_at) VALUES (@a, @a, now() - interval '1 day')`,
		`INSERT INTO webhooks (id, workspace_id, name, url, event_types, secret, failing_since, feed_xid, created_at, updated_at)
		 VALUES (@a, @a, 'canary', 'https://canary', '{event.succeeded}', ` + hash + `, now(), '1', now(), now())`,
		`INSERT INTO webhook_deliveries (id, workspace_id, webhook_id, task_id, type, body, created_at)
		 VALUES (@a, @a, @a, @a, 'event.succeeded', 'canary', now())`,
		`INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject)
		 VALUES (@a, now(), 'canary', 'process', '', @a, 'canary', 'canary')`,
		`INSERT INTO operators (id, name, secret_hash) VALUES ('oooooooooooo', 'canary', ` + hash + `)`,
		`INSERT INTO console_sessions (id, kind, holder, created_at, expires_at) VALUES (` + hash + `, 'key', 'aaaaaaaaaaaa', now(), now() + interval '1 hour')`,
	}
}

// within runs fn in a transaction of the pool within the reach, and undoes it.
func (w *beltWorld) within(pool *pgxpool.Pool, r reach, fn func(tx pgx.Tx) error) error {
	w.t.Helper()
	tx, err := pool.Begin(w.t.Context())
	require.NoError(w.t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(w.t.Context())) }()
	workspace, wide := r.settings()
	_, err = tx.Exec(w.t.Context(), reachSQL, workspace, wide)
	require.NoError(w.t, err)
	return fn(tx)
}

// touched runs a statement within the reach and answers how many rows it has read or written.
func (w *beltWorld) touched(pool *pgxpool.Pool, r reach, sql string, args pgx.NamedArgs) (int64, error) {
	w.t.Helper()
	var n int64
	err := w.within(pool, r, func(tx pgx.Tx) error {
		tag, err := tx.Exec(w.t.Context(), sql, args)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

func sum(text string) []byte {
	hash := sha256.Sum256([]byte(text))
	return hash[:]
}
