package report_test

import (
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/bench/report"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	more := report.Target{Fail: 1, Target: 2, Stretch: 3}
	less := report.Target{Fail: 3, Target: 2, Stretch: 1, Lower: true}
	for _, c := range []struct {
		target report.Target
		value  float64
		want   string
	}{
		{more, 0.99, "MISSED"},
		{more, 1, "passes"},
		{more, 2, "target"},
		{more, 3.5, "stretch"},
		{less, 3.01, "MISSED"},
		{less, 3, "passes"},
		{less, 1.5, "target"},
		{less, 1, "stretch"},
	} {
		if got := c.target.Verdict(c.value); got != c.want {
			t.Errorf("%+v of %v: %s, want %s", c.target, c.value, got, c.want)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, target := range report.Targets() {
		if seen[target.Name] {
			t.Errorf("%s stands twice", target.Name)
		}
		seen[target.Name] = true
		if ordered := target.Fail <= target.Target && target.Target <= target.Stretch; ordered == target.Lower {
			t.Errorf("%s: its lines are in the wrong order", target.Name)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	report.Report{Rows: []report.Row{
		{Name: "accept_db", Values: []float64{0.3, 0.45, 0.5, 0.2}}, {Name: "mem0", Missing: "no compiler"},
	}}.Print(&text)
	for _, want := range []string{
		"| accept in the database, 16 callers ÷ I | 0.20 | **0.38** | 0.50 |", "MISSED", "| no compiler |", "not part of this mode",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
}
