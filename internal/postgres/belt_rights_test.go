package postgres

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// rightsOf are the rights of the group roles, table by table. Whatever isn't here is forbidden. A verb in small letters is
// for some columns only.
func rightsOf() map[string][2]string {
	const columns = "select"
	return map[string][2]string{ // API, workers
		"workspaces":         {"SELECT INSERT UPDATE", "SELECT UPDATE"},
		"api_keys":           {"SELECT INSERT UPDATE", columns + " DELETE"},
		"data_keys":          {"SELECT INSERT", "SELECT INSERT UPDATE DELETE"},
		"idempotency_keys":   {"SELECT INSERT", "SELECT INSERT DELETE"},
		"lanes":              {"SELECT INSERT UPDATE", "SELECT INSERT UPDATE"},
		"tasks":              {"SELECT INSERT UPDATE", "SELECT INSERT UPDATE DELETE"},
		"tasks_archive":      {"SELECT UPDATE", "SELECT INSERT UPDATE DELETE"},
		"credit_accounts":    {"SELECT INSERT UPDATE", "SELECT UPDATE"},
		"credit_grants":      {"SELECT INSERT", "SELECT"},
		"task_runs":          {"SELECT INSERT UPDATE", "SELECT INSERT UPDATE"},
		"credit_closings":    {"SELECT INSERT", "SELECT INSERT"},
		"credit_checkpoints": {"", "SELECT INSERT UPDATE"},
		"plans":              {"SELECT INSERT UPDATE", "SELECT INSERT UPDATE DELETE"},
		"task_results":       {"SELECT INSERT", "SELECT INSERT DELETE"},
		"task_parts":         {"SELECT INSERT DELETE", "SELECT INSERT DELETE"},
		"memories":           {"SELECT INSERT UPDATE DELETE", "SELECT INSERT UPDATE DELETE"},
		"memory_history":     {"SELECT INSERT UPDATE", "SELECT INSERT UPDATE DELETE"},
		"memory_terms":       {"SELECT INSERT UPDATE DELETE", "SELECT INSERT UPDATE DELETE"},
		"memory_vectors":     {"SELECT INSERT UPDATE DELETE", "SELECT INSERT UPDATE DELETE"},
		"memory_feedback":    {"SELECT INSERT UPDATE DELETE", "SELECT INSERT UPDATE DELETE"},
		"memory_exports":     {"SELECT INSERT DELETE", "SELECT UPDATE DELETE"},
		"task_attempts":      {"SELECT INSERT", "SELECT INSERT DELETE"},
		"items":              {"SELECT INSERT UPDATE DELETE", "SELECT INSERT UPDATE DELETE"},
		"reindexes":          {"", "SELECT INSERT UPDATE"},
		"erasures":           {"SELECT INSERT DELETE", "SELECT INSERT DELETE"},
		"webhooks":           {"SELECT INSERT UPDATE", "SELECT UPDATE DELETE"},
		"webhook_deliveries": {"SELECT INSERT UPDATE", "SELECT INSERT UPDATE DELETE"},
		"provider_pauses":    {"SELECT INSERT UPDATE", "SELECT INSERT UPDATE"},
		"operators":          {columns, ""},
		"operator_acts":      {"SELECT INSERT", columns + " INSERT DELETE"},
		"console_sessions":   {"SELECT INSERT DELETE", columns + " DELETE"},
		"process_minutes":    {"SELECT INSERT", "SELECT INSERT DELETE"},
		"service_minutes":    {"SELECT INSERT", "SELECT INSERT DELETE"},
		"goose_db_version":   {"SELECT", "SELECT"},
		"all_tasks":          {"SELECT", "SELECT"},
		"credit_entries":     {"SELECT", "SELECT"},
		"task_states":        {"SELECT", "SELECT"},
		"skipped_vectors":    {"SELECT", "SELECT"},
	}
}

