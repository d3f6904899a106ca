package postgres_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// sentence makes a text of common and rare words, as people's facts have.
func sentence(r *rand.Rand) string {
	words := make([]string, 6+r.IntN(10))
	for i := range words {
		rank := int(math.Exp(r.Float64() * math.Log(5000))) // few words are frequent
		words[i] = fmt.Sprintf("word%d", rank)
	}
	return "She told us that " + strings.Join(words, " ") + " in the morning"
}

// corpus stores n records of a user with terms and vectors, as writes would.
func (w *world) corpus(user string, n int) {
	w.t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(n))) // #nosec G404 -- a fixed corpus
	embedder := offline.NewEmbedder()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lane := memory.Scope{UserID: user}.Lane()
	const step = 10_000
	for first := 0; first < n; first += step {
		var records, terms, vectors [][]any
		for i := first; i < min(n, first+step); i++ {
			id, text, when := uuid.Must(uuid.NewV7()), sentence(r), at.Add(time.Duration(i)*time.Second)
			key := memory.KeyOf(text)
			records = append(records, []any{id, w.caller.Workspace.ID, id, user, lane[:], text, key[:], when, when, when, when, when})
			cut := memory.TermsOf(text)
			terms = append(terms, []any{id, w.caller.Workspace.ID, 1, key[:], cut.Terms, cut.Counts, cut.Length})
			embedding, err := embedder.Embed(w.t.Context(), []string{text})
			if err != nil {
				w.t.Fatal(err)
			}
			var body []byte
			for _, x := range embedding.Vectors[0] {
				body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
			}
			vectors = append(vectors, []any{id, w.caller.Workspace.ID, 1, key[:], embedder.Model(), body, when})
		}
		w.copyRows("memories", []string{"id", "workspace_id", "task_id", "user_id", "lane", "text", "content_key", "accepted_at", "said_at", "valid_from", "created_at", "updated_at"}, records)
		w.copyRows("memory_terms", []string{"memory_id", "workspace_id", "version", "content_key", "terms", "counts", "length"}, terms)
		w.copyRows("memory_vectors", []string{"memory_id", "workspace_id", "version", "content_key", "model", "vector", "made_at"}, vectors)
	}
}

func (w *world) copyRows(table string, columns []string, rows [][]any) {
	w.t.Helper()
	if _, err := w.sql.CopyFrom(w.t.Context(), pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
		w.t.Fatal(err)
	}
}

// BenchmarkSearch tells the median search of a user with 100 records and of one with 10,000, among others.
func BenchmarkSearch(b *testing.B) {
	w := newWorld(b, 0)
	w.corpus("few", 100)
	w.corpus("others", 50_000)
	w.corpus("many", 10_000)
	w.exec(`VACUUM ANALYZE`)
	s := w.searcher(offline.NewEmbedder())
	for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid} {
		for _, user := range []string{"few", "many"} {
			b.Run(fmt.Sprintf("%s/%s", mode, user), func(b *testing.B) {
				var took []time.Duration
				for i := range b.N {
					start := time.Now()
					_, err := s.Search(b.Context(), w.caller.Workspace.ID, recall.SearchQuery{
						Text: fmt.Sprintf("what did she say about word%d and word%d", 3+i%40, 500+i%3000), Scope: memory.Scope{UserID: user}, Limit: 10, Mode: mode, LatestOnly: true,
					})
					if err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			})
		}
	}
}
