package check

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const rulesFile = "../prometheus/rules.yaml"

func readRules(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() || len(groups.Groups) == 0 {
		t.FailNow()
	}
	return groups
}

// documented are the metrics of docs/metrics.md with their labels; histograms have their three series.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|").FindAllStringSubmatch(read(t, "../../docs/metrics.md"), -1) {
		names := strings.Fields(strings.NewReplacer("`", "", ",", " ").Replace(row[3]))
		if row[2] != "histogram" {
			out[row[1]] = names
			continue
		}
		out[row[1]+"_bucket"] = append(slices.Clone(names), "le")
		out[row[1]+"_sum"], out[row[1]+"_count"] = names, names
	}
	if len(out) < 30 {
		t.Fatalf("docs/metrics.md has %d series: it isn't read as it is written", len(out))
	}
	return out
}

// target labels are Prometheus' own.
func targetLabel(name string) bool {
	return slices.Contains([]string{"__name__", "job", "instance"}, name)
}

// checkExpr holds that an expression names nothing but documented metrics, each by labels that it has, and the records.
func checkExpr(t *testing.T, where, text string, known map[string][]string, records map[string]bool) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	var available []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, there := known[selector.Name]
		if !there && !records[selector.Name] && selector.Name != "up" {
			t.Errorf("%s: %s is in no table of docs/metrics.md", where, selector.Name)
		}
		if records[selector.Name] {
			has = []string{"provider", "kind"}
		}
		available = append(available, has...)
		for _, m := range selector.LabelMatchers {
			if !targetLabel(m.Name) && !slices.Contains(has, m.Name) {
				t.Errorf("%s: %s has no label %s", where, selector.Name, m.Name)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if sum, ok := node.(*parser.AggregateExpr); ok {
			for _, name := range sum.Grouping {
				if !targetLabel(name) && !slices.Contains(available, name) {
					t.Errorf("%s: nothing has the label %s", where, name)
				}
			}
		}
		return nil
	})
}

func TestPrometheusRules(t *testing.T) {
	groups := readRules(t)
	known, records := documented(t), map[string]bool{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			records[rule.Record] = true
		}
	}
	delete(records, "")
	runbook := "https://github.com/holdfast-memory/holdfast/blob/main/docs/operations.md#"
	headings := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(read(t, "../../docs/operations.md"), -1) {
		headings[strings.ToLower(strings.ReplaceAll(heading[1], " ", "-"))] = true
	}
	seen := map[string]bool{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			checkExpr(t, rule.Record+rule.Alert, rule.Expr, known, records)
			if rule.Alert == "" {
				continue
			}
			if seen[rule.Alert] {
				t.Errorf("%s is there twice", rule.Alert)
			}
			seen[rule.Alert] = true
			if s := rule.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s has the severity %q", rule.Alert, s)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s lacks its summary or description", rule.Alert)
			}
			anchor, ok := strings.CutPrefix(rule.Annotations["runbook_url"], runbook)
			if !ok || anchor != strings.ToLower(rule.Alert) || !headings[anchor] {
				t.Errorf("%s has no section in docs/operations.md: %s", rule.Alert, rule.Annotations["runbook_url"])
			}
		}
	}
	for heading := range headings {
		if strings.HasPrefix(heading, "holdfast") && !slices.ContainsFunc(groups.Groups, func(g rulefmt.RuleGroup) bool {
			return slices.ContainsFunc(g.Rules, func(r rulefmt.Rule) bool { return strings.ToLower(r.Alert) == heading })
		}) {
			t.Errorf("docs/operations.md has a section of an alert that isn't there: %s", heading)
		}
	}
}

