//go:build bench

package postgres_test

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// labelled is one record of the set with the question that it answers, if any.
type labelled struct{ language, text, question string }

func readLabelled(t *testing.T) []labelled {
	t.Helper()
	file, err := os.Open("testdata/recall.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader := csv.NewReader(file)
	reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord = '\t', true, 3
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]labelled, len(rows))
	for i, row := range rows {
		all[i] = labelled{row[0], row[1], row[2]}
	}
	return all
}

// configured is the embedder that the environment names, offline without one.
func configured(t *testing.T) model.Embedder {
	t.Helper()
	var settings struct{ app.Models }
	parser, err := kong.New(&settings, kong.DefaultEnvars("HOLDFAST"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	embedder, err := app.NewEmbedder(settings.Models)
	if err != nil {
		t.Fatal(err)
	}
	return embedder
}

// TestRecallAtTen prints for each language and each way of finding how many of the questions have their record among
// the first ten, all languages in one scope. It fails when words alone, or both with the offline vectors, find too few.
func TestRecallAtTen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100_000)
	embedder := configured(t)
	scope := memory.Scope{UserID: "everyone"}
	set := readLabelled(t)
	var texts []string
	for _, l := range set {
		texts = append(texts, l.text)
	}
	for chunk := range slices.Chunk(texts, command.MaxMessages) {
		w.remember(scope, chunk...)
	}
	if _, err := w.reindexer(embedder, &waits{}).Run(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	modes := []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid}
	asked, hits := map[string]int{}, map[string]map[recall.SearchMode]int{}
	s := w.searcher(embedder)
	for _, l := range set {
		if l.question == "" {
			continue
		}
		for _, language := range []string{l.language, "all"} {
			asked[language]++
			if hits[language] == nil {
				hits[language] = map[recall.SearchMode]int{}
			}
		}
		for _, mode := range modes {
			found, err := s.Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{Text: l.question, Scope: scope, Limit: 10, Mode: mode, LatestOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(textsOf(found), l.text) {
				hits[l.language][mode]++
				hits["all"][mode]++
			}
		}
	}
	fmt.Printf("recall@10, %d records, %d questions, vectors of %s\n%-9s %9s %7s %7s %7s\n", len(set), asked["all"], embedder.Model(), "language", "questions", "bm25", "vectors", "fused")
	for _, language := range slices.Sorted(maps.Keys(asked)) {
		n := float64(asked[language])
		fmt.Printf("%-9s %9d %7.3f %7.3f %7.3f\n", language, asked[language], float64(hits[language][recall.Lexical])/n,
			float64(hits[language][recall.Semantic])/n, float64(hits[language][recall.Hybrid])/n)
	}
	const leastWords, leastBoth = 0.92, 0.94
	n := float64(asked["all"])
	if got := float64(hits["all"][recall.Lexical]) / n; got < leastWords {
		t.Errorf("words alone find %.3f, want %.3f", got, leastWords)
	}
	if got := float64(hits["all"][recall.Hybrid]) / n; embedder.Local() && got < leastBoth {
		t.Errorf("both together find %.3f, want %.3f", got, leastBoth)
	}
}
