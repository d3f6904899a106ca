package postgres

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// need is why an index is there: a statement that is planned with it, with what differs from the arguments of all, or a
// rule that it enforces.
type need struct {
	sql  string
	args pgx.NamedArgs
	rule string
}

func reads(sql string, args ...pgx.NamedArgs) need {
	n := need{sql: sql, args: pgx.NamedArgs{}}
	for _, a := range args {
		maps.Copy(n.args, a)
	}
	return n
}

// enforces is the reason of a unique index that no statement has to be planned with.
func enforces(rule string) need { return need{rule: rule} }

// keyOf is the reason of a primary key that rows are addressed by.
func keyOf(what string) need { return enforces("one row for each " + what) }

// refersSQL is what the database asks of webhooks when a data key goes.
const refersSQL = `SELECT 1 FROM webhooks x WHERE x.data_key = @id FOR KEY SHARE OF x`

// indexNeeds has a line for every index of the schema.
func indexNeeds() map[string]need {
	return map[string]need{
		"api_keys_pkey":                            reads(keyWorkspaceSQL),
		"api_keys_workspace_id_reference_key":      reads(keysSQL),
		"console_sessions_expired":                 reads(forgetConsoleSQL),
		"console_sessions_holder":                  reads(openSessionSQL, pgx.NamedArgs{"id": sum("new"), "kind": "key"}),
		"console_sessions_pkey":                    reads(closeSessionSQL, pgx.NamedArgs{"id": sum("x")}),
		"credit_accounts_pkey":                     keyOf("workspace"),
		"credit_checkpoints_pkey":                  keyOf("workspace"),
		"credit_closings_horizon":                  reads(feedSQL),
		"credit_closings_pkey":                     enforces("a run closes once"),
		"credit_closings_workspace":                reads(fmt.Sprintf(entriesSQL, "")),
		"credit_grants_horizon":                    reads(sumBooksSQL),
		"credit_grants_pkey":                       keyOf("grant"),
		"credit_grants_workspace_id_reference_key": enforces("a reference grants once"),
		"data_keys_master":                         reads(countLostSQL),
		"data_keys_pkey":                           reads(staleKeysSQL),
		"data_keys_workspace_id_day_key":           enforces("a workspace has one key a day"),
		"erasures_pkey":                            keyOf("erase"),
		"erasures_workspace":                       reads(taskFencedSQL),
		"goose_db_version_pkey":                    keyOf("migration"),
		"idempotency_keys_pkey":                    reads(readKeySQL),
		"idempotency_keys_retry":                   reads(retireSQL),
		"items_event":                              reads(taskOfItemSQL),
		"items_order":                              reads(itemsSQL, pgx.NamedArgs{"session": ""}),
		"items_pkey":                               reads(itemsByKeySQL),
		"items_session":                            reads(itemsSQL),
		"lanes_pkey":                               reads(lockLaneSQL),
		"memories_agent":                           reads(entitiesStatement("agent_id", entityAfter)),
		"memories_app":                             reads(entitiesStatement("app_id", entityAfter)),
		"memories_content":                         reads(repeatsSQL),
		"memories_ended":                           reads(fmt.Sprintf(endedRecordsSQL, "")),
		"memories_item":                            reads(itemRecordsSQL),
		"memories_pkey":                            reads(memorySQL),
		"memories_run":                             reads(entitiesStatement("run_id", entityAfter)),
		"memories_said":                            reads(knownSQL),
		"memories_user":                            reads(memoriesSQL + ` AND m.user_id = @account` + newestSQL),
		"memory_exports_newest":                    reads(forgetMemoryExportsSQL),
		"memory_exports_old":                       reads(forgetOldExportsSQL),
		"memory_exports_pkey":                      enforces("an export is defined once"),
		"memory_feedback_pkey":                     keyOf("record"),
		"memory_history_memory":                    reads(historySQL),
		"memory_history_pkey":                      enforces("a change of a task is written once"),
		"memory_history_task":                      reads(writtenSQL),
		"memory_terms_pkey":                        reads(keepProjectionsSQL),
		"memory_vectors_pkey":                      reads(unprojectedSQL),
		"memory_vectors_skipped":                   reads(factsSQL),
		"operator_acts_listed":                     reads(actsSQL, pgx.NamedArgs{"workspace": nil}),
		"operator_acts_pkey":                       keyOf("act"),
		"operator_acts_subject":                    reads(auditEventActsSQL),
		"operator_acts_workspace":                  reads(actsSQL),
		"operators_pkey":                           keyOf("operator"),
		"plans_pkey":                               reads(scrubPlanSQL),
		"plans_sealed":                             reads(dropDataKeysSQL),
		"process_minutes_pkey":                     keyOf("process and minute"),
		"provider_pauses_pkey":                     keyOf("provider"),
		"reindexes_open":                           enforces("a model has one open rebuild"),
		"reindexes_pkey":                           keyOf("rebuild"),
		"service_minutes_pkey":                     keyOf("minute"),
		"task_attempts_pkey":                       reads(eventSQL),
		"task_attempts_retried":                    reads(feedSQL),
		"task_parts_pkey":                          reads(exportPartsSQL),
		"task_parts_sealed":                        reads(dropDataKeysSQL),
		"task_results_pkey":                        reads(resultEventsSQL),
		"task_runs_closed":                         enforces("a closing has its run's outcome and amount"),
		"task_runs_open":                           reads(sumBooksSQL),
		"task_runs_pkey":                           reads(closeRunSQL),
		"task_runs_workspace":                      reads(fmt.Sprintf(entriesSQL, "")),
		"tasks_archive_ended":                      reads(fmt.Sprintf(endedSQL, "tasks_archive")),
		"tasks_archive_failed":                     reads(ofStatus(eventsSQL, task.EventFailed)),
		"tasks_archive_listed":                     reads(ofStatus(eventsSQL, "")),
		"tasks_archive_pkey":                       reads(eventSQL),
		"tasks_crashed":                            reads(dueAmong(worker.Crashed)),
		"tasks_deliveries":                         reads(dueDeliveriesSQL, pgx.NamedArgs{"after": sum("a")}),
		"tasks_delivering":                         reads(dueDeliveriesSQL, pgx.NamedArgs{"after": sum("a")}),
		"tasks_due":                                reads(dueAmong(worker.Steady)),
		"tasks_ended":                              reads(fmt.Sprintf(endedSQL, "tasks")),
		"tasks_failed":                             reads(ofStatus(eventsSQL, task.EventFailed)),
		"tasks_head":                               reads(insertTaskSQL, pgx.NamedArgs{"policy": "{}"}),
		"tasks_items":                              reads(waitingItemsSQL),
		"tasks_leased":                             reads(expiredSQL),
		"tasks_listed":                             reads(ofStatus(eventsSQL, "")),
		"tasks_open":                               reads(countPendingSQL),
		"tasks_pkey":                               reads(readReplaySQL),
		"tasks_sealed":                             reads(dropDataKeysSQL),
		"tasks_waiting":                            reads(nextHeadSQL),
		"webhook_deliveries_listed":                reads(deliveriesSQL),
		"webhook_deliveries_pkey":                  reads(deliverySQL),
		"webhook_deliveries_task_id_key":           reads(retireSQL),
		"webhooks_active":                          reads(newsSQL),
		"webhooks_deleted":                         reads(newsSQL),
		"webhooks_pkey":                            reads(endpointSQL),
		"webhooks_sealed":                          reads(refersSQL),
		"webhooks_workspace":                       reads(endpointsSQL),
		"workspaces_name_key":                      enforces("a name is taken once"),
		"workspaces_pkey":                          keyOf("workspace"),
	}
}