// healthy is an hour of everything as it should be. A case's own series take the place of those of the same metric.
const healthy = `
up{job="holdfast-api",instance="a"} 1+0x60
holdfast_http_requests_total{route="/v1/memories",method="POST",status="202"} 0+600x60
holdfast_http_requests_total{route="/v1/memories",method="POST",status="503"} 0+1x60
holdfast_accept_seconds_bucket{kind="memory_infer",result="accepted",le="0.1"} 0+600x60
holdfast_accept_seconds_bucket{kind="memory_infer",result="accepted",le="5"} 0+600x60
holdfast_accept_seconds_bucket{kind="memory_infer",result="accepted",le="+Inf"} 0+600x60
holdfast_pool_wait_seconds_total{pool="main",instance="a"} 0+5x60
holdfast_pool_shed_total{instance="a"} 0+0x60
holdfast_queue_oldest_due_seconds{instance="a"} 2+0x60
holdfast_queue_oldest_due_seconds{instance="b"} 3+0x60
holdfast_queue_readable{instance="a"} 1+0x60
holdfast_queue_expired_leases{instance="a"} 0+0x60
holdfast_queue_provider_paused{instance="a"} 0+0x60
holdfast_worker_slots{instance="w"} 16+0x60
holdfast_worker_troubles_total{what="lease_expired"} 0+0x60
holdfast_worker_troubles_total{what="webhook_disabled"} 0+0x60
holdfast_task_endings_total{ending="succeeded",class=""} 0+600x60
holdfast_task_endings_total{ending="failed",class="internal"} 0+1x60
holdfast_task_endings_total{ending="failed",class="cancelled"} 0+300x60
holdfast_model_calls_total{provider="openai",class=""} 0+600x60
holdfast_model_calls_total{provider="openai",class="provider_timeout"} 0+6x60
holdfast_model_calls_total{provider="openai",class="shutdown"} 0+300x60
holdfast_hints_failed_total 0+0x60
holdfast_repair_total{pass="leases",result="fixed"} 0+0x60
holdfast_repair_total{pass="hints",result="fixed"} 0+6x60
holdfast_repair_total{pass="hints",result="failed"} 0+0x60
holdfast_repair_total{pass="books",result="failed"} 0+0x60
`

// TestPrometheusAlerts runs Prometheus' own rule manager over series: each alert fires when what it is about happens, not
// before its time, and nothing fires while all is well.
func TestPrometheusAlerts(t *testing.T) {
	const hour = time.Hour
	cases := map[string]struct {
		series string
		quiet  time.Duration // how far into the hour it is not firing yet, 0 for not looked at
		mates  []string      // alerts that follow from the same
	}{
		"HoldfastProcessDown": {series: `up{job="holdfast-api",instance="a"} 0+0x60`, quiet: 4 * time.Minute},
		"HoldfastErrors": {series: `holdfast_http_requests_total{route="/v1/memories",method="POST",status="202"} 0+600x60
holdfast_http_requests_total{route="/v1/memories",method="POST",status="503"} 0+20x60`, quiet: 4 * time.Minute},
		"HoldfastAcceptSlow": {series: `holdfast_accept_seconds_bucket{kind="memory_infer",result="accepted",le="0.1"} 0+580x60
holdfast_accept_seconds_bucket{kind="memory_infer",result="accepted",le="5"} 0+600x60
holdfast_accept_seconds_bucket{kind="memory_infer",result="accepted",le="+Inf"} 0+600x60`, quiet: 9 * time.Minute},
		"HoldfastPoolExhausted": {series: `holdfast_pool_wait_seconds_total{pool="main",instance="a"} 0+120x60`, quiet: 4 * time.Minute},
		"HoldfastQueueLate":     {series: `holdfast_queue_oldest_due_seconds{instance="a"} 301+60x60`, quiet: 4 * time.Minute},
		"HoldfastQueueUnreadable": {series: `holdfast_queue_readable{instance="a"} 0+0x60
holdfast_queue_oldest_due_seconds{instance="gone"} _x60`, quiet: 4 * time.Minute},
		"HoldfastNoWorkers": {series: `holdfast_worker_slots{instance="w"} _x60`, quiet: 2 * time.Minute},
		"HoldfastLeasesExpire": {series: `holdfast_worker_troubles_total{what="lease_expired"} 0+2x60
holdfast_repair_total{pass="leases",result="fixed"} 0+2x60
holdfast_repair_total{pass="hints",result="fixed"} 0+0x60`, quiet: 9 * time.Minute},
		"HoldfastLeasesStuck": {series: `holdfast_queue_expired_leases{instance="a"} 7+0x60`, quiet: 9 * time.Minute},
		"HoldfastTasksFail": {series: `holdfast_task_endings_total{ending="succeeded",class=""} 0+600x60
holdfast_task_endings_total{ending="failed",class="output_invalid"} 0+60x60`, quiet: 9 * time.Minute},
		"HoldfastModelErrors": {series: `holdfast_model_calls_total{provider="openai",class=""} 0+600x60
holdfast_model_calls_total{provider="openai",class="provider_unavailable"} 0+300x60`, quiet: 9 * time.Minute},
		"HoldfastModelRefusesUs": {series: `holdfast_model_calls_total{provider="openai",class=""} 0+600x60
holdfast_model_calls_total{provider="openai",class="provider_rejected"} 0+2x60`, quiet: 2 * time.Minute},
		"HoldfastProviderPaused": {series: `holdfast_queue_provider_paused{instance="a"} 0x29 1x30`, quiet: 40 * time.Minute},
		"HoldfastHintsFail":      {series: `holdfast_hints_failed_total 0+60x60`, quiet: 4 * time.Minute},
		"HoldfastHintsLost": {series: `holdfast_repair_total{pass="hints",result="fixed"} 0+60x60
holdfast_repair_total{pass="leases",result="fixed"} 0+0x60`, quiet: 9 * time.Minute},
		// The first look of this process came after half an hour, and never an increase after it.
		"HoldfastBooksDisagree": {series: `holdfast_repair_total{pass="books",result="failed"} _x30 1x30
holdfast_repair_total{pass="hints",result="fixed"} 0+0x60`, quiet: 29 * time.Minute},
		"HoldfastRepairFails": {series: `holdfast_repair_total{pass="archive",result="failed"} 0+1x60
holdfast_repair_total{pass="hints",result="fixed"} 0+0x60`, quiet: 15 * time.Minute},
		"HoldfastWebhookDisabled": {series: `holdfast_worker_troubles_total{what="webhook_disabled"} 0x30 1x30
holdfast_worker_troubles_total{what="lease_expired"} 0+0x60`, quiet: 29 * time.Minute},
	}

	t.Run("NoneFiresWhileAllIsWell", func(t *testing.T) {
		if firing := fires(t, healthy, hour); len(firing) > 0 {
			t.Errorf("%v", firing)
		}
	})
	for alert, c := range cases {
		t.Run(alert, func(t *testing.T) {
			if got := fires(t, with(c.series), hour); !slices.Equal(got, append([]string{alert}, c.mates...)) {
				t.Errorf("after an hour %v fire", got)
			}
			if got := fires(t, with(c.series), c.quiet); slices.Contains(got, alert) {
				t.Errorf("after %s it fires already", c.quiet)
			}
		})
	}
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if _, there := cases[rule.Alert]; !there && rule.Alert != "" {
				t.Errorf("%s has no case here", rule.Alert)
			}
		}
	}
}

