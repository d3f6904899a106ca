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
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// beltedSQL names the tables that belong to a workspace, read from the catalog.
const beltedSQL = `
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND NOT a.attisdropped
   AND (a.attname = 'workspace_id' OR c.relname = 'workspaces' AND a.attname = 'id')
 ORDER BY 1`

func (w *beltWorld) names(sql string) []string {
	w.t.Helper()
	rows, err := w.owner.Query(w.t.Context(), sql)
	require.NoError(w.t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	return names
}

// TestBeltCatalog holds that no table is left out: each has its policies, or a reason for none.
func TestBeltCatalog(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	without := map[string]string{
		"goose_db_version": "versions of the schema",
		"provider_pauses":  "providers are every workspace's",
		"reindexes":        "how far a rebuild of all projections is",
		"operators":        "the API reads them to know who calls, by columns",
		"console_sessions": "the API reads them to know who is signed in: ids of keys and operators, and of no workspace",
		"process_minutes":  "what a process did for all workspaces together",
		"service_minutes":  "how the whole service stood",
	}
	belted := w.names(beltedSQL)
	for _, table := range w.names(`SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`) {
		_, excused := without[table]
		require.NotEqual(t, slices.Contains(belted, table), excused, table)
	}
	require.ElementsMatch(t, belted, w.names(`
SELECT c.relname FROM pg_class c
 WHERE c.relrowsecurity
   AND EXISTS (SELECT FROM pg_policies p WHERE p.tablename = c.relname AND p.policyname = 'workspace' AND p.permissive = 'PERMISSIVE'
                AND p.cmd = 'ALL' AND p.roles = '{holdfast_api}' AND p.with_check IS NULL
                AND p.qual ~ '^COALESCE\(\((workspace_id|id) = ANY \(\(\( SELECT string_to_array\(current_setting\(''holdfast.workspace''::text, true\), '',''::text\)')
   AND EXISTS (SELECT FROM pg_policies p WHERE p.tablename = c.relname AND p.policyname = 'workers'
                AND p.cmd = 'ALL' AND p.roles = '{holdfast_worker}' AND p.qual = 'true')`))
	require.ElementsMatch(t, []string{"workspaces SELECT", "api_keys SELECT", "credit_accounts SELECT", "data_keys SELECT", "operator_acts SELECT", "operator_acts INSERT"},
		w.names(`SELECT tablename || ' ' || cmd FROM pg_policies WHERE policyname NOT IN ('workspace', 'workers')`))
	// A view reads as its owner, whom nothing holds, unless it says otherwise: these two show states and no content.
	require.ElementsMatch(t, []string{"task_states", "skipped_vectors"}, w.names(`
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'v'
   AND NOT coalesce(reloptions @> '{security_invoker=true}', false)`))
}

// TestBeltRows holds that whoever logs in as the API reads and writes rows of the workspace that the transaction is about,
// and none without a setting. The filled workspace has a row in every table, so that the same statement finds one there.
func TestBeltRows(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	wide := []string{"workspaces", "api_keys", "credit_accounts", "data_keys", "operator_acts"}
	for _, table := range w.names(beltedSQL) {
		key := "workspace_id"
		if table == "workspaces" {
			key = "id"
		}
		var readable bool
		require.NoError(t, w.owner.QueryRow(t.Context(), `SELECT has_table_privilege('holdfast_api', $1, 'SELECT')`, table).Scan(&readable))
		read := fmt.Sprintf(`SELECT FROM %s WHERE %s = @a`, table, key)
		args := pgx.NamedArgs{"a": filledID}
		rows, err := w.touched(w.owner, of(strangerID), read, args)
		require.NoError(t, err, table)
		require.Positive(t, rows, "%s: the test's row is missing", table)
		if !readable {
			_, err = w.touched(w.api, of(filledID), read, args)
			require.Equal(t, "42501", stateOf(classify(err)), table)
			continue
		}
		for r, want := range map[reach]bool{of(filledID): true, of(strangerID): false, unbound: false, everyone: slices.Contains(wide, table)} {
			rows, err := w.touched(w.api, r, read, args)
			require.NoError(t, err, table)
			require.Equal(t, want, rows > 0, "%s within %q", table, r)
		}
		for _, write := range []string{`UPDATE %[1]s SET %[2]s = %[2]s WHERE %[2]s = @a`, `DELETE FROM %[1]s WHERE %[2]s = @a`} {
			for _, r := range []reach{of(strangerID), everyone, unbound} {
				rows, err := w.touched(w.api, r, fmt.Sprintf(write, table, key), args)
				require.True(t, stateOf(classify(err)) == "42501" || err == nil && rows == 0, "%s within %q: %d, %v", write, r, rows, err)
			}
		}
	}
	_, err := w.touched(w.api, of(strangerID), `INSERT INTO lanes (workspace_id, lane, next_seq, last_accepted_at) VALUES (@a, sha256('y'), 1, now())`,
		pgx.NamedArgs{"a": filledID})
	require.Equal(t, "42501", stateOf(classify(err)), "a row of another workspace is written")
	_, err = w.touched(w.api, of(strangerID), `UPDATE workspaces SET id = @a WHERE id = @b`, pgx.NamedArgs{"a": uuid.New(), "b": strangerID})
	require.Equal(t, "42501", stateOf(classify(err)), "a row is given to another workspace")
}

// explicit is the predicate by which every statement names its workspace, in the forms that there are.
var explicit = regexp.MustCompile(`(\w+\.)?workspace_id = @workspace\b`)

// TestBeltHoldsWithoutThePredicate takes the predicate out of statements of the store: the owner then gets the rows of the
// other workspace whose ids it names, and the API none.
func TestBeltHoldsWithoutThePredicate(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	args := pgx.NamedArgs{
		"now": nil, "workspace": strangerID, "id": filledID, "ids": []uuid.UUID{filledID}, "task": filledID, "memory": filledID,
		"webhook": filledID, "message": filledID, "limit": 10, "offset": 0, "latest": true, "key": "aaaaaaaaaaaa",
		"key_hash": sum("x"), "keys": [][]byte{sum("x")}, "lane": sum("x"), "account": "canary", "event": "canary", "event_id": "canary",
		"part": 0, "hash": nil, "session": "", "rate_limit": 7, "max_attempts": 5, "kinds": []string{"memory_infer"}, "model": "canary",
		"after_at": nil, "after_id": uuid.Nil, "after_version": 0, "act": "", "actor": "", "none": uuid.Nil, "price": 0, "generation": nil,
		"after": "", "terms": []string{"canary"}, "erased_at": time.Now(), "commands": [][]byte{nil}, "format": 1, "deleted": 1, "cancelled": 0,
		"members": "{}", "status": "", "extraction": "{}", "standard": 1, "reason": "", "accounts": []string{"canary"}, "sessions": []string{""},
	}
	scope := inScope(memory.Scope{UserID: "canary"}, args)
	statements := map[string]string{
		"memory": memorySQL, "memories": memoriesSQL + scope + newestSQL, "kept": keptSQL, "history": historySQL,
		"browse": `SELECT ` + recordColumnsSQL + browsedSQL + visibleSQL(false) + scope + newestSQL, "entities": entitiesStatement("user_id", entityAny),
		"terms": searchTermsSQL, "vectors": searchVectorsSQL, "lane of record": laneOfRecordSQL,
		"event": eventSQL, "events": ofStatus(eventsSQL, ""), "cancel state": cancelStateSQL, "retry state": retryStateSQL,
		"place": laneOfSQL, "items": itemsByKeySQL, "task of item": taskOfItemSQL, "keys": keysSQL,
		"webhook": endpointSQL, "webhooks": endpointsSQL, "delivery": deliverySQL, "part": taskPartSQL, "batch targets": batchTargetsSQL,
		"revoke key": revokeKeySQL, "limit key": limitKeySQL, "revoke all keys": revokeAllSQL, "delete webhooks": deleteEndpointsSQL,
		"forget items": forgetItemsSQL, "take back": takeBackFeedbackSQL, "drop fence": dropFenceSQL, "healthy": noteHealthySQL,
		"erase tasks": eraseTasksSQL, "count erased": countErasedSQL, "rewrite": rewriteBatchesSQL, "drop parts": dropPartsSQL,
		"erase records": eraseRecordsSQL, "erase history": eraseHistorySQL, "hold webhook": holdEndpointSQL, "lock judged": lockJudgedSQL,
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		sql := statements[name]
		bare := explicit.ReplaceAllString(sql, "true")
		if name != "drop parts" {
			require.NotEqual(t, sql, bare, "%s names no workspace", name)
			if rows, err := w.touched(w.owner, of(strangerID), sql, args); rows != 0 || err != nil {
				require.NoError(t, err, "%s\n%s", name, sql)
				require.Zero(t, rows, "%s: the predicate alone doesn't hold", name)
			}
		}
		rows, err := w.touched(w.owner, of(strangerID), bare, args)
		require.NoError(t, err, "%s\n%s", name, bare)
		require.Positive(t, rows, "%s finds nothing to be held from\n%s", name, bare)
		rows, err = w.touched(w.api, of(strangerID), bare, args)
		require.NoError(t, err, "%s\n%s", name, bare)
		require.Zero(t, rows, "%s reaches the other workspace", name)
	}
}
