package recall

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

// sizes are those of vectors in these tests, among them some that end in the middle of a sketch's words.
var sizes = []int{1, 3, 8, 9, 16, 24, 33}

// randomRecord has some of fifty terms and a vector of any kind.
func randomRecord(r *rand.Rand, ref Ref, size int) plainRecord {
	terms := memory.Terms{Length: r.IntN(40)}
	for _, term := range r.Perm(50)[:r.IntN(12)] {
		terms.Terms, terms.Counts = append(terms.Terms, fmt.Sprint(term)), append(terms.Counts, int16(1+r.IntN(5))) // #nosec G115 -- few
	}
	if r.IntN(30) == 0 {
		size++ // of another model's size
	}
	return plainRecord{ref, &terms, randomVector(r, size)}
}

// randomVector is small or large, full or mostly empty, with few or many values, and now and then one that nothing can be
// compared with.
func randomVector(r *rand.Rand, size int) model.Vector {
	v := make(model.Vector, size)
	scale, empty, few := math.Pow(10, float64(r.IntN(9)-4)), r.IntN(3) == 0, r.IntN(3) == 0
	if r.IntN(20) == 0 {
		scale = 1e-22 // its products are hardly numbers any more
	}
	for i := range v {
		switch {
		case empty && r.IntN(4) > 0:
		case few:
			v[i] = float32(scale * float64(r.IntN(3)-1))
		default:
			v[i] = float32(scale * r.NormFloat64())
		}
	}
	if r.IntN(100) == 0 {
		v[r.IntN(size)] = []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32, math.SmallestNonzeroFloat32}[r.IntN(4)]
	}
	return v
}

// ask does what a search does, reading from stored what the shelf lacks.
func (s *shelf) ask(refs []Ref, stored map[Ref]plainRecord, asked []string, question model.Vector, n int) (words, meanings []scored) {
	v := s.view(refs)
	byID := map[uuid.UUID]plainRecord{}
	for _, ref := range refs {
		byID[ref.ID] = stored[ref]
	}
	var documents []document
	for _, id := range s.withoutTerms(v) {
		if r := byID[id]; r.terms != nil {
			documents = append(documents, s.document(r.ref, *r.terms))
		}
	}
	s.addTerms(documents)
	var vectors []embedded
	for _, id := range s.withoutVectors(v, len(question)) {
		if r := byID[id]; r.vector != nil {
			vectors = append(vectors, embedded{r.ref, r.vector})
		}
	}
	s.addVectors(vectors, len(question))
	return s.words(v, s.hashes(asked), n), s.near(v, question, n)
}

// TestShelf compares, for any records that come, change, are projected later and go, what a shelf finds with what looking
// at all of them finds.
func TestShelf(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) // #nosec G404 -- a test's
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		records := rapid.SampledFrom([]int{3, 40, 400}).Draw(t, "records")
		n := rapid.IntRange(1, 30).Draw(t, "best")
		var all []plainRecord
		for i := range records {
			for content := range uint64(2) {
				all = append(all, randomRecord(r, Ref{uuid.UUID{12: byte(i >> 8), 13: byte(i), 15: 1}, content}, size))
			}
		}
		s, projected := newShelf(maphash.MakeSeed()), map[Ref]plainRecord{}
		for range rapid.IntRange(1, 4).Draw(t, "searches") {
			var refs []Ref
			var seen []plainRecord
			for _, i := range r.Perm(records)[:1+r.IntN(records)] { // each time other ones, in another order
				one := all[2*i+r.IntN(2)]
				now := projected[one.ref]
				now.ref = one.ref
				if now.terms == nil && r.IntN(10) > 0 {
					now.terms = one.terms
				}
				if now.vector == nil && r.IntN(10) > 0 {
					now.vector = one.vector
				}
				projected[one.ref] = now
				refs, seen = append(refs, one.ref), append(seen, now)
			}
			var asked []string
			for _, term := range r.Perm(60)[:r.IntN(6)] {
				asked = append(asked, fmt.Sprint(term))
			}
			question := randomVector(r, size+r.IntN(10)/9)
			words, meanings := s.ask(refs, projected, asked, question, n)
			if want := plainWords(seen, asked, n); !slices.Equal(placeless(words), want) {
				t.Fatalf("%q finds %v, want %v", asked, words, want)
			}
			if want := plainMeanings(seen, question, n); !slices.Equal(placeless(meanings), want) {
				t.Fatalf("%v finds %v, want %v", question, meanings, want)
			}
		}
	})
}

