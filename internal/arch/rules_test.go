package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const modulePath = "github.com/holdfast-memory/holdfast"

// The levels of DESIGN section 7. A package imports its own level and lower ones; leaves import nothing of
// Holdfast, and adapters import no other adapter.
const (
	levelLeaf = iota
	levelDomain
	levelUseCase
	levelAdapter
	levelApp
	levelCmd
	levelTests // imported by tests only, may itself import everything below cmd
)

// place is where a package belongs. Packages of one family are one adapter cut into several packages.
type place struct {
	level  int
	family string
}

// placeOf answers false for a package that nobody has placed yet.
func placeOf(pkg string) (place, bool) {
	switch pkg {
	case "internal/fault", "internal/failpoint", "internal/postgres/group", "internal/arch", "migrations", "nats", "examples":
		return place{levelLeaf, pkg}, true
	case "internal/access", "internal/command", "internal/task", "internal/memory", "internal/model", "internal/credit", "internal/endpoint", "internal/operator", "internal/seal":
		return place{levelDomain, pkg}, true
	case "internal/write", "internal/recall", "internal/worker", "internal/repair", "internal/audit":
		return place{levelUseCase, pkg}, true
	case "internal/model/openai", "internal/model/anthropic", "internal/model/offline",
		"internal/postgres", "internal/wakeup", "internal/httpapi", "internal/webhook", "internal/obs",
		"internal/localdev", "internal/credential":
		return place{levelAdapter, pkg}, true
	case "internal/app":
		return place{levelApp, pkg}, true
	}
	switch {
	case strings.HasPrefix(pkg, "internal/httpapi/"):
		return place{levelAdapter, "internal/httpapi"}, true
	case strings.HasPrefix(pkg, "internal/obs/"):
		return place{levelAdapter, "internal/obs"}, true
	case strings.HasPrefix(pkg, "cmd/"):
		return place{levelCmd, pkg}, true
	case pkg == "internal/testkit" || strings.HasPrefix(pkg, "internal/testkit/"):
		return place{levelTests, "internal/testkit"}, true
	case pkg == "internal/endtoend": // tests of the real binaries
		return place{levelTests, pkg}, true
	case pkg == "internal/cluster": // servers that fail over, which only its own tests run
		return place{levelTests, pkg}, true
	case pkg == "internal/chaos": // the kill harness, which only its own tests run
		return place{levelTests, pkg}, true
	case pkg == "internal/model/contract": // the stub server and the tests that every model adapter runs
		return place{levelTests, pkg}, true
	case pkg == "internal/model/evaluate": // measures extractors; in no product binary
		return place{levelTests, pkg}, true
	case pkg == "internal/mutants": // runs tests on changed copies of the code; in no product binary
		return place{levelTests, pkg}, true
	}
	return place{}, false
}

// technology is what only its owners may import. Test files and testkit run the real thing and are free.
type technology struct {
	name     string
	prefixes []string
	owners   []string // a name ending in / means everything below it
}

func technologies() []technology {
	return []technology{
		{
			name:     "SQL",
			prefixes: []string{"database/sql", "github.com/jackc/pgx/", "github.com/pressly/goose/", "github.com/exaring/otelpgx"},
			owners:   []string{"internal/postgres", "migrations", "internal/localdev"},
		},
		{
			name:     "nats.go",
			prefixes: []string{"github.com/nats-io/nats.go", "github.com/nats-io/nats-server/"},
			owners:   []string{"internal/wakeup", "internal/localdev"},
		},
		{
			name:     "nkeys",
			prefixes: []string{"github.com/nats-io/nkeys"},
			owners:   []string{"internal/wakeup", "internal/credential"},
		},
		{
			name:     "AES",
			prefixes: []string{"crypto/aes", "crypto/cipher"},
			owners:   []string{"internal/seal"},
		},
		{
			name:     "Echo",
			prefixes: []string{"github.com/labstack/echo/"},
			owners:   []string{"internal/httpapi", "internal/httpapi/"},
		},
		{
			name:     "OpenTelemetry",
			prefixes: []string{"go.opentelemetry.io/"},
			owners:   []string{"internal/obs/tracing"},
		},
		{
			name:     "the MCP SDK",
			prefixes: []string{"github.com/modelcontextprotocol/"},
			owners:   []string{"internal/httpapi/mcp", "cmd/holdfast"}, // what serves the tools, and what passes them on
		},
		{
			name:     "the OpenAI SDK",
			prefixes: []string{"github.com/openai/"},
			owners:   []string{"internal/model/openai"},
		},
		{
			name:     "the address guard",
			prefixes: []string{"code.dny.dev/ssrf"},
			owners:   []string{"internal/webhook"},
		},
		{
			name:     "the Anthropic SDK",
			prefixes: []string{"github.com/anthropics/"},
			owners:   []string{"internal/model/anthropic"},
		},
	}
}

// checkImports answers one line for each import that breaks a rule, in a stable order. The graph maps a
// package to what its files import, test files left out; names inside the module are relative to its root.
func checkImports(graph map[string][]string) []string {
	var broken []string
	for _, from := range slices.Sorted(maps.Keys(graph)) {
		at, known := placeOf(from)
		if !known {
			broken = append(broken, fmt.Sprintf("%s has no place: give it one in internal/arch/rules_test.go", from))
			continue
		}
		for _, to := range graph[from] {
			inside, ours := strings.CutPrefix(to, modulePath+"/")
			reason := ""
			if ours {
				reason = direction(at, inside)
			} else {
				reason = ownership(from, at, to)
			}
			if reason != "" {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", from, strings.TrimPrefix(to, modulePath+"/"), reason))
			}
		}
	}
	return broken
}

// direction answers why a package at this place may not import another one of the module, or nothing.
func direction(at place, to string) string {
	target, known := placeOf(to)
	switch {
	case !known:
		return "the imported package has no place"
	case to == "internal/arch":
		return "nothing imports arch"
	case target.level == levelTests:
		// The demo shows a crash in the middle of a model call and needs a model that waits until told.
		if at.level == levelTests || at.family == "cmd/holdfast" && to == "internal/testkit/stubmodel" {
			return ""
		}
		return "it is for tests only"
	case at.level == levelTests:
		if target.level == levelCmd {
			return "tests start binaries, they don't import them"
		}
		return ""
	case at.level == levelLeaf:
		return "a leaf imports nothing of Holdfast"
	case target.level > at.level:
		return "a lower level never imports a higher one"
	case at.level == levelAdapter && target.level == levelAdapter && at.family != target.family:
		return "adapters never import each other"
	}
	return ""
}

// ownership answers why a package may not import this one from outside the module, or nothing.
func ownership(from string, at place, to string) string {
	if at.level == levelTests {
		return ""
	}
	for _, tech := range technologies() {
		if !slices.ContainsFunc(tech.prefixes, func(p string) bool { return strings.HasPrefix(to, p) }) {
			continue
		}
		owned := slices.ContainsFunc(tech.owners, func(o string) bool {
			return from == o || strings.HasSuffix(o, "/") && strings.HasPrefix(from, o)
		})
		if !owned {
			return fmt.Sprintf("%s belongs to %s", tech.name, strings.Join(tech.owners, ", "))
		}
	}
	return ""
}