// with is the healthy hour with these series in place of those of the same metrics.
func with(series string) string {
	name := regexp.MustCompile(`(?m)^[a-z_]+`)
	replaced := name.FindAllString(series, -1)
	var kept []string
	for _, line := range strings.Split(healthy, "\n") {
		if !slices.Contains(replaced, name.FindString(line)) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n") + "\n" + series
}

// fires evaluates all rules every minute over the series and returns the alerts that fire at the end, sorted.
func fires(t *testing.T, series string, until time.Duration) []string {
	t.Helper()
	text := "load 1m\n"
	for _, line := range strings.Split(strings.TrimSpace(series), "\n") {
		if line != "" { // which would end the block
			text += "  " + line + "\n"
		}
	}
	suite, err := promqltest.NewLazyLoader(text, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer suite.Close()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), Appendable: suite.Storage(), Queryable: suite.Storage(),
		Context: context.Background(), NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler),
		Parser: parser.NewParser(parser.Options{}),
	})
	loaded, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, rulesFile)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var groups []*rules.Group
	for _, group := range readRules(t).Groups { // records before what reads them
		groups = append(groups, loaded[rules.GroupKey(rulesFile, group.Name)])
	}
	for at := time.Duration(0); at <= until; at += time.Minute {
		now := time.Unix(0, 0).UTC().Add(at)
		suite.WithSamplesTill(now, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range groups {
				group.Eval(suite.Context(), now)
			}
		})
	}
	var firing []string
	for _, group := range groups {
		for _, rule := range group.Rules() {
			if rule.LastError() != nil {
				t.Errorf("%s: %v", rule.Name(), rule.LastError())
			}
			if alert, ok := rule.(*rules.AlertingRule); ok && alert.State() == rules.StateFiring {
				firing = append(firing, alert.Name())
			}
		}
	}
	slices.Sort(firing)
	return firing
}