// TestBounds holds that no record is better than its bound, and that as many are as good as is said.
func TestBounds(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) // #nosec G404 -- a test's
		size, n := rapid.SampledFrom(sizes).Draw(t, "size"), rapid.IntRange(1, 20).Draw(t, "best")
		s := newShelf(maphash.MakeSeed())
		var refs []Ref
		var read []embedded
		for i := range 100 {
			refs = append(refs, Ref{ID: id(byte(i))})
			read = append(read, embedded{refs[i], randomVector(r, size)})
		}
		v, question := s.view(refs), randomVector(r, size)
		s.withoutVectors(v, size)
		s.addVectors(read, size)
		asked := norm(question)
		most, least := s.bounds(v, question, asked, n)
		good := 0
		for i := range refs {
			cos := s.cosine(i, question, asked)
			if cos > most[i] {
				t.Fatalf("%v, bound by %v", cos, most[i])
			}
			if cos >= least {
				good++
			}
		}
		if least > 0 && good < n {
			t.Fatalf("%d of %d have %v", good, n, least)
		}
	})
}

// TestShelfShared holds what searches of one scope at the same time rely on.
func TestShelfShared(t *testing.T) {
	t.Parallel()
	refs := []Ref{{ID: id(1)}, {ID: id(2)}, {ID: id(3)}}
	tea := memory.Terms{Terms: []string{"tea"}, Counts: []int16{1}, Length: 1}
	t.Run("WhatBothHaveReadIsKeptOnce", func(t *testing.T) {
		t.Parallel()
		s := newShelf(maphash.MakeSeed())
		v := s.view(refs)
		s.withoutVectors(v, 2)
		for range 2 {
			var documents []document
			var vectors []embedded
			for i, ref := range refs {
				documents = append(documents, s.document(ref, tea))
				vectors = append(vectors, embedded{ref, model.Vector{1, float32(i)}})
			}
			s.addTerms(documents)
			s.addVectors(vectors, 2)
		}
		if s.entries != 3 || len(s.norms) != 3 || len(s.vectors) != 6 {
			t.Fatalf("%d postings, %d vectors", s.entries, len(s.norms))
		}
	})
	t.Run("WhatComesLaterIsInNoEarlierView", func(t *testing.T) {
		t.Parallel()
		s := newShelf(maphash.MakeSeed())
		before := s.view(refs[:2])
		s.view(refs)
		var documents []document
		for _, ref := range refs {
			documents = append(documents, s.document(ref, tea))
		}
		s.addTerms(documents)
		if found := s.words(before, s.hashes([]string{"tea"}), 10); len(found) != 2 {
			t.Fatalf("%v", found)
		}
	})
	t.Run("VectorsOfTwoSizesDontMix", func(t *testing.T) {
		t.Parallel()
		s := newShelf(maphash.MakeSeed())
		v := s.view(refs[:1])
		s.withoutVectors(v, 2)
		s.withoutVectors(v, 3)
		s.addVectors([]embedded{{refs[0], model.Vector{1, 1}}}, 2)
		if found := s.near(v, model.Vector{1, 1}, 10); len(found) != 0 {
			t.Fatalf("%v", found)
		}
		s.addVectors([]embedded{{refs[0], model.Vector{1, 1, 1}}}, 3)
		if found := s.near(v, model.Vector{1, 1, 1}, 10); len(found) != 1 || found[0].score < 0.999 {
			t.Fatalf("%v", found)
		}
		if found := s.near(v, model.Vector{1, 1}, 10); len(found) != 0 {
			t.Fatalf("%v", found)
		}
	})
}

