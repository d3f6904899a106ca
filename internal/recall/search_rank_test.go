package recall

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

func id(n byte) uuid.UUID { return uuid.UUID{15: n} }

func TestBM25(t *testing.T) {
	t.Parallel()
	t.Run("RareTermsRepeatsAndShortTextsWin", func(t *testing.T) {
		t.Parallel()
		corpus := Corpus{Records: 100, Length: 1000, Hits: []Hit{
			{id(1), []int{1, 0}, 10}, // the frequent term
			{id(2), []int{0, 1}, 10}, // the rare one
			{id(3), []int{1, 1}, 10},
			{id(4), []int{1, 1}, 40},
			{id(5), []int{1, 2}, 10},
			{id(6), []int{1, 0}, 10},
			{id(7), []int{0, 0}, 1},
		}}
		got := best(bm25(corpus, 2), 10)
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
	})
	t.Run("TermsThatNobodyUsedCostNothing", func(t *testing.T) {
		t.Parallel()
		with := bm25(Corpus{Records: 5, Length: 50, Hits: []Hit{{id(1), []int{1, 0}, 10}}}, 2)
		without := bm25(Corpus{Records: 5, Length: 50, Hits: []Hit{{id(1), []int{1}, 10}}}, 1)
		if with[0].score != without[0].score {
			t.Fatalf("%v and %v", with, without)
		}
	})
	t.Run("AnyCorpusScoresWithinOne", func(t *testing.T) {
		t.Parallel()
		property.Check(t, func(t *rapid.T) {
			terms := rapid.IntRange(1, 6).Draw(t, "terms")
			corpus := Corpus{}
			for n := range rapid.IntRange(0, 20).Draw(t, "hits") {
				hit := Hit{ID: id(byte(n)), Length: rapid.IntRange(0, 1000).Draw(t, "length")}
				for range terms {
					hit.Counts = append(hit.Counts, rapid.IntRange(0, 32767).Draw(t, "count"))
				}
				corpus.Hits = append(corpus.Hits, hit)
				corpus.Length += int64(hit.Length)
			}
			corpus.Records = len(corpus.Hits) + rapid.IntRange(0, 100).Draw(t, "others")
			for _, s := range bm25(corpus, terms) {
				if !(s.score > 0 && s.score <= 1) {
					t.Fatalf("score %v", s.score)
				}
			}
		})
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
		{model.Vector{1}, model.Vector{1, 0}, 0},
		{model.Vector{0, 0}, model.Vector{1, 0}, 0},
		{nil, nil, 0},
	} {
		if got := cosine(pointOf(c.a), pointOf(c.b)); math.Abs(got-c.want) > 1e-9 || got > 1 {
			t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestFuse(t *testing.T) {
	t.Parallel()
	t.Run("WhatBothFindComesFirst", func(t *testing.T) {
		t.Parallel()
		got := fuse([]scored{{id(1), 0.9}, {id(2), 0.8}}, []scored{{id(2), 0.4}, {id(3), 0.3}})
		if len(got) != 3 || got[0].id != id(2) || got[1].id != id(1) || got[2].id != id(3) {
			t.Fatalf("%v", got)
		}
	})
	t.Run("TheFirstOfBothIsAsGoodAsItsBestScore", func(t *testing.T) {
		t.Parallel()
		if got := fuse([]scored{{id(1), 0.1}}, []scored{{id(1), 0.2}}); math.Abs(got[0].score-0.2) > 1e-9 {
			t.Fatalf("%v", got)
		}
	})
	t.Run("WhatNothingAnswersScoresLow", func(t *testing.T) {
		t.Parallel()
		if got := fuse(nil, []scored{{id(1), 0.05}, {id(2), 0.04}}); got[0].score > 0.05 {
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

func TestBest(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		var all []scored
		for i := range rapid.IntRange(0, 200).Draw(t, "records") {
			all = append(all, scored{id(byte(i)), float64(rapid.IntRange(0, 5).Draw(t, "score"))})
		}
		n := rapid.IntRange(1, 20).Draw(t, "n")
		want := slices.Clone(all)
		slices.SortStableFunc(want, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		if got := best(all, n); !slices.Equal(got, want[:min(n, len(want))]) {
			t.Fatalf("the best %d are %v, want %v", n, got, want)
		}
	})
}

func TestAtLeast(t *testing.T) {
	t.Parallel()
	ranked := []scored{{id(1), 0.9}, {id(2), 0.5}, {id(3), 0.1}}
	for least, want := range map[float64]int{0: 3, 0.1: 3, 0.5: 2, 0.51: 1, 1: 0} {
		if got := atLeast(ranked, least); len(got) != want {
			t.Errorf("at least %v: %v", least, got)
		}
	}
}
