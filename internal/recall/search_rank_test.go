package recall

import (
	"hash/maphash"
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

func id(n byte) uuid.UUID { return uuid.UUID{15: n} }

func TestWords(t *testing.T) {
	t.Parallel()
	t.Run("RareTermsRepeatsAndShortTextsWin", func(t *testing.T) {
		t.Parallel()
		s := newShelf(maphash.MakeSeed())
		var refs []Ref
		var read []document
		add := func(length int, terms map[string]int16) {
			ref := Ref{ID: id(byte(len(refs) + 1))} // #nosec G115 -- few
			made := memory.Terms{Length: length}
			for term, count := range terms {
				made.Terms, made.Counts = append(made.Terms, term), append(made.Counts, count)
			}
			refs, read = append(refs, ref), append(read, s.document(ref, made))
		}
		add(10, map[string]int16{"frequent": 1})
		add(10, map[string]int16{"rare": 1})
		add(10, map[string]int16{"frequent": 1, "rare": 1})
		add(40, map[string]int16{"frequent": 1, "rare": 1})
		add(10, map[string]int16{"frequent": 1, "rare": 2})
		add(10, map[string]int16{"frequent": 1})
		add(1, map[string]int16{"other": 1})
		for range 90 {
			add(10, nil)
		}
		v := s.view(refs)
		s.addTerms(read)
		got := s.words(v, s.hashes([]string{"frequent", "rare"}), 10)
		if len(got) != 6 {
			t.Fatalf("%v", got)
		}
		order, place := map[uuid.UUID]float64{}, map[uuid.UUID]int{}
		for i, s := range got {
			order[s.id], place[s.id] = s.score, i
		}
		for _, pair := range [][2]byte{{5, 3}, {3, 4}, {3, 2}, {2, 1}} {
			if order[id(pair[0])] <= order[id(pair[1])] {
				t.Errorf("%d scores %v, %d scores %v", pair[0], order[id(pair[0])], pair[1], order[id(pair[1])])
			}
		}
		if place[id(6)] != place[id(1)]+1 {
			t.Errorf("equal scores changed their order")
		}
		if with := s.words(v, s.hashes([]string{"frequent", "rare", "unheard of"}), 10); !slices.Equal(with, got) {
			t.Errorf("a term that nobody used changes %v to %v", got, with)
		}
	})
	t.Run("RowsThatNobodyHasWrittenScoreWithinOne", func(t *testing.T) {
		t.Parallel()
		s := newShelf(maphash.MakeSeed())
		refs := []Ref{{ID: id(1)}, {ID: id(2)}}
		v := s.view(refs)
		s.addTerms([]document{
			s.document(refs[0], memory.Terms{Terms: []string{"tea", "tea", "tea"}, Counts: []int16{3, 3, -3}, Length: -5}),
			s.document(refs[1], memory.Terms{Terms: []string{"tea", "cake"}, Counts: []int16{1}, Length: 2}),
		})
		for _, found := range s.words(v, s.hashes([]string{"tea", "cake"}), 10) {
			if !(found.score > 0 && found.score <= 1) {
				t.Errorf("score %v", found.score)
			}
		}
	})
}

func TestCosine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b model.Vector
		want float64
	}{
		{model.Vector{1, 0}, model.Vector{2, 0}, 1},
		{model.Vector{1, 0}, model.Vector{0, 1}, 0},
		{model.Vector{1, 0}, model.Vector{-1, 0}, -1},
		{model.Vector{1, 1}, model.Vector{1, 0}, math.Sqrt2 / 2},
		{model.Vector{0, 0}, model.Vector{1, 0}, 0},
	} {
		s, ref := newShelf(maphash.MakeSeed()), Ref{ID: id(1)}
		s.withoutVectors(s.view([]Ref{ref}), len(c.b))
		s.addVectors([]embedded{{ref, c.a}}, len(c.b))
		if got := s.cosine(0, c.b, norm(c.b)); math.Abs(got-c.want) > 1e-9 || got > 1 {
			t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestFuse(t *testing.T) {
	t.Parallel()
	t.Run("WhatBothFindComesFirst", func(t *testing.T) {
		t.Parallel()
		got := fuse([]scored{{id: id(1), score: 0.9}, {id: id(2), score: 0.8}}, []scored{{id: id(2), score: 0.4}, {id: id(3), score: 0.3}})
		if len(got) != 3 || got[0].id != id(2) || got[1].id != id(1) || got[2].id != id(3) {
			t.Fatalf("%v", got)
		}
	})
	t.Run("TheFirstOfBothIsAsGoodAsItsBestScore", func(t *testing.T) {
		t.Parallel()
		if got := fuse([]scored{{id: id(1), score: 0.1}}, []scored{{id: id(1), score: 0.2}}); math.Abs(got[0].score-0.2) > 1e-9 {
			t.Fatalf("%v", got)
		}
	})
	t.Run("WhatNothingAnswersScoresLow", func(t *testing.T) {
		t.Parallel()
		if got := fuse(nil, []scored{{id: id(1), score: 0.05}, {id: id(2), score: 0.04}}); got[0].score > 0.05 {
			t.Fatalf("%v", got)
		}
	})
	t.Run("NothingFoundIsNothing", func(t *testing.T) {
		t.Parallel()
		if got := fuse(nil, nil); len(got) != 0 {
			t.Fatalf("%v", got)
		}
	})
}

func TestLeaders(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		var all []scored
		n := rapid.IntRange(1, 20).Draw(t, "n")
		top := leaders{n: n}
		for i := range rapid.IntRange(0, 200).Draw(t, "records") {
			one := scored{id(byte(i)), float64(rapid.IntRange(1, 5).Draw(t, "score")), int32(i)} // #nosec G115 -- few
			all = append(all, one)
			top.add(one)
		}
		if want, got := plainBest(all, n), top.sorted(); !slices.Equal(got, want) {
			t.Fatalf("the best %d are %v, want %v", n, got, want)
		}
	})
}

func TestAtLeast(t *testing.T) {
	t.Parallel()
	ranked := []scored{{id: id(1), score: 0.9}, {id: id(2), score: 0.5}, {id: id(3), score: 0.1}}
	for least, want := range map[float64]int{0: 3, 0.1: 3, 0.5: 2, 0.51: 1, 1: 0} {
		if got := atLeast(ranked, least); len(got) != want {
			t.Errorf("at least %v: %v", least, got)
		}
	}
}
