package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// notification matches the statements in capitals wherever they stand, the small form as a whole statement,
// and the function in any form. Words such as notify_url and a sentence with "listen on" don't match.
var notification = regexp.MustCompile(`\b(?:UN)?LISTEN\s+["\w*]|\bNOTIFY\s+["\w]|(?i:\bpg_notify\s*\()` +
	`|(?im:(?:^|;)\s*(?:(?:un)?listen|notify)\s+["\w*]+\s*(?:[;,]|$))`)

var sqlComment = regexp.MustCompile(`(?m)--.*$|(?s:/\*.*?\*/)`)

// TestNotifications holds that Postgres carries no notifications: they need a session of their own, which
// PgBouncer in transaction mode doesn't give, and hints are NATS's job.
func TestNotifications(t *testing.T) {
	t.Parallel()

	t.Run("NoneInPostgres", func(t *testing.T) {
		t.Parallel()
		for _, src := range productionSources(t) {
			if src.pkg() != "internal/postgres" && src.pkg() != "migrations" {
				continue
			}
			for _, use := range notificationsIn(src) {
				t.Errorf("%s uses notifications: %s", src.name, use)
			}
		}
	})

	t.Run("NoneInMigrations", func(t *testing.T) {
		t.Parallel()
		files, err := filepath.Glob(filepath.Join(moduleRoot(t), "migrations", "*.sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if use := notification.FindString(sqlComment.ReplaceAllString(string(text), "")); use != "" {
				t.Errorf("migrations/%s uses notifications: %s", filepath.Base(file), use)
			}
		}
	})

	t.Run("TheCheckSeesThem", func(t *testing.T) {
		t.Parallel()
		for _, sql := range []string{
			"LISTEN jobs", "UNLISTEN *", "listen jobs;", "SELECT 1; notify jobs, 'x'",
			"SELECT pg_notify('jobs', '')", "BEGIN NOTIFY jobs; END", "perform PG_NOTIFY ('a','b');",
		} {
			src := mustParse(t, "internal/postgres/x.go", "package postgres\n\nconst q = `"+sql+"`\n")
			if len(notificationsIn(src)) != 1 {
				t.Errorf("%q was not seen", sql)
			}
		}
		method := mustParse(t, "internal/postgres/x.go", "package postgres\n\nfunc f() { conn.WaitForNotification(ctx) }\n")
		if len(notificationsIn(method)) != 1 {
			t.Error("WaitForNotification was not seen")
		}
	})

	t.Run("OrdinaryWordsAreNotRefused", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"SELECT notify_url FROM webhooks", "listen on loopback: %w", "a listener"} {
			src := mustParse(t, "internal/postgres/x.go", "package postgres\n\nconst q = `"+text+"`\n")
			if got := notificationsIn(src); len(got) > 0 {
				t.Errorf("%q was refused: %q", text, got)
			}
		}
	})
}

// notificationsIn reads string literals and selectors; a comment may say the words.
func notificationsIn(src source) []string {
	var uses []string
	ast.Inspect(src.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil {
				text = n.Value
			}
			if use := notification.FindString(sqlComment.ReplaceAllString(text, "")); use != "" {
				uses = append(uses, use)
			}
		case *ast.SelectorExpr:
			if n.Sel.Name == "WaitForNotification" || n.Sel.Name == "OnNotification" {
				uses = append(uses, n.Sel.Name)
			}
		}
		return true
	})
	return uses
}

// TestEnvironment holds that settings enter at the top: only cmd and internal/app read the environment. The
// crash points of a chaos build are no setting and reach packages that no constructor passes through.
func TestEnvironment(t *testing.T) {
	t.Parallel()

	t.Run("OnlyCmdAndAppReadIt", func(t *testing.T) {
		t.Parallel()
		for _, src := range productionSources(t) {
			if mayReadEnvironment(src) {
				continue
			}
			for _, use := range environmentIn(src) {
				t.Errorf("%s reads the environment: %s", src.name, use)
			}
		}
	})

	t.Run("TheCheckSeesEveryForm", func(t *testing.T) {
		t.Parallel()
		src := mustParse(t, "internal/worker/x.go", `package worker

import (
	sys "os"
	"syscall"
)

var a = sys.Getenv("A")

func f() { _, _ = sys.LookupEnv("B"); _ = sys.ExpandEnv("$C"); _, _ = syscall.Getenv("D") }
`)
		want := []string{"os.Getenv", "os.LookupEnv", "os.ExpandEnv", "syscall.Getenv"}
		if got := environmentIn(src); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if mayReadEnvironment(src) {
			t.Error("internal/worker was let through")
		}
	})

	t.Run("OtherUsesOfOSAreNotRefused", func(t *testing.T) {
		t.Parallel()
		src := mustParse(t, "internal/worker/x.go", "package worker\n\nimport \"os\"\n\nvar pid = os.Getpid()\n")
		if got := environmentIn(src); len(got) > 0 {
			t.Errorf("os.Getpid was refused: %q", got)
		}
	})
}

func mayReadEnvironment(src source) bool {
	at, known := placeOf(src.pkg())
	if known && (at.level == levelApp || at.level == levelCmd || at.level == levelTests) {
		return true
	}
	return src.name == "internal/failpoint/chaos.go"
}

func environmentIn(src source) []string {
	readers := map[string][]string{"os": {"Getenv", "LookupEnv", "ExpandEnv"}, "syscall": {"Getenv"}}
	var uses []string
	ast.Inspect(src.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		qualifier, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		for pkg, names := range readers {
			if qualifier.Name == src.localName(pkg) && slices.Contains(names, sel.Sel.Name) {
				uses = append(uses, fmt.Sprintf("%s.%s", pkg, sel.Sel.Name))
			}
		}
		return true
	})
	return uses
}
