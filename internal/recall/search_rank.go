package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// The usual constants of BM25 (how soon repeats stop to count, how much length counts) and of reciprocal rank
// fusion (how much the first ranks stand out).
const (
	bm25K1 = 1.2
	bm25B  = 0.75
	rrfK   = 60.0
)

// scored is a record that was found, with a score in (0,1].
type scored struct {
	id    uuid.UUID
	score float64
}

// bm25 scores the hits of a corpus for a question of so many terms. Scores are fractions of what a record would
// get that had, endlessly often, every term of the question that occurs at all: a word's other forms that
// nobody used don't count against it.
func bm25(corpus Corpus, terms int) []scored {
	having := make([]int, terms)
	for _, hit := range corpus.Hits {
		for i, n := range hit.Counts {
			if n > 0 {
				having[i]++
			}
		}
	}
	weights := make([]float64, terms)
	most := 0.0
	for i, n := range having {
		if n == 0 {
			continue
		}
		weights[i] = math.Log(1 + (float64(corpus.Records-n)+0.5)/(float64(n)+0.5))
		most += weights[i] * (bm25K1 + 1)
	}
	average := math.Max(1, float64(corpus.Length)/math.Max(1, float64(corpus.Records)))
	found := make([]scored, 0, len(corpus.Hits))
	for _, hit := range corpus.Hits {
		norm := bm25K1 * (1 - bm25B + bm25B*float64(hit.Length)/average)
		sum := 0.0
		for i, n := range hit.Counts {
			sum += weights[i] * float64(n) * (bm25K1 + 1) / (float64(n) + norm)
		}
		if sum > 0 {
			found = append(found, scored{hit.ID, sum / most})
		}
	}
	return found
}

// cosine returns the cosine of two vectors, at most 1, and 0 if they can't be compared.
func cosine(a, b model.Vector) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		dot += float64(x) * y
		aa += float64(x) * float64(x)
		bb += y * y
	}
	if length := math.Sqrt(aa * bb); length > 0 && !math.IsInf(length, 0) {
		return math.Min(1, dot/length)
	}
	return 0
}

// fuse adds the reciprocal ranks of each record in both rankings; the first of both has score 1.
func fuse(rankings ...[]scored) []scored {
	first := float64(len(rankings)) / (rrfK + 1)
	places := map[uuid.UUID]int{}
	var fused []scored
	for _, ranking := range rankings {
		for rank, s := range ranking {
			place, known := places[s.id]
			if !known {
				place = len(fused)
				places[s.id] = place
				fused = append(fused, scored{id: s.id})
			}
			fused[place].score += 1 / (rrfK + float64(rank+1)) / first
		}
	}
	for i := range fused {
		fused[i].score = math.Min(1, fused[i].score)
	}
	return best(fused, len(fused))
}

// best orders by score and cuts after n. Equal scores keep their order, which is newest first.
func best(found []scored, n int) []scored {
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	return found[:min(n, len(found))]
}

// atLeast cuts an ordered ranking where its scores fall below the least one wanted.
func atLeast(ranked []scored, least float64) []scored {
	for i, r := range ranked {
		if r.score < least {
			return ranked[:i]
		}
	}
	return ranked
}
