package recall

import (
	"cmp"
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

// scored is a record that was found, with a score in (0,1], and its place among equals.
type scored struct {
	id    uuid.UUID
	score float64
	place int32
}

// words ranks the view's records by BM25 for the terms with these hashes: the best n. Scores are fractions of what a
// record would get that had, endlessly often, every term of the question that occurs at all: a word's other forms that
// nobody used don't count against it. A record whose terms weren't read isn't counted.
func (s *shelf) words(v *view, asked []uint64, n int) []scored {
	s.mu.RLock()
	defer s.mu.RUnlock()
	records, length := 0, int64(0)
	for _, slot := range v.slots {
		if words := s.lengths[slot]; words != unread {
			records, length = records+1, length+int64(words)
		}
	}
	average := math.Max(1, float64(length)/math.Max(1, float64(records)))
	most, sums := 0.0, make([]float64, len(v.refs))
	for _, hash := range asked {
		postings := s.postings[hash]
		having := 0
		for _, p := range postings {
			if v.place(p.slot) != unread {
				having++
			}
		}
		if having == 0 {
			continue
		}
		weight := math.Log(1 + (float64(records-having)+0.5)/(float64(having)+0.5))
		most += weight * (bm25K1 + 1)
		for _, p := range postings {
			if place := v.place(p.slot); place != unread {
				count, norm := float64(p.count), bm25K1*(1-bm25B+bm25B*float64(s.lengths[p.slot])/average)
				sums[place] += weight * count * (bm25K1 + 1) / (count + norm)
			}
		}
	}
	top := leaders{n: n}
	for place, sum := range sums {
		if sum > 0 {
			top.add(scored{v.refs[place].ID, sum / most, int32(place)}) // #nosec G115 -- at most searchedRecords
		}
	}
	return top.sorted()
}

// place answers where the slot's record is in the view, or unread.
func (v *view) place(slot int32) int32 {
	if int(slot) < len(v.order) {
		return v.order[slot]
	}
	return unread
}

// near ranks the view's records by the cosine of their vectors with the question's, each of them: the best n that aren't
// turned away from it. Of many, sketches say first which can't be among them.
func (s *shelf) near(v *view, question model.Vector, n int) []scored {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.size != len(question) {
		return nil
	}
	asked := norm(question)
	if !(asked > 0) || math.IsInf(asked, 0) {
		return nil
	}
	var most []float64 // what each can have at most; nil where it isn't worth asking
	least := 0.0
	if len(v.refs) > 4*n {
		most, least = s.bounds(v, question, asked, n)
	}
	top := leaders{n: n}
	for i, slot := range v.slots {
		place := int(s.places[slot])
		if place < 0 || most != nil && (most[i] < least || most[i] <= 0) {
			continue
		}
		if cos := s.cosine(place, question, asked); cos > 0 {
			top.add(scored{v.refs[i].ID, cos, int32(i)}) // #nosec G115 -- at most searchedRecords
		}
	}
	return top.sorted()
}

// cosine is that of the vector at the place and a question of that length, at most 1, and 0 if they can't be compared.
func (s *shelf) cosine(place int, question model.Vector, asked float64) float64 {
	length := asked * s.norms[place]
	if !(length > 0) || math.IsInf(length, 0) {
		return 0
	}
	cos := dot(question, s.vectors[place*s.size:][:s.size]) / length
	if math.IsNaN(cos) {
		return 0
	}
	return math.Min(1, cos)
}

// bounds answers what the cosine of each record of the view can be at most, and what n of them have at least.
func (s *shelf) bounds(v *view, question model.Vector, asked float64, n int) (most []float64, least float64) {
	const buckets = 1 << 12 // of cosines from 0 to 1
	var having [buckets + 1]int32
	words, slack := sketchWords(s.size), rounding(s.size)
	own, about := sketch(make([]uint64, 0, words), question)
	mirror := mirrored(own)
	most = make([]float64, len(v.refs))
	for i, slot := range v.slots {
		place := int(s.places[slot])
		if place < 0 {
			continue
		}
		sum := product(s.sketches[place*words:][:words], mirror)
		cos, err := cosineOf(sum, words, about, s.about[place], asked, s.norms[place])
		if err += slack; !(err < 1) || math.IsNaN(cos) { // says nothing
			most[i] = math.Inf(1)
			continue
		}
		most[i] = cos + err
		if low := cos - err; low > 0 {
			having[int(math.Min(1, low)*buckets)]++
		}
	}
	for bucket, found := buckets, int32(0); bucket > 0; bucket-- {
		if found += having[bucket]; int(found) >= n {
			return most, float64(bucket) / buckets
		}
	}
	return most, 0
}

// norm is the length of a vector.
func norm(v model.Vector) float64 { return math.Sqrt(dot(v, v)) }

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
				fused, strength = append(fused, scored{id: s.id, place: int32(place)}), append(strength, 0) // #nosec G115 -- few
			}
			strength[place] = math.Max(strength[place], s.score)
			fused[place].score += 1 / (rrfK + float64(rank+1)) / first
		}
	}
	for i := range fused {
		fused[i].score = math.Min(1, fused[i].score) * strength[i]
	}
	top := leaders{n: len(fused), kept: fused}
	return top.sorted()
}

// leaders keeps the best n of what is added, in any order meanwhile.
type leaders struct {
	n     int
	kept  []scored
	least float64
}

// add takes one more; of equal scores the one that came first wins.
func (l *leaders) add(s scored) {
	if s.score <= l.least {
		return
	}
	if l.kept = append(l.kept, s); len(l.kept) >= 2*l.n {
		l.kept = l.sorted()
		l.least = l.kept[len(l.kept)-1].score
	}
}

// sorted answers the best n, best first, equal ones in the order of their places.
func (l *leaders) sorted() []scored {
	slices.SortFunc(l.kept, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place))
	})
	return l.kept[:min(l.n, len(l.kept))]
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
