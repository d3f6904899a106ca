package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

func printList(out io.Writer, chosen []mutant) {
	group := ""
	for _, m := range chosen {
		if m.group != group {
			group = m.group
			_, _ = fmt.Fprintf(out, "\n%s\n", group)
		}
		_, _ = fmt.Fprintf(out, "  %s → %s %s\n", m.name, m.caughtBy.pkg, m.caughtBy.test)
	}
}

// printLine tells of one mutant at once: a run takes minutes.
func printLine(out io.Writer, r result, verbose bool) {
	_, _ = fmt.Fprintf(out, "%-9s %s (%.0f s) %s\n", r.verdict, r.mutant.name, r.took.Seconds(), r.why)
	if verbose || r.verdict == broken {
		_, _ = fmt.Fprintln(out, tail(r.output))
	}
}

// printTable prints what caught each guard's absence. Error: something was not caught.
func printTable(out io.Writer, results []result, took time.Duration) error {
	group, caughtOnes, left := "", 0, 0
	for _, r := range results {
		if r.mutant.group != group {
			group = r.mutant.group
			_, _ = fmt.Fprintf(out, "\n%s\n", group)
		}
		if r.verdict == caught {
			caughtOnes++
			_, _ = fmt.Fprintf(out, "  %s → %s %s (%.0f s)\n", r.mutant.name, r.mutant.caughtBy.pkg, r.mutant.caughtBy.test, r.took.Seconds())
			continue
		}
		left++
		_, _ = fmt.Fprintf(out, "  %s → %s %s\n", r.mutant.name, r.verdict, r.why)
	}
	_, _ = fmt.Fprintf(out, "\nguards=%d caught=%d not_caught=%d minutes=%.1f\n", len(results), caughtOnes, left, took.Minutes())
	if left > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", left, len(results))
	}
	return nil
}
