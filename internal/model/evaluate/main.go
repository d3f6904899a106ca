// Command evaluate measures what extractors find in sixty conversations in six languages, which were made for
// Holdfast: precision and recall against the facts that should be remembered, and how often nothing is left of a
// conversation that holds nothing. `make bench-extract` runs it. It always measures the offline extractor, and
// beside it the one that HOLDFAST_EXTRACTOR names, whose calls cost what its provider takes for them.
//
// A fact counts as right if all key words of one expected fact stand in it, whatever its wording; one fact may
// answer to several expected ones. That is a coarse measure, good for telling two prompts or two rules apart.
//
// It is for contributors and in no product binary. It may import app, model and its adapters.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
)

// options are the command line.
type options struct {
	app.Models
	Show bool `help:"Print what was missed and what nobody wanted."`
}

func main() {
	var o options
	app.Parse(&o, "evaluate", "Measures extractors on a set of conversations.")
	os.Exit(app.Exit("evaluate", run(context.Background(), o, os.Stdout)))
}

func run(ctx context.Context, o options, out io.Writer) error {
	samples, err := load()
	if err != nil {
		return err
	}
	extractors := []model.Extractor{offline.New()}
	if o.Extractor != "" && o.Extractor != "offline" {
		configured, err := o.NewExtractor()
		if err != nil {
			return fmt.Errorf("settings: %w", err)
		}
		extractors = append(extractors, configured)
	}
	for _, extractor := range extractors {
		judged := measure(ctx, extractor, samples)
		if o.Show {
			show(out, samples, judged)
		}
		if err := report(out, extractor.Provider(), samples, judged); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
	}
	return nil
}

// measure asks about one conversation after the other. A call that fails is counted and finds nothing.
func measure(ctx context.Context, extractor model.Extractor, samples []sample) []judgement {
	judged := make([]judgement, len(samples))
	said := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC) // one day for all runs, so that dates come out alike
	for i, s := range samples {
		answer, err := extractor.Extract(ctx, model.Request{Messages: s.messages(), Said: said})
		judged[i] = judge(s, answer.Facts)
		if err != nil {
			judged[i].failed, judged[i].silent = 1, 0
			judged[i].wrong = append(judged[i].wrong, err.Error())
		}
	}
	return judged
}

func show(out io.Writer, samples []sample, judged []judgement) {
	for i, j := range judged {
		for _, text := range j.missed {
			_, _ = fmt.Fprintf(out, "%s, %s: missed %s\n", samples[i].language, samples[i].Name, text)
		}
		for _, text := range j.wrong {
			_, _ = fmt.Fprintf(out, "%s, %s: unwanted %s\n", samples[i].language, samples[i].Name, text)
		}
	}
}

// report prints one line for each language and one for all.
func report(out io.Writer, provider string, samples []sample, judged []judgement) error {
	var languages []string
	scores := map[string]*score{}
	total := score{}
	for i, j := range judged {
		language := samples[i].language
		if scores[language] == nil {
			languages = append(languages, language)
			scores[language] = &score{}
		}
		scores[language].add(j.score)
		total.add(j.score)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "%s\tprecision\trecall\tfacts\texpected\tNO_MEMORY\tfailed calls\n", provider)
	line := func(name string, s score) {
		_, _ = fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%d\t%d\t%d of %d\t%d\n",
			name, s.precision(), s.recall(), s.facts, s.expected, s.silent, s.quiet, s.failed)
	}
	for _, language := range languages {
		line(language, *scores[language])
	}
	line("all", total)
	return table.Flush()
}
