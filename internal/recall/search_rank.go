package recall

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// The usual constants of BM25 (how soon repeats stop to count, how much length counts) and of reciprocal rank
// fusion (how much the first ranks stand out).
const (
	bm25K1 = 1.2
	bm25B  = 0.75
	rrfK   = 60.0
)

// Hit is a record that has at least one of the asked terms: how often it has each, and its length in words.
type Hit struct {
	ID     uuid.UUID
	Counts []int
	Length int
}

// Corpus is what the lexical projection says about the searched records: their number, their length together
// and the hits, newest first.
type Corpus struct {
	Records int
	Length  int64
	Hits    []Hit
}

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

// corpusOf looks for terms in the documents of the searched records. A record without a document isn't counted.
func (p *projections) corpusOf(refs []Ref, entries []projected, terms []string) Corpus {
	asked := make([]uint64, len(terms))
	for i, term := range terms {
		asked[i] = maphash.String(p.seed, term)
	}
	var corpus Corpus
	counts := make([]int, len(terms))
	for i, e := range entries {
		doc := e.terms
		if doc == nil {
			continue
		}
		corpus.Records++
		corpus.Length += int64(doc.length)
		hit := false
		for j, hash := range asked {
			place, has := slices.BinarySearch(doc.hashes, hash)
			if counts[j] = 0; has {
				counts[j], hit = int(doc.counts[place]), true
			}
		}
		if hit {
			corpus.Hits = append(corpus.Hits, Hit{ID: refs[i].ID, Counts: slices.Clone(counts), Length: doc.length})
		}
	}
	return corpus
}

// near scores the points that aren't turned away from the question, in the order of refs.
func near(refs []Ref, entries []projected, question model.Vector) []scored {
	asked := pointOf(question)
	var found []scored
	for i, e := range entries {
		if e.vector == nil {
			continue
		}
		if score := cosine(asked, e.vector); score > 0 {
			found = append(found, scored{refs[i].ID, score})
		}
	}
	return found
}

// cosine returns the cosine of two vectors, at most 1, and 0 if they can't be compared.
func cosine(a, b *point) float64 {
	if len(a.vector) != len(b.vector) {
		return 0
	}
	if length := a.length * b.length; length > 0 && !math.IsInf(length, 0) {
		if cos := dot(a.vector, b.vector) / length; !math.IsNaN(cos) {
			return math.Min(1, cos)
		}
	}
	return 0
}

// dot adds up in four sums, which a processor does at the same time.
func dot(a, b model.Vector) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return float64(s0) + float64(s1) + float64(s2) + float64(s3)
}

// fuse orders records by the sum of their reciprocal ranks. Ranks say nothing about how good the best is: the score
// is the fused rank, 1 for the first of all rankings, times the record's best score in any of them, so that a
// question that nothing answers has low scores only.
func fuse(rankings ...[]scored) []scored {
	first := float64(len(rankings)) / (rrfK + 1)
	places := map[uuid.UUID]int{}
	var fused []scored
	var strength []float64
	for _, ranking := range rankings {
		for rank, s := range ranking {
			place, known := places[s.id]
			if !known {
				place = len(fused)
				places[s.id] = place
				fused, strength = append(fused, scored{id: s.id}), append(strength, 0)
			}
			strength[place] = math.Max(strength[place], s.score)
			fused[place].score += 1 / (rrfK + float64(rank+1)) / first
		}
	}
	for i := range fused {
		fused[i].score = math.Min(1, fused[i].score) * strength[i]
	}
	return best(fused, len(fused))
}

// best orders by score and cuts after n. Equal scores keep their order, which is newest first. Of a long list it
// sorts only what can still be among the n.
func best(found []scored, n int) []scored {
	byScore := func(a, b scored) int { return cmp.Compare(b.score, a.score) }
	if len(found) > 2*n {
		kept, least := make([]scored, 0, 2*n), math.Inf(-1)
		for _, s := range found {
			if s.score <= least {
				continue
			}
			if kept = append(kept, s); len(kept) == 2*n {
				slices.SortStableFunc(kept, byScore)
				kept, least = kept[:n], kept[n-1].score
			}
		}
		found = kept
	}
	slices.SortStableFunc(found, byScore)
	return found[:min(n, len(found))]
}

// explain tells of each record how it was found.
func (f found) explain(records []memory.Record) {
	parts := make(map[uuid.UUID]*memory.Explain, len(records))
	for i := range records {
		records[i].Explain = &memory.Explain{}
		parts[records[i].ID] = records[i].Explain
	}
	for i, s := range f.words {
		if part := parts[s.id]; part != nil {
			part.LexicalScore, part.LexicalRank = s.score, i+1
		}
	}
	for i, s := range f.meanings {
		if part := parts[s.id]; part != nil {
			part.SemanticScore, part.SemanticRank = s.score, i+1
		}
	}
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
