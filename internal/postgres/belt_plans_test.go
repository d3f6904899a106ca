package postgres

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// beltFillSQL makes 20 workspaces with so many tasks together, as many archived ones, records with metadata and projections,
// and items.
func beltFillSQL(rows int) []string {
	return []string{
		`CREATE TABLE filled AS SELECT gen_random_uuid() AS id, md5((n % 20)::text)::uuid AS ws, n, 'u' || (n / 20 % 10) AS u,
		        clock_timestamp() - n * interval '1 second' AS at FROM generate_series(1, ` + strconv.Itoa(rows) + `) n`,
		`INSERT INTO workspaces (id, name, fingerprint_key) SELECT DISTINCT ws, ws::text, sha256('x') FROM filled`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, payload_format,
		                    outcome, accepted_at, updated_at, completed_at)
		 SELECT id, ws, 'memory_add', 'succeeded', 'projected', at, at, u, sha256(u::bytea), 'bulk', 1, 'STORED', at, at, at FROM filled`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, command, payload_format,
		                    accepted_at, updated_at)
		 SELECT gen_random_uuid(), ws, 'memory_add', 'pending', 'accepted', at, at, u, sha256(u::bytea), 'bulk', 'x', 1, at, at
		   FROM filled WHERE n % 3 = 0`,
		`INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority,
		                            payload_format, outcome, accepted_at, updated_at, completed_at)
		 SELECT gen_random_uuid(), ws, 'memory_add', 'succeeded', 'projected', at, at, u, sha256(u::bytea), 'bulk', 1, 'STORED', at, at, at FROM filled`,
		`INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at) SELECT id, 1, ws, 1, 'succeeded', at FROM filled`,
		`INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
		 SELECT id, 1, ws, 'succeeded', 1, 1, 0, at FROM filled`,
		`INSERT INTO task_results (task_id, ordinal, workspace_id, record_id, event) SELECT id, 0, ws, id, 'ADD' FROM filled`,
		`INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending)
		 SELECT id, 1, ws, 1, 'w', at, at, CASE WHEN n % 10 = 0 THEN 'retry' ELSE 'succeeded' END FROM filled`,
		`INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, metadata, accepted_at, said_at, valid_from,
		                       created_at, updated_at)
		 SELECT id, ws, id, u, sha256(u::bytea), 'x', sha256(id::text::bytea), jsonb_build_object('n', n % 7), at, at, at, at, at FROM filled`,
		`INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, new_text, at)
		 SELECT id, ws, id, id, 0, 'ADD', 1, 'x', at FROM filled`,
		`INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
		 SELECT id, ws, 1, sha256(id::text::bytea), '{x}', '{1}', 1 FROM filled`,
		`INSERT INTO memory_vectors (memory_id, workspace_id, version, content_key, model, vector, made_at)
		 SELECT id, ws, 1, sha256(id::text::bytea), 'm', 'xxxx', at FROM filled`,
		`INSERT INTO items (workspace_id, item_key, account, item_id, event_id, revision, content_hash, text, at, task_id, created_at, updated_at)
		 SELECT ws, sha256(id::text::bytea), u, 'i', 'e' || n, 1, sha256('x'), 'x', at, id, at, at FROM filled`,
		`INSERT INTO webhook_deliveries (id, workspace_id, webhook_id, task_id, type, body, created_at)
		 SELECT id, ws, md5('hook' || ws)::uuid, id, 'event.succeeded', 'x', at FROM filled`,
		`INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject)
		 SELECT id, at, 'o', 'process', '', ws, 'a', 's' FROM filled`,
	}
}

