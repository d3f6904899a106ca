package arch

import (
	"slices"
	"strings"
	"testing"
)

// TestImports holds the import direction of the repository as it is.
func TestImports(t *testing.T) {
	t.Parallel()
	graph := graphOf(t, productionSources(t))

	t.Run("EveryPackageKeepsTheDirection", func(t *testing.T) {
		t.Parallel()
		for _, line := range checkImports(graph) {
			t.Error(line)
		}
	})

	t.Run("TheRepositoryWasRead", func(t *testing.T) {
		t.Parallel()
		for _, pkg := range []string{"internal/fault", "internal/task", "internal/arch"} {
			if _, read := graph[pkg]; !read {
				t.Errorf("%s wasn't found: the check above saw too little to mean anything", pkg)
			}
		}
	})
}

// TestChecker shows that each rule can fail: one made-up graph a rule, with the words it must answer.
func TestChecker(t *testing.T) {
	t.Parallel()
	const pgx, natsgo, echo = "github.com/jackc/pgx/v5", "github.com/nats-io/nats.go/jetstream", "github.com/labstack/echo/v4"
	ours := func(pkg string) string { return modulePath + "/" + pkg }

	cases := []struct {
		name string
		from string
		to   string
		want string // empty: allowed
	}{
		{"UnknownPackageFails", "internal/util", "fmt", "has no place"},
		{"ImportOfUnknownPackageFails", "internal/app", ours("internal/util"), "has no place"},
		{"LeafImportsNothing", "internal/fault", ours("internal/failpoint"), "a leaf imports nothing"},
		{"DomainNeverImportsUseCase", "internal/task", ours("internal/write"), "never imports a higher one"},
		{"DomainNeverImportsAdapter", "internal/model", ours("internal/model/offline"), "never imports a higher one"},
		{"UseCaseNeverImportsAdapter", "internal/worker", ours("internal/postgres"), "never imports a higher one"},
		{"AdapterNeverImportsApp", "internal/wakeup", ours("internal/app"), "never imports a higher one"},
		{"AppNeverImportsCmd", "internal/app", ours("cmd/api"), "never imports a higher one"},
		{"AdaptersNeverImportEachOther", "internal/postgres", ours("internal/wakeup"), "adapters never import each other"},
		{"ModelAdaptersNeverImportEachOther", "internal/model/openai", ours("internal/model/anthropic"), "adapters never import each other"},
		{"ProductionNeverImportsTestkit", "cmd/holdfast", ours("internal/testkit"), "it is for tests only"},
		{"TestkitNeverImportsCmd", "internal/testkit", ours("cmd/api"), "they don't import them"},
		{"NothingImportsArch", "internal/app", ours("internal/arch"), "nothing imports arch"},
		{"SQLStaysInPostgres", "internal/write", pgx, "SQL belongs to internal/postgres"},
		{"DatabaseSQLIsSQL", "cmd/holdfast", "database/sql", "SQL belongs to internal/postgres"},
		{"NATSStaysInWakeup", "internal/worker", natsgo, "nats.go belongs to internal/wakeup"},
		{"EchoStaysInHTTPAPI", "internal/obs", echo, "Echo belongs to internal/httpapi"},
		{"OpenAIStaysInItsAdapter", "internal/worker", "github.com/openai/openai-go/v3", "the OpenAI SDK belongs to"},
		{"AnthropicStaysInItsAdapter", "internal/model/openai", "github.com/anthropics/anthropic-sdk-go/v2", "the Anthropic SDK belongs to"},

		{"UseCaseImportsDomain", "internal/worker", ours("internal/task"), ""},
		{"SameLevelOfUseCasesIsAllowed", "internal/repair", ours("internal/worker"), ""},
		{"AdapterImportsLeaf", "internal/postgres", ours("migrations"), ""},
		{"FailpointIsForEveryone", "internal/worker", ours("internal/failpoint"), ""},
		{"HTTPAPIIsOneFamily", "internal/httpapi/mem0", ours("internal/httpapi"), ""},
		{"ModelAdapterImportsModel", "internal/model/offline", ours("internal/model"), ""},
		{"TestkitStartsLocaldev", "internal/testkit/chaos", ours("internal/localdev"), ""},
		{"TestkitSpeaksSQL", "internal/testkit", pgx, ""},
		{"CmdImportsApp", "cmd/api", ours("internal/app"), ""},
		{"EchoInADialect", "internal/httpapi/twin", echo, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := checkImports(map[string][]string{c.from: {c.to}})
			if c.want == "" && len(got) > 0 {
				t.Fatalf("an allowed import was refused: %q", got)
			}
			if c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Fatalf("got %q, want one line with %q", got, c.want)
			}
		})
	}

	t.Run("EveryBreachIsReportedInOrder", func(t *testing.T) {
		t.Parallel()
		got := checkImports(map[string][]string{
			"internal/task":   {ours("internal/app"), pgx},
			"internal/credit": {ours("internal/write")},
			"internal/fault":  {"errors"},
		})
		want := []string{"internal/credit imports internal/write", "internal/task imports internal/app", "internal/task imports " + pgx}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Fatalf("got %q, want lines beginning with %q", got, want)
		}
	})
}