// TestRights holds that the roles of the processes have the rights that they need and no other.
func TestRights(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)

	t.Run("AreTheListed", func(t *testing.T) {
		t.Parallel()
		rights := rightsOf()
		tables := w.names(`SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')`)
		require.ElementsMatch(t, tables, slices.Collect(maps.Keys(rights)))
		for _, table := range tables {
			for i, role := range []string{"holdfast_api", "holdfast_worker"} {
				var has []string
				for _, verb := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"} {
					var whole, some bool
					require.NoError(t, w.owner.QueryRow(t.Context(), `SELECT has_table_privilege($1, $2, $3)`, role, table, verb).Scan(&whole))
					if slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "REFERENCES"}, verb) {
						require.NoError(t, w.owner.QueryRow(t.Context(), `SELECT has_any_column_privilege($1, $2, $3)`, role, table, verb).Scan(&some))
					}
					switch {
					case whole:
						has = append(has, verb)
					case some:
						has = append(has, strings.ToLower(verb))
					}
				}
				require.Equal(t, rights[table][i], strings.Join(has, " "), "%s on %s", role, table)
			}
		}
	})

	t.Run("ForbidWhatNobodyNeeds", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			pool *pgxpool.Pool
			sql  string
		}{
			{w.api, `DELETE FROM credit_closings`},
			{w.api, `UPDATE credit_closings SET settled = 0`},
			{w.work, `UPDATE credit_closings SET settled = 0`},
			{w.work, `DELETE FROM credit_closings`},
			{w.api, `UPDATE operator_acts SET actor = 'x'`},
			{w.work, `UPDATE operator_acts SET actor = 'x'`},
			{w.api, `DELETE FROM operator_acts`},
			{w.work, `SELECT actor FROM operator_acts`},
			{w.api, `DELETE FROM tasks`},
			{w.api, `DELETE FROM idempotency_keys`},
			{w.api, `DELETE FROM workspaces`},
			{w.work, `DELETE FROM workspaces`},
			{w.api, `DELETE FROM api_keys`},
			{w.work, `SELECT secret_hash FROM api_keys`},
			{w.work, `SELECT secret_hash FROM operators`},
			{w.work, `INSERT INTO credit_grants (id, workspace_id, reference, amount) VALUES (gen_random_uuid(), gen_random_uuid(), 'x', 1)`},
			{w.api, `INSERT INTO operators (id, name, secret_hash) VALUES ('xxxxxxxxxxxx', 'x', sha256('x'))`},
			{w.api, `UPDATE operators SET revoked_at = NULL`},
			{w.work, `SELECT holder FROM console_sessions`},
			{w.api, `UPDATE console_sessions SET expires_at = 'infinity'`},
			{w.api, `DELETE FROM process_minutes`},
			{w.api, `CREATE TABLE mine (a int)`},
			{w.work, `CREATE TABLE mine (a int)`},
			{w.api, `CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'`},
			{w.api, `ALTER TABLE memories DISABLE ROW LEVEL SECURITY`},
			{w.api, `DROP POLICY workspace ON memories`},
			{w.api, `TRUNCATE memories`},
			{w.work, `TRUNCATE memories`},
			{w.api, `SET ROLE holdfast_worker`},
			{w.work, `SET ROLE holdfast_api`},
			{w.api, `SET SESSION AUTHORIZATION holdfast`},
			{w.api, `SET row_security = off; SELECT count(*) FROM memories`},
		} {
			_, err := c.pool.Exec(t.Context(), c.sql)
			require.Equal(t, "42501", stateOf(classify(err)), "%s: %v", c.sql, err)
		}
	})
}

// TestRole holds that doctor and the API's start tell a role that the policies hold from one that they don't.
func TestRole(t *testing.T) {
	t.Parallel()
	w := newBeltWorld(t)
	for url, want := range map[string]string{
		w.url:                        "it is a superuser",
		w.api.Config().ConnString():  "",
		w.work.Config().ConnString(): "it has the rights of holdfast_worker",
	} {
		role, err := ReadRole(t.Context(), url)
		require.NoError(t, err)
		require.Equal(t, want, role.Slack())
		require.Equal(t, want == "", role.Held())
		db, err := Open(t.Context(), Config{URL: url})
		require.NoError(t, err)
		t.Cleanup(db.Close)
		same, err := db.Role(t.Context())
		require.NoError(t, err)
		require.Equal(t, role, same)
	}
	for _, slack := range []Role{
		{API: true, BypassRLS: true}, {API: true, Owner: true}, {API: true, Worker: true}, {API: true, Superuser: true}, {},
	} {
		require.False(t, slack.Held())
		require.NotEmpty(t, slack.Slack())
	}
}

// TestReach holds which statements are about no one workspace: a new one is a deliberate act. Statements that send no
// setting see nothing as the API, unless what they read has no workspace.
func TestReach(t *testing.T) {
	t.Parallel()
	declared := map[string][]string{}
	call := regexp.MustCompile(`\.(?:read|alone)\(ctx, (everyone|unbound|within|a\.reach\(\)|of\([^,]*\)|[^,]*), (?:"([^"]*)"|([\w.]+)),`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range call.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(found[1], "of(") {
				continue
			}
			declared[found[1]] = append(declared[found[1]], strings.TrimSuffix(file, ".go")+": "+found[2]+found[3])
		}
	}
	for kind, want := range map[string][]string{
		"everyone": {
			"health: read health",     // which workspaces are suspended
			"pauses: change provider", // its act is about no workspace
			"keys: authenticate", "keys: find key", "console_sessions: read session",
			"seal_keys: sample data keys", "seal_keys: count data keys", "seal_keys: stale data keys",
		},
		"within": {
			"acts: read acts", "workspaces: read workspaces", // everyone for an operator's list
			"claim: name", "fail: place of task", // unbound for workers
		},
		"a.reach()": {"acts: name"},
	} {
		require.ElementsMatch(t, want, declared[kind], kind)
		delete(declared, kind)
	}
	require.Equal(t, []string{"unbound"}, slices.Collect(maps.Keys(declared)), fmt.Sprint(declared))
	wide, err := regexp.Compile(`\beveryone\b`)
	require.NoError(t, err)
	for file, want := range map[string]int{"acts.go": 1, "workspaces.go": 2} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Len(t, wide.FindAllString(string(text), -1), want, file)
	}
}
