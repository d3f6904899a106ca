package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sessionState matches what outlives its transaction in a session. SET stands there as a statement of its own: in an
// UPDATE or an ALTER it never begins one.
var sessionState = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\bpg_(?:try_)?advisory_(?:lock|unlock)\w*\s*\(`),
	regexp.MustCompile(`(?i)(?:^|;)\s*SET\s+(?:SESSION\s+)?(?:TIME\s+ZONE|ROLE|[\w.]+\s*(?:=|TO\b))`),
	regexp.MustCompile(`(?i)(?:^|;)\s*SET\s+SESSION\b`),
	regexp.MustCompile(`(?:^|;)\s*(?:RESET|PREPARE|LOAD)\s+[\w']`), // in small letters they are words of our step names
	regexp.MustCompile(`(?i)(?:^|;)\s*(?:DISCARD|DEALLOCATE)\s+\w`),
	regexp.MustCompile(`(?i)\bCREATE\s+(?:(?:GLOBAL|LOCAL)\s+)?TEMP(?:ORARY)?\b|\bINTO\s+TEMP(?:ORARY)?\b|\bpg_temp\b`),
	regexp.MustCompile(`(?i)\bCURSOR\s+WITH\s+HOLD\b`),
}

var settingCall = regexp.MustCompile(`(?is)\bset_config\s*\(([^()]*)\)`)

// sessionStateIn answers the first thing in the text that a session would keep.
func sessionStateIn(text string) string {
	text = strings.TrimSpace(sqlComment.ReplaceAllString(text, ""))
	for _, pattern := range sessionState {
		if use := pattern.FindString(text); use != "" {
			return use
		}
	}
	for _, call := range settingCall.FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`(?i),\s*true\s*$`).MatchString(call[1]) {
			return call[0]
		}
	}
	return ""
}

func sessionStateOf(src source) []string {
	var uses []string
	ast.Inspect(src.ast, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			text = literal.Value
		}
		if use := sessionStateIn(text); use != "" {
			uses = append(uses, use)
		}
		return true
	})
	return uses
}

// TestSessions holds that no statement leaves anything in its session: behind PgBouncer in transaction mode the next
// transaction of the same client is in another one, and somebody else's is in this. Notifications have a test of their
// own; the lock of migrations is goose's, on a connection past the pooler.
func TestSessions(t *testing.T) {
	t.Parallel()

	t.Run("NothingIsLeftByPostgres", func(t *testing.T) {
		t.Parallel()
		read := 0
		for _, src := range productionSources(t) {
			if src.pkg() != "internal/postgres" && src.pkg() != "migrations" {
				continue
			}
			read++
			for _, use := range sessionStateOf(src) {
				t.Errorf("%s leaves something in its session: %s", src.name, use)
			}
		}
		if read < 20 {
			t.Errorf("only %d files were read", read)
		}
	})

	t.Run("NothingIsLeftByMigrations", func(t *testing.T) {
		t.Parallel()
		files, err := filepath.Glob(filepath.Join(moduleRoot(t), "migrations", "*.sql"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d migrations: %v", len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if use := sessionStateIn(string(text)); use != "" {
				t.Errorf("migrations/%s leaves something in its session: %s", filepath.Base(file), use)
			}
		}
	})

	t.Run("TheCheckSeesThem", func(t *testing.T) {
		t.Parallel()
		for _, sql := range []string{
			"SELECT pg_advisory_lock($1)", "SELECT pg_try_advisory_lock (1, 2)", "SELECT pg_advisory_unlock_all()",
			"SELECT pg_advisory_lock_shared(1)", "SET lock_timeout = '1s'", "set search_path to x", "SELECT 1; SET SESSION x.y = 'a'",
			"SET TIME ZONE 'UTC'", "SET ROLE holdfast_api", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
			"SELECT set_config('a.b', $1, false)", "SELECT set_config('a.b', $1, $2)", "CREATE TEMP TABLE x ()",
			"create temporary table x ()", "SELECT 1 INTO TEMP x", "DISCARD ALL", "DEALLOCATE ALL", "PREPARE x AS SELECT 1",
			"RESET ALL", "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
		} {
			src := mustParse(t, "internal/postgres/x.go", "package postgres\n\nconst q = `"+sql+"`\n")
			if len(sessionStateOf(src)) != 1 {
				t.Errorf("%q was not seen", sql)
			}
		}
	})

	t.Run("WhatEndsWithItsTransactionIsNotRefused", func(t *testing.T) {
		t.Parallel()
		for _, sql := range []string{
			"SELECT pg_advisory_xact_lock($1)", "SELECT pg_advisory_xact_lock_shared($1)", "SELECT pg_try_advisory_xact_lock($1)",
			"SET LOCAL lock_timeout = '1s'", "SELECT set_config('lock_timeout', $2, true), set_config('x', $3, true)",
			"UPDATE tasks\n   SET status = 'x'", "ALTER TABLE x ALTER COLUMN y SET STORAGE EXTERNAL",
			"reset failures", "INSERT INTO x VALUES (1) ON CONFLICT DO UPDATE SET a = 1", "SELECT temperature FROM x", "set HOLDFAST_DATABASE_URL",
			"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		} {
			if use := sessionStateIn(sql); use != "" {
				t.Errorf("%q was refused: %s", sql, use)
			}
		}
	})
}