// accesses are the ways by which a plan reads tables.
func accesses(plan string) []string {
	found := regexp.MustCompile(`(?:Index (?:Only )?Scan (?:Backward )?using|Bitmap Index Scan on|Seq Scan on) (\w+)`).FindAllStringSubmatch(plan, -1)
	names := map[string]bool{}
	for _, f := range found {
		// Both begin with task and generation: which one is taken is a matter of their order.
		names[strings.Fields(f[0])[0]+" "+strings.Replace(f[1], "task_runs_closed", "task_runs_pkey", 1)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// TestBeltPlans holds that the second belt costs no index: what the API reads, lists and searches for comes by the same
// ones for a role that the policies hold as for the owner, and the setting is read once and not row by row.
func TestBeltPlans(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	tx, err := w.owner.Begin(t.Context())
	require.NoError(t, err)
	for _, sql := range beltFillSQL(30_000) {
		_, err := tx.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	require.NoError(t, tx.Commit(t.Context()))
	_, err = w.owner.Exec(t.Context(), `ANALYZE`)
	require.NoError(t, err)
	var ws, id uuid.UUID
	require.NoError(t, w.owner.QueryRow(t.Context(), `SELECT ws, id FROM filled LIMIT 1`).Scan(&ws, &id))
	args := pgx.NamedArgs{
		"now": nil, "workspace": ws, "id": id, "ids": []uuid.UUID{id}, "task": id, "memory": id, "limit": 20, "offset": 0, "latest": true,
		"after_at": time.Now(), "after_id": uuid.Max, "after_version": 0, "kinds": []string{"memory_add"}, "status": "", "key": sum("x"),
		"keys": [][]byte{sum("x")}, "account": "u1", "session": "", "event": "e1", "webhook": id, "model": "m", "standard": 100,
		"after": "", "text": "x", "part": 0, "lane": sum("x"), "content_keys": [][]byte{sum("x")}, "none": uuid.Nil, "act": "", "actor": "",
		"after_xid": "1", "after_task": uuid.Nil, "after_generation": 0, "after_claim": 0, "horizon": "1000000000", "xid": "1", "generation": 0, "claim": 0,
	}
	scope := inScope(memory.Scope{UserID: "u1"}, args)
	filter, err := memory.ParseFilter([]byte(`{"AND": [{"user_id": "u1"}, {"metadata.n": 3}]}`))
	require.NoError(t, err)
	filtered := inFilter(filter, args)
	for name, sql := range map[string]string{
		"memory": memorySQL, "memories": memoriesSQL + scope + newestSQL, "filtered": memoriesSQL + filtered + newestSQL,
		"browse":      `SELECT ` + recordColumnsSQL + browsedSQL + visibleSQL(false) + scope + newestSQL + pageSQL,
		"browse some": `SELECT ` + recordColumnsSQL + browsedSQL + visibleSQL(false) + filtered + newestSQL + pageSQL,
		"count":       `SELECT count(*)` + browsedSQL + visibleSQL(false) + filtered,
		"searched":    searchIDsSQL + searchedSQL + visibleSQL(false) + filtered + newestSQL + searchIDsEndSQL,
		"terms":       searchTermsSQL, "vectors": searchVectorsSQL, "history": historySQL, "entities": entitiesStatement("user_id", entityAfter),
		"event": eventSQL, "events": ofStatus(eventsSQL, ""), "pending events": ofStatus(eventsSQL, "PENDING"),
		"entries": fmt.Sprintf(entriesSQL, entriesAfterSQL), "feed": feedSQL, "items": itemsSQL, "items by key": itemsByKeySQL,
		"task of item": taskOfItemSQL, "deliveries": deliveriesSQL, "place": laneOfSQL, "pending": countPendingSQL, "cancel state": cancelStateSQL,
		"batch targets": batchTargetsSQL, "acts": actsSQL, "claim": fmt.Sprintf(claimSQL, ""), "exports": exportPartsSQL, "events by id": eventsByIDsSQL,
		"waiting": nextHeadSQL, "facts": factsSQL,
	} {
		free, held := w.explained(w.owner, of(ws), sql, args), w.explained(w.api, of(ws), sql, args)
		require.Equal(t, accesses(free), accesses(held), "%s\nowner:\n%s\nAPI:\n%s", name, free, held)
		require.NotRegexp(t, `(Filter|Index Cond|Recheck Cond): .*current_setting`, held, "%s reads the setting row by row", name)
	}
}

func (w *beltWorld) explained(pool *pgxpool.Pool, r reach, sql string, args pgx.NamedArgs) (plan string) {
	w.t.Helper()
	require.NoError(w.t, w.within(pool, r, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.t.Context(), "EXPLAIN "+sql, args)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	}), sql)
	return plan
}
