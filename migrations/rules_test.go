package migrations_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/migrations"
)

// core is the first schema. It is made in an empty database, so that nothing waits for its locks.
const core = "00001_core.sql"

// TestMigrations holds every migration after the first one to the rules of docs/upgrade.md: it runs under load, and the
// previous release's binaries work before, during and after it.
func TestMigrations(t *testing.T) {
	t.Parallel()

	t.Run("KeepTheRules", func(t *testing.T) {
		t.Parallel()
		names, err := fs.Glob(migrations.FS, "*.sql")
		if err != nil || len(names) == 0 || names[0] != core {
			t.Fatalf("the migrations are %v: %v", names, err)
		}
		for i, name := range names {
			if want := fmt.Sprintf("%05d_", i+1); !strings.HasPrefix(name, want) {
				t.Errorf("%s is the one after %d", name, i)
			}
			text, err := fs.ReadFile(migrations.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			if name == core {
				continue
			}
			for _, problem := range problems(string(text)) {
				t.Errorf("%s: %s", name, problem)
			}
		}
	})

	t.Run("RulesTellGoodFromBad", func(t *testing.T) {
		t.Parallel()
		const head, tail = "-- +goose Up\nSET LOCAL lock_timeout = '2s';\n", "\n-- +goose Down\nSELECT 1;\n"
		const alone = "-- +goose NO TRANSACTION\n-- +goose Up\n"
		for text, want := range map[string]string{
			head + "ALTER TABLE tasks ADD COLUMN a text;" + tail:                                                 "",
			head + "ALTER TABLE tasks ADD COLUMN a integer NOT NULL DEFAULT 0;" + tail:                           "",
			head + "CREATE TABLE a (id uuid PRIMARY KEY);\nCREATE INDEX a_x ON a (id);" + tail:                   "",
			head + "ALTER TABLE tasks ADD CONSTRAINT c CHECK (a > 0) NOT VALID;" + tail:                          "",
			head + "-- contract: v0.2.0 was the last to read it\nALTER TABLE tasks DROP COLUMN a;" + tail:        "",
			alone + "DROP INDEX CONCURRENTLY IF EXISTS a_x;\nCREATE INDEX CONCURRENTLY a_x ON tasks (a);" + tail: "",
			"-- +goose Up\nALTER TABLE tasks ADD COLUMN a text;" + tail:                                          "lock_timeout",
			head + "CREATE INDEX a_x ON tasks (a);" + tail:                                                       "CONCURRENTLY",
			head + "DROP INDEX a_x;" + tail:                                                                      "CONCURRENTLY",
			head + "CREATE INDEX CONCURRENTLY a_x ON tasks (a);" + tail:                                          "NO TRANSACTION",
			alone + "CREATE INDEX CONCURRENTLY a_x ON tasks (a);" + tail:                                         "IF EXISTS",
			alone + "ALTER TABLE tasks ADD COLUMN a text;" + tail:                                                "nothing else",
			head + "ALTER TABLE tasks ADD COLUMN a integer NOT NULL;" + tail:                                     "DEFAULT",
			head + "ALTER TABLE tasks DROP COLUMN a;" + tail:                                                     "contract",
			head + "ALTER TABLE tasks RENAME COLUMN a TO b;" + tail:                                              "contract",
			head + "ALTER TABLE tasks ALTER COLUMN a SET NOT NULL;" + tail:                                       "contract",
			head + "ALTER TABLE tasks ALTER COLUMN a TYPE bigint;" + tail:                                        "contract",
			head + "ALTER TABLE tasks ADD CONSTRAINT c CHECK (a > 0);" + tail:                                    "NOT VALID",
			head + "ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES c (d);" + tail:                                  "NOT VALID",
			head + "UPDATE tasks SET a = 1;" + tail:                                                              "batches",
			head + "SELECT 1;":                                                                                   "Down",
		} {
			found := strings.Join(problems(text), "; ")
			if want == "" && found != "" || want != "" && !strings.Contains(found, want) {
				t.Errorf("%q: found %q, want %q", text, found, want)
			}
		}
	})
}

var (
	comment    = regexp.MustCompile(`--[^\n]*`)
	quoted     = regexp.MustCompile(`(?s)\$\$.*?\$\$|'[^']*'`)
	spaces     = regexp.MustCompile(`\s+`)
	created    = regexp.MustCompile(`(?i)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	onTable    = regexp.MustCompile(`(?i)^CREATE (?:UNIQUE )?INDEX .*? ?ON (\w+)`)
	locks      = regexp.MustCompile(`(?i)^(ALTER TABLE|CREATE TRIGGER|DROP TRIGGER|DROP TABLE|CREATE POLICY|DROP POLICY|TRUNCATE)`)
	contracts  = regexp.MustCompile(`(?i)^DROP TABLE|\bDROP COLUMN\b|\bRENAME\b|\bSET NOT NULL\b|\bALTER COLUMN \w+ (SET DATA )?TYPE\b`)
	notNull    = regexp.MustCompile(`(?i)\bADD COLUMN\b[^,]*\bNOT NULL\b`)
	constraint = regexp.MustCompile(`(?i)\bADD (CONSTRAINT \w+ )?(CHECK|FOREIGN KEY)\b`)
	concurrent = regexp.MustCompile(`(?i)^(CREATE (UNIQUE )?INDEX CONCURRENTLY|DROP INDEX CONCURRENTLY IF EXISTS)\b`)
	rows       = regexp.MustCompile(`(?i)^(UPDATE|DELETE)\b`)
)

// problems are the rules that a migration breaks, in the words of the one who has to mend it.
func problems(text string) []string {
	up, _, hasDown := strings.Cut(text, "-- +goose Down")
	var found []string
	if !hasDown {
		found = append(found, "it has no Down")
	}
	alone := strings.Contains(up, "-- +goose NO TRANSACTION")
	contract := strings.Contains(up, "-- contract: v")
	bounded, made, dropped := false, map[string]bool{}, false
	plain := quoted.ReplaceAllString(comment.ReplaceAllString(up, ""), "''")
	for statement := range strings.SplitSeq(plain, ";") {
		s := strings.TrimSpace(spaces.ReplaceAllString(statement, " "))
		upper := strings.ToUpper(s)
		table := created.FindStringSubmatch(s)
		index := onTable.FindStringSubmatch(s)
		switch {
		case s == "":
		case strings.HasPrefix(upper, "SET LOCAL LOCK_TIMEOUT"):
			bounded = true
		case table != nil:
			made[table[1]] = true
		case alone:
			if !concurrent.MatchString(s) {
				found = append(found, "without a transaction it makes or drops indexes and nothing else")
			}
			dropped = dropped || strings.HasPrefix(upper, "DROP INDEX")
			if index != nil && !dropped {
				found = append(found, "before CREATE INDEX CONCURRENTLY comes DROP INDEX CONCURRENTLY IF EXISTS: a broken one stays behind")
			}
		case strings.Contains(upper, "INDEX CONCURRENTLY"):
			found = append(found, "CONCURRENTLY needs -- +goose NO TRANSACTION")
		case index != nil && !made[index[1]], strings.HasPrefix(upper, "DROP INDEX"):
			found = append(found, "an index of a table with rows is made and dropped CONCURRENTLY")
		case locks.MatchString(s) && !bounded:
			found = append(found, "it takes a lock for which everybody waits: begin with SET LOCAL lock_timeout")
		}
		if contracts.MatchString(s) && !contract {
			found = append(found, "it takes away what the previous release uses: name the last one that does (-- contract: vX.Y.Z)")
		}
		if notNull.MatchString(s) && !strings.Contains(upper, "DEFAULT") {
			found = append(found, "the previous release doesn't fill a NOT NULL column: give it a DEFAULT")
		}
		if constraint.MatchString(s) && !strings.Contains(upper, "NOT VALID") {
			found = append(found, "a constraint is added NOT VALID and validated by the next migration: otherwise it reads the table under its lock")
		}
		if rows.MatchString(s) {
			found = append(found, "rows are changed in batches by the new binaries, not in a migration")
		}
	}
	return found
}