// indexFillSQL adds to beltFillSQL what makes every index one that a plan would take: much of what it leaves out beside few
// rows of what it is for.
func indexFillSQL() []string {
	sealed := `decode('00484601' || replace(md5((n % 1000)::text)::uuid::text, '-', '') || repeat('00', 28), 'hex')`
	return []string{
		`INSERT INTO data_keys (id, workspace_id, day, master_key, wrapped, created_at)
		 SELECT md5(n::text)::uuid, md5((n % 20)::text)::uuid, current_date - n / 20, 'm' || (n % 7), decode(repeat('00', 60), 'hex'), now()
		   FROM generate_series(0, 999) n`,
		`INSERT INTO api_keys (id, workspace_id, secret_hash, scopes) SELECT lpad(n::text, 12, '0'), ws, sha256('x'), '{}' FROM filled WHERE n <= 5000`,
		`INSERT INTO console_sessions (id, kind, holder, created_at, expires_at)
		 SELECT sha256(n::text::bytea), 'key', lpad((n % 100)::text, 12, '0'), at, now() + interval '1 hour' FROM filled WHERE n <= 5000`,
		`INSERT INTO credit_accounts SELECT DISTINCT ws, 1000, 1000 FROM filled`,
		`INSERT INTO credit_grants (id, workspace_id, reference, amount, granted_at, xid)
		 SELECT id, ws, 'r' || n, 1, at, (n / 10)::text::xid8 FROM filled`,
		`UPDATE credit_closings SET xid = (SELECT (extract(epoch FROM now() - closed_at) / 10)::bigint)::text::xid8`,
		`INSERT INTO credit_checkpoints SELECT ws, '2900'::xid8, 0, 0, now() FROM filled GROUP BY ws`,
		`INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at) SELECT id, 2, ws, 1, at FROM filled WHERE n % 50 = 0`,
		`INSERT INTO erasures (task_id, workspace_id, erased_at) SELECT id, md5('e' || n)::uuid, at FROM filled WHERE n <= 5000`,
		`INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id, retry)
		 SELECT ws, sha256(id::text::bytea), sha256('x'), 1, id, n % 100 = 0 FROM filled`,
		`INSERT INTO lanes SELECT ws, sha256(n::text::bytea), 2, at FROM filled`,
		`INSERT INTO memory_exports (id, workspace_id, filter, filter_hash, created_at) SELECT id, ws, '{}', sha256('x'), at FROM filled`,
		`UPDATE memories m SET agent_id = 'a' || (f.n % 90), app_id = 'p' || (f.n % 90), run_id = 'r' || f.n FROM filled f
		  WHERE f.id = m.id AND f.n % 10 = 0`,
		`UPDATE memories m SET deleted_at = at FROM filled f WHERE f.id = m.id AND f.n % 100 = 1`,
		`UPDATE memories m SET item_key = sha256(m.id::text::bytea) FROM filled f WHERE f.id = m.id AND f.n % 20 = 5`,
		`UPDATE memory_vectors m SET skipped = true, vector = NULL FROM filled f WHERE f.id = m.memory_id AND f.n % 1000 = 1`,
		`UPDATE items SET session = 's' || right(item_key::text, 2)`,
		`INSERT INTO plans (task_id, workspace_id, generation, body, created_at) SELECT id, ws, 1, CASE WHEN n % 20 = 0 THEN ` + sealed + ` END, at FROM filled`,
		`INSERT INTO task_parts (task_id, part, workspace_id, body) SELECT id, 0, ws, CASE WHEN n % 20 = 0 THEN ` + sealed + ` ELSE 'x' END FROM filled`,
		`INSERT INTO webhooks (id, workspace_id, url, event_types, secret, feed_xid, created_at, updated_at, deleted_at)
		 SELECT md5('hook' || n)::uuid, ws, 'https://x.example', '{event.succeeded}', decode('00484601' || replace(md5(n::text)::uuid::text, '-', '') || repeat('00', 60), 'hex'),
		        '1', at, at, CASE WHEN n % 10 = 0 THEN at END FROM filled WHERE n < 1000`,
		`UPDATE webhooks SET active = false, disabled_reason = 'gone' WHERE deleted_at IS NULL AND id > '30000000-0000-0000-0000-000000000000'`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, lane_seq, head, priority, command, payload_format,
		                    crashes, lease_token, lease_until, accepted_at, updated_at)
		 SELECT gen_random_uuid(), ws, 'memory_infer', CASE WHEN n % 5 = 0 THEN 'running' ELSE 'pending' END, 'accepted', at, at,
		        sha256((n / 4)::text::bytea), n, n % 4 = 0, 'bulk', ` + sealed + `, 1, CASE WHEN n % 100 = 8 THEN 2 ELSE 0 END,
		        CASE WHEN n % 5 = 0 THEN id END, CASE WHEN n % 5 = 0 THEN at END, at, at FROM filled WHERE n <= 10000`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, command, payload_format, accepted_at, updated_at)
		 SELECT gen_random_uuid(), ws, 'memory_item', 'pending', 'accepted', at, at, u, sha256(u::bytea), 'bulk', 'x', 1, at, at FROM filled WHERE n <= 5000`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command, payload_format,
		                    lease_token, lease_until, accepted_at, updated_at)
		 SELECT gen_random_uuid(), ws, 'webhook_delivery', CASE WHEN n % 50 = 0 THEN 'running' ELSE 'pending' END, 'accepted', at, at,
		        sha256(ws::text::bytea), 'bulk', 'x', 1, CASE WHEN n % 50 = 0 THEN id END, CASE WHEN n % 50 = 0 THEN at END, at, at FROM filled WHERE n <= 5000`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, payload_format, accepted_at, updated_at, completed_at)
		 SELECT gen_random_uuid(), ws, 'memory_add', 'failed', 'accepted', at, at, sha256(u::bytea), 'bulk', 1, at, at, at FROM filled WHERE n % 50 = 0`,
		`INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, payload_format, accepted_at, updated_at, completed_at)
		 SELECT gen_random_uuid(), ws, 'memory_add', 'failed', 'accepted', at, at, sha256(u::bytea), 'bulk', 1, at, at, at FROM filled WHERE n % 50 = 0`,
	}
}