// TestSketch holds that a vector is within the error that its sketch tells.
func TestSketch(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) // #nosec G404 -- a test's
		size := rapid.SampledFrom(append([]int{256, 1536}, sizes...)).Draw(t, "size")
		a, b := randomVector(r, size), randomVector(r, size)
		wordsA, aboutA := sketch(nil, a)
		wordsB, aboutB := sketch(nil, b)
		if len(wordsA) != sketchWords(size) {
			t.Fatalf("%d words for %d numbers", len(wordsA), size)
		}
		cos, err := cosineOf(product(wordsA, mirrored(wordsB)), len(wordsA), aboutA, aboutB, norm(a), norm(b))
		exact := dot(a, b) / (norm(a) * norm(b))
		if err += rounding(size); err < 1 && math.Abs(cos-exact) > err {
			t.Fatalf("the cosine %v is told as %v, give or take %v", exact, cos, err)
		}
	})
	t.Run("TellsCosinesWell", func(t *testing.T) {
		t.Parallel()
		r := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- a test's
		for range 100 {
			v := make(model.Vector, 256)
			for i := range v {
				v[i] = float32(r.NormFloat64())
			}
			if _, about := sketch(nil, v); about.off > 0.03 {
				t.Fatalf("a sketch is off by %v of its vector's length", about.off)
			}
		}
	})
}

func TestShelves(t *testing.T) {
	t.Parallel()
	key := func(n int) scopeKey {
		return scopeKey{uuid.UUID{15: byte(n % 2)}, memory.Scope{UserID: fmt.Sprint(n / 2)}}
	}
	fill := func(s *shelf, first, records int) {
		var refs []Ref
		var read []embedded
		for i := range records {
			ref := Ref{uuid.UUID{12: byte(first >> 8), 13: byte(first), 14: byte(i >> 8), 15: byte(i)}, 1}
			refs, read = append(refs, ref), append(read, embedded{ref, make(model.Vector, 64)})
		}
		s.withoutVectors(s.view(refs), 64)
		s.addVectors(read, 64)
	}
	t.Run("StayWithinTheirBound", func(t *testing.T) {
		t.Parallel()
		property.Check(t, func(t *rapid.T) {
			s := newShelves(100_000)
			for use := range rapid.IntRange(1, 30).Draw(t, "uses") {
				k := key(rapid.IntRange(0, 9).Draw(t, "scope"))
				shelf := s.of(k)
				fill(shelf, use, rapid.IntRange(0, 100).Draw(t, "records"))
				s.weigh(k, shelf)
				size := 0
				for k, e := range s.held {
					h := e.Value.(*holding) //nolint:forcetypeassert // nothing else is in the list
					if size += h.bytes; h.key != k {
						t.Fatalf("%v is held for %v", h.key, k)
					}
				}
				if size != s.size || size > s.bound || s.order.Len() != len(s.held) {
					t.Fatalf("%d bytes on %d shelves, counted %d on %d", size, len(s.held), s.size, s.order.Len())
				}
			}
		})
	})
	t.Run("TheLatestUsedStay", func(t *testing.T) {
		t.Parallel()
		s := newShelves(150_000) // three of them
		first := s.of(key(0))
		for n := range 5 {
			shelf := s.of(key(n))
			fill(shelf, n, 100)
			s.weigh(key(n), shelf)
			s.of(key(0))
		}
		if s.of(key(0)) != first {
			t.Error("what is used all the time was dropped")
		}
		if slots := len(s.of(key(1)).slots); slots != 0 {
			t.Error("what was used longest ago is still there")
		}
	})
	t.Run("ScopesWithoutRecordsAreBoundedToo", func(t *testing.T) {
		t.Parallel()
		s := newShelves(10 * emptyShelf)
		for n := range 1000 {
			s.of(key(n))
		}
		if n := s.order.Len(); n != 10 || len(s.held) != n {
			t.Errorf("%d shelves of nothing", n)
		}
	})
	t.Run("AFullOneIsCleared", func(t *testing.T) {
		t.Parallel()
		s := newShelves(projectionBytes)
		shelf := s.of(key(0))
		for n := range shelfSlots/1000 + 1 {
			if s.of(key(0)) != shelf {
				t.Fatalf("cleared after %d records", 1000*n)
			}
			var refs []Ref
			for i := range 1000 {
				refs = append(refs, Ref{uuid.UUID{12: byte(n), 14: byte(i >> 8), 15: byte(i)}, 1})
			}
			shelf.view(refs)
			s.weigh(key(0), shelf)
		}
		if s.of(key(0)) == shelf {
			t.Fatal("not cleared")
		}
	})
}
