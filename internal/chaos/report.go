package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The columns of the last line. Every check belongs to one.
const (
	lost          = "lost"           // something that was promised is not there, or not what was told
	duplicated    = "duplicated"     // something is there twice, or was done twice
	doubleCharged = "double_charged" // something was paid for twice, or without having succeeded
	ledgerDrift   = "ledger_drift"   // credits that nobody granted, or that are gone
	stuck         = "stuck"          // something doesn't end
	leaked        = "leaked"         // content is where it must not be
)

func columns() []string {
	return []string{lost, duplicated, doubleCharged, ledgerDrift, stuck, leaked}
}

// finding is one thing that must not be.
type finding struct{ column, check, detail string }

// report is what a run found.
type report struct {
	seed     uint64
	accepted int
	tasks    int
	audited  int    // checks of the auditor
	slowest  row    // whose outage was the longest
	story    string // of its claims
	quiet    time.Duration
	found    []finding
}

func (r *report) find(column, check, format string, args ...any) {
	r.found = append(r.found, finding{column, check, fmt.Sprintf(format, args...)})
}

func (r *report) clean() bool { return len(r.found) == 0 }

// line is the verdict.
func (r *report) line() string {
	counts := map[string]int{}
	for _, f := range r.found {
		counts[f.column]++
	}
	parts := []string{fmt.Sprintf("accepted=%d", r.accepted)}
	for _, column := range columns() {
		parts = append(parts, fmt.Sprintf("%s=%d", column, counts[column]))
	}
	return strings.Join(parts, " ")
}

// mostShown bounds the findings that are printed; the first ones tell the story.
const mostShown = 40

// print writes the whole report; the last line is the verdict.
func (r *report) print(to io.Writer, w *world, n *notes) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(to, format+"\n", args...) }
	say("seed: %d", r.seed)
	say("traffic: %d commands in %d requests, %d found nothing to do: %s", sum(n.done), n.tries, n.skipped, tally(n.done))
	say("faults: %s", tally(w.log.counts))
	hits, starts := map[string]int{}, 0
	for _, p := range w.programs() {
		starts += p.starts
		for action, count := range p.hits {
			hits[action] += count
		}
	}
	say("crash points reached: %s; processes started: %d, nats %d", tally(hits), starts, w.nats.starts)
	say("hints: dropped %d, doubled %d, late %d", w.hints.dropped.Load(), w.hints.doubled.Load(), w.hints.reordered.Load())
	say("the model: %d extractions, %d embeddings; it %s", sum(w.mind.calls), w.mind.embeds, tally(w.mind.acts))
	say("receivers: %s", w.heard())
	say("checked: %d receipts, %d tasks, %d checks of `holdfast audit`", r.accepted, r.tasks, r.audited)
	say("longest outage of a task, accepted to ended: %s (%s %s: %s); quiet %s after the healing",
		r.slowest.took.Round(time.Millisecond), r.slowest.kind, r.slowest.id, r.story, r.quiet.Round(time.Millisecond))
	for i, f := range r.found {
		if i == mostShown {
			say("and %d more", len(r.found)-mostShown)
			break
		}
		say("FOUND %s: %s: %s", f.column, f.check, f.detail)
	}
	say("%s", r.line())
}

func tally(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