// filledDatabase has many rows in every table that grows, and what the planner should know of them.
func filledDatabase(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := testkit.Postgres(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`) // what belongs together is not looked at here
	require.NoError(t, err)
	for _, sql := range append(beltFillSQL(10_000), indexFillSQL()...) {
		_, err := tx.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	require.NoError(t, tx.Commit(t.Context()))
	_, err = pool.Exec(t.Context(), `ANALYZE`)
	require.NoError(t, err)
	return pool
}

// commonArgs are what most statements are explained with: a workspace, and something in it.
func commonArgs(t *testing.T, pool *pgxpool.Pool) pgx.NamedArgs {
	t.Helper()
	var ws, id uuid.UUID
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT ws, id FROM filled LIMIT 1`).Scan(&ws, &id))
	who := worker.Claimant{MaxAttempts: 5}
	return pgx.NamedArgs{
		"now": nil, "workspace": ws, "id": id, "ids": []uuid.UUID{id}, "task": id, "tasks": []uuid.UUID{id}, "memory": id, "webhook": id, "message": id,
		"limit": 20, "kept": 19, "older": 3600.0, "at": time.Now(), "after": uuid.Nil, "after_at": time.Now(), "after_id": uuid.Max, "after_version": 0,
		"kinds": []string{"memory_add", "memory_infer"}, "kind": "memory_add", "status": "", "keys": [][]byte{sum("x")}, "key_hash": sum("x"), "key": "000000000001",
		"account": "u1", "session": "s1", "event": "e1", "after_key": nil, "after_created": nil, "model": "m", "standard": 1000, "horizon": "1",
		"text": "x", "part": 0, "lane": sum("1"), "xid": "1", "generation": 1, "claim": 0, "price": 1, "outcome": "failed", "master": "m1",
		"holder": "000000000001", "life": 60.0, "token": id, "ttl": 60.0, "provider": "p", "none": uuid.Nil, "act": "", "actor": "", "latest": true,
		"look": 500, "each": 4, "hooks": dueHooks, "workspaces": 20, "max_attempts": who.MaxAttempts, "payload_format": 1, "extractor": "e",
		"embedder": "e", "restart": 0.0, "live_of": []uuid.UUID{}, "live": []int{}, "master_keys": []string{"m1"}, "count": 10, "rows": 10_000,
		"window": 600, "theirs": []string{}, "accepted_at": time.Now(), "terms": []string{"x"}, "erased_at": time.Now(), "item_key": sum("x"),
		"ordered": true, "user_id": "", "agent_id": "", "run_id": "", "app_id": "", "priority": "bulk", "command": []byte("x"), "policy": "{}", "trace": nil,
	}
}

