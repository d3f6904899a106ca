package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// plainRecord is a record as the plain search sees it: every one of them, with all that it has.
type plainRecord struct {
	ref    Ref
	terms  *memory.Terms
	vector model.Vector
}

// plainHit is a record that has at least one of the asked terms: how often it has each, and its length in words.
type plainHit struct {
	id     uuid.UUID
	counts []int
	length int
}

// plainWords is BM25 as it is written in books.
func plainWords(records []plainRecord, asked []string, n int) []scored {
	var hits []plainHit
	having, all, length := make([]int, len(asked)), 0, 0
	for _, r := range records {
		if r.terms == nil {
			continue
		}
		all, length = all+1, length+r.terms.Length
		hit := plainHit{r.ref.ID, make([]int, len(asked)), r.terms.Length}
		for i, term := range asked {
			if at := slices.Index(r.terms.Terms, term); at >= 0 {
				hit.counts[i] = int(r.terms.Counts[at])
				having[i]++
			}
		}
		hits = append(hits, hit)
	}
	weights, most := make([]float64, len(asked)), 0.0
	for i, n := range having {
		if n > 0 {
			weights[i] = math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
			most += weights[i] * (bm25K1 + 1)
		}
	}
	average := math.Max(1, float64(length)/math.Max(1, float64(all)))
	var found []scored
	for _, hit := range hits {
		norm, sum := bm25K1*(1-bm25B+bm25B*float64(hit.length)/average), 0.0
		for i, n := range hit.counts {
			sum += weights[i] * float64(n) * (bm25K1 + 1) / (float64(n) + norm)
		}
		if sum > 0 {
			found = append(found, scored{id: hit.id, score: sum / most})
		}
	}
	return plainBest(found, n)
}

// plainMeanings compares the question with every vector.
func plainMeanings(records []plainRecord, question model.Vector, n int) []scored {
	var found []scored
	for _, r := range records {
		if len(r.vector) != len(question) {
			continue
		}
		length := norm(question) * norm(r.vector)
		if !(length > 0) || math.IsInf(length, 0) {
			continue
		}
		if cos := dot(question, r.vector) / length; cos > 0 {
			found = append(found, scored{id: r.ref.ID, score: math.Min(1, cos)})
		}
	}
	return plainBest(found, n)
}

// plainBest sorts all of it.
func plainBest(found []scored, n int) []scored {
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	return found[:min(n, len(found))]
}

// placeless forgets the places, which only order equals.
func placeless(found []scored) []scored {
	found = slices.Clone(found)
	for i := range found {
		found[i].place = 0
	}
	return found
}
