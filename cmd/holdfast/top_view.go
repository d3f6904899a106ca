package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-memory/holdfast/internal/operator"
)

// view is one look, as JSON shows it and as it is drawn. Rates are of the last minute that each process has told of.
type view struct {
	At       time.Time        `json:"at"`
	Trouble  string           `json:"trouble,omitempty"`
	Waiting  int              `json:"waiting"`
	Running  int              `json:"running"`
	Retrying int              `json:"retrying"`
	Due      int              `json:"due"`
	Expired  int              `json:"expired_leases"`
	Oldest   float64          `json:"oldest_due_seconds"`
	Rates    viewRates        `json:"per_minute"`
	DoneP50  int64            `json:"done_p50_ms"`
	DoneP99  int64            `json:"done_p99_ms"`
	ModelP50 int64            `json:"model_p50_ms"`
	ModelP99 int64            `json:"model_p99_ms"`
	Errors   map[string]int64 `json:"model_errors"`
	Pauses   []shownPause     `json:"pauses"`
	Workers  []viewWorker     `json:"workers"`
	Failures []viewFailure    `json:"failures"`
}

type viewRates struct {
	Accepted  int64 `json:"accepted"`
	Refused   int64 `json:"refused"`
	Succeeded int   `json:"succeeded"`
	Failed    int   `json:"failed"`
	Retried   int64 `json:"retried"`
	Calls     int64 `json:"model_calls"`
}

type viewWorker struct {
	Name    string  `json:"name"`
	Leases  int     `json:"leases"`
	Expired int     `json:"expired"`
	Longest float64 `json:"longest_seconds"`
}

type viewFailure struct {
	At        time.Time `json:"at"`
	Event     string    `json:"event_id"`
	Workspace string    `json:"workspace"`
	Code      string    `json:"code"`
}

func viewOf(now time.Time, s operator.Standing, m operator.ProcessMinute, work operator.Work, scene operator.Scene) view {
	v := view{
		At: now.UTC(), Waiting: s.Waiting, Running: s.Running, Retrying: s.Retrying, Due: s.Due, Expired: s.Expired,
		Oldest:  s.OldestDue.Seconds(),
		Rates:   viewRates{m.Accepted, m.Refused, s.Succeeded, s.Failed, m.Retried, m.ModelCalls},
		DoneP50: s.DoneP50.Milliseconds(), DoneP99: s.DoneP99.Milliseconds(),
		ModelP50: m.ModelTimes.Quantile(0.5).Milliseconds(), ModelP99: m.ModelTimes.Quantile(0.99).Milliseconds(),
		Errors: map[string]int64{}, Pauses: []shownPause{}, Workers: []viewWorker{}, Failures: []viewFailure{},
	}
	maps.Copy(v.Errors, m.ModelErrors)
	for _, p := range work.Pauses {
		v.Pauses = append(v.Pauses, shownPause(p))
	}
	for _, w := range scene.Workers {
		v.Workers = append(v.Workers, viewWorker{w.Name, w.Leases, w.Expired, w.Longest.Seconds()})
	}
	for _, f := range scene.Failures {
		v.Failures = append(v.Failures, viewFailure(f))
	}
	return v
}

// lines draws the view for a screen of that size: never more lines than it has, and none that is wider.
func (v view) lines(width, height int) []string {
	lines := []string{
		fmt.Sprintf("holdfast top  %s  q ends", v.At.Local().Format(time.DateTime)),
		fmt.Sprintf("events   waiting %d  running %d  retrying %d  due %d  expired %d", v.Waiting, v.Running, v.Retrying, v.Due, v.Expired),
		fmt.Sprintf("a minute accepted %d  refused %d  succeeded %d  failed %d  retried %d",
			v.Rates.Accepted, v.Rates.Refused, v.Rates.Succeeded, v.Rates.Failed, v.Rates.Retried),
		fmt.Sprintf("times    oldest due %s  to succeeded p50 %d ms  p99 %d ms", briefly(v.Oldest), v.DoneP50, v.DoneP99),
		fmt.Sprintf("model    calls %d  p50 %d ms  p99 %d ms  errors %s", v.Rates.Calls, v.ModelP50, v.ModelP99, v.errors()),
	}
	if v.Trouble != "" {
		lines = append(lines, "! "+v.Trouble)
	}
	for _, p := range v.Pauses {
		lines = append(lines, "paused   "+p.Provider+" "+p.why())
	}
	room := height - len(lines) - 4 // two headings, and a blank line before each
	workers := min(len(v.Workers), max(1, room-min(len(v.Failures), max(1, room/2))))
	lines = append(lines, "", fmt.Sprintf("%-50s %7s %8s %8s", "WORKER", "LEASES", "EXPIRED", "LONGEST"))
	for _, w := range v.Workers[:workers] {
		lines = append(lines, fmt.Sprintf("%-50s %7d %8d %8s", cut(w.Name, 50), w.Leases, w.Expired, briefly(w.Longest)))
	}
	failures := min(len(v.Failures), max(0, room-workers))
	lines = append(lines, "", fmt.Sprintf("%-8s  %-40s  %-12s  %s", "FAILED", "EVENT", "WORKSPACE", "CODE"))
	for _, f := range v.Failures[:failures] {
		lines = append(lines, fmt.Sprintf("%-8s  %-40s  %-12s  %s", f.At.Local().Format(time.TimeOnly), f.Event, cut(f.Workspace, 12), f.Code))
	}
	lines = lines[:min(len(lines), height)]
	for i, line := range lines {
		lines[i] = cut(line, width)
	}
	return lines
}

func (v view) errors() string {
	if len(v.Errors) == 0 {
		return "none"
	}
	var words []string
	for _, class := range slices.Sorted(maps.Keys(v.Errors)) {
		words = append(words, fmt.Sprintf("%s %d", class, v.Errors[class]))
	}
	return strings.Join(words, ", ")
}

// briefly is a duration as few characters say it.
func briefly(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
}

// cut keeps text within a width and in one line: a name is somebody's choice, and no terminal is to obey it.
func cut(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
	letters := []rune(text)
	if len(letters) <= width {
		return text
	}
	return string(letters[:max(0, width-1)]) + "…"
}