// TestEveryIndexIsNeeded holds that an index is there because a statement is planned with it, or because of a rule that it
// enforces, and that a new one has its line here.
func TestEveryIndexIsNeeded(t *testing.T) {
	t.Parallel()
	pool := filledDatabase(t)
	common := commonArgs(t, pool)
	rows, err := pool.Query(t.Context(), `
SELECT c.relname, i.indisunique FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
 WHERE c.relnamespace = 'public'::regnamespace`)
	require.NoError(t, err)
	unique := map[string]bool{}
	var name string
	var one bool
	_, err = pgx.ForEachRow(rows, []any{&name, &one}, func() error {
		unique[name] = one
		return nil
	})
	require.NoError(t, err)
	needs := indexNeeds()
	require.ElementsMatch(t, slices.Collect(maps.Keys(unique)), slices.Collect(maps.Keys(needs)), "every index has its line, and every line its index")
	for _, index := range slices.Sorted(maps.Keys(needs)) {
		n := needs[index]
		if n.sql == "" {
			require.True(t, unique[index], "%s enforces nothing: %s", index, n.rule)
			continue
		}
		args := maps.Clone(common)
		maps.Copy(args, n.args)
		plan := explain(t, pool, n.sql, args)
		if !regexp.MustCompile(`\b` + index + `\b`).MatchString(plan) {
			t.Errorf("%s is not in the plan of what needs it:\n%s", index, plan)
		}
	}
}
