package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/bench/rig"
)

// Row is what a run found for one target: its value in each round, or why there is none.
type Row struct {
	Name    string    `json:"name"`
	Values  []float64 `json:"values,omitempty"`
	Missing string    `json:"missing,omitempty"`
	Note    string    `json:"note,omitempty"`
}

// Line is one more measurement without a target, as found: ours beside a peer, or what a task costs.
type Line struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	Noise  []float64 `json:"foreign_cores,omitempty"`
}

// Report is one run.
type Report struct {
	Mode       string                     `json:"mode"`
	At         time.Time                  `json:"at"`
	Seed       uint64                     `json:"seed"`
	Seconds    float64                    `json:"seconds"`
	Machine    rig.Machine                `json:"machine"`
	Rows       []Row                      `json:"rows"`
	Lines      []Line                     `json:"lines"`
	Statements map[string][]rig.Statement `json:"statements,omitempty"`
	Notes      []string                   `json:"notes,omitempty"`
}

// Spread is the least, the middle and the greatest of some values.
func Spread(values []float64) (least, middle, most float64) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle = sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		middle = (sorted[len(sorted)/2-1] + middle) / 2
	}
	return sorted[0], middle, sorted[len(sorted)-1]
}

// Print writes the report as Markdown, which is also what docs/benchmarks.md shows.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s run of %s, %.0f s, seed %d\n\n", r.Mode, r.At.Format("2006-01-02"), r.Seconds, r.Seed)
	fmt.Fprintf(w, "%s, %d cores, %.0f GiB, Linux %s, PostgreSQL %s, %s; a flush takes %.0f µs\n\n",
		r.Machine.CPU, r.Machine.Cores, r.Machine.MemoryGiB, r.Machine.Kernel, r.Machine.Postgres, r.Machine.Go, r.Machine.FlushUS)
	fmt.Fprintln(w, "| Measure | min | median | max | fail below | target | stretch | |\n|---|---|---|---|---|---|---|---|")
	for _, t := range Targets() {
		r.printRow(w, t)
	}
	fmt.Fprintln(w, "\n| Measured | unit | min | median | max | CPU of others |\n|---|---|---|---|---|---|")
	for _, l := range r.Lines {
		least, middle, most := Spread(l.Values)
		_, noise, _ := Spread(l.Noise)
		loud := ""
		if len(l.Noise) > 0 {
			loud = fmt.Sprintf("%.2f cores", noise)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", l.Name, l.Unit, number(least), number(middle), number(most), loud)
	}
	for _, name := range sortedKeys(r.Statements) {
		fmt.Fprintf(w, "\nStatements of %s, the most expensive first:\n\n| calls | ms in all | buffers a call | WAL a call | |\n|---|---|---|---|---|\n", name)
		for _, s := range r.Statements[name][:min(10, len(r.Statements[name]))] {
			calls := float64(max(1, s.Calls))
			fmt.Fprintf(w, "| %d | %.0f | %.1f | %.0f | `%s` |\n", s.Calls, s.TotalMS, float64(s.Buffers)/calls, float64(s.WALBytes)/calls,
				strings.ReplaceAll(s.Text, "|", "\\|"))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "\n* %s", note)
	}
	fmt.Fprintln(w)
}

func (r Report) printRow(w io.Writer, t Target) {
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Name == t.Name })
	if i < 0 || len(r.Rows[i].Values) == 0 {
		why := "not part of this mode"
		if i >= 0 {
			why = r.Rows[i].Missing
		}
		fmt.Fprintf(w, "| %s | | | | %s | %s | %s | %s |\n", t.Measure, number(t.Fail), number(t.Target), number(t.Stretch), why)
		return
	}
	least, middle, most := Spread(r.Rows[i].Values)
	verdict := t.Verdict(middle)
	if r.Rows[i].Note != "" {
		verdict += "; " + r.Rows[i].Note
	}
	fmt.Fprintf(w, "| %s | %s | **%s** | %s | %s | %s | %s | %s |\n", t.Measure, number(least), number(middle), number(most),
		number(t.Fail), number(t.Target), number(t.Stretch), verdict)
}

// number writes three digits, and thousands with commas.
func number(x float64) string {
	switch {
	case x >= 10_000:
		whole := fmt.Sprintf("%.0f", x)
		return whole[:len(whole)-3] + "," + whole[len(whole)-3:]
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// Save writes the report as JSON and as Markdown below dir and returns the path without its ending.
func (r Report) Save(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("save report: %w", err)
	}
	base := filepath.Join(dir, r.Mode+"-"+r.At.Format("20060102-150405"))
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", fmt.Errorf("save report: %w", err)
	}
	var text strings.Builder
	r.Print(&text)
	for ending, content := range map[string][]byte{".json": encoded, ".md": []byte(text.String())} {
		if err := os.WriteFile(base+ending, content, 0o600); err != nil {
			return "", fmt.Errorf("save report: %w", err)
		}
	}
	return base, nil
}

func sortedKeys(m map[string][]rig.Statement) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
