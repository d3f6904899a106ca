package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func loaded(t *testing.T) []sample {
	t.Helper()
	samples, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

func TestSet(t *testing.T) {
	t.Parallel()
	samples := loaded(t)
	perLanguage, quiet := map[string]int{}, 0
	for _, s := range samples {
		perLanguage[s.language]++
		if s.quiet() {
			quiet++
		}
		if s.Name == "" || len(s.Turns) == 0 {
			t.Errorf("%s has a sample without a name or a turn", s.language)
		}
		for _, turn := range s.Turns {
			if turn[0] != "user" && turn[0] != "assistant" || turn[1] == "" {
				t.Errorf("%s, %s: turn %q", s.language, s.Name, turn)
			}
		}
		for _, want := range append(slices.Clone(s.Expect), s.Also...) {
			if len(want) == 0 || slices.Contains(want, "") {
				t.Errorf("%s, %s: an expected fact without key words", s.language, s.Name)
			}
		}
	}
	if len(samples) != 60 || len(perLanguage) != 6 || quiet != 18 {
		t.Errorf("%d conversations, %v, %d without a fact", len(samples), perLanguage, quiet)
	}
	for language, n := range perLanguage {
		if n != 10 {
			t.Errorf("%s has %d", language, n)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	facts := func(texts ...string) []model.Fact {
		var all []model.Fact
		for _, text := range texts {
			all = append(all, model.Fact{Text: text})
		}
		return all
	}
	s := sample{Expect: []wanted{{"berlin", "moved|lives"}, {"two", "cats"}}, Also: []wanted{{"boxes"}}}

	t.Run("EveryKeyWordMustStandInOneFact", func(t *testing.T) {
		t.Parallel()
		j := judge(s, facts("User moved to  BERLIN", "User has cats", "There are two of them", "Boxes everywhere"))
		if j.found != 1 || j.right != 2 || !slices.Equal(j.missed, []string{"two + cats"}) || len(j.wrong) != 2 {
			t.Errorf("got %+v", j)
		}
		if j.precision() != 0.5 || j.recall() != 0.5 {
			t.Errorf("precision %f, recall %f", j.precision(), j.recall())
		}
	})

	t.Run("OneFactMayAnswerToSeveral", func(t *testing.T) {
		t.Parallel()
		j := judge(s, facts("User lives in Berlin with two cats"))
		if j.found != 2 || j.right != 1 || j.facts != 1 {
			t.Errorf("got %+v", j)
		}
	})

	t.Run("NothingToRememberWantsNothing", func(t *testing.T) {
		t.Parallel()
		if j := judge(sample{}, nil); j.quiet != 1 || j.silent != 1 || j.precision() != 1 || j.recall() != 1 {
			t.Errorf("got %+v", j)
		}
		if j := judge(sample{}, facts("x")); j.quiet != 1 || j.silent != 0 || j.precision() != 0 {
			t.Errorf("got %+v", j)
		}
	})
}

// TestOffline holds the offline extractor to what its rules reach today, a little below it.
func TestOffline(t *testing.T) {
	t.Parallel()
	var total score
	for _, j := range measure(t.Context(), offline.New(), loaded(t)) {
		total.add(j.score)
	}
	if total.precision() < 0.9 || total.recall() < 0.85 || total.silent < 17 {
		t.Errorf("precision %.2f, recall %.2f, silent %d of %d", total.precision(), total.recall(), total.silent, total.quiet)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()

	t.Run("OfflineAlone", func(t *testing.T) {
		t.Parallel()
		var out strings.Builder
		if err := run(t.Context(), options{}, &out); err != nil {
			t.Fatal(err)
		}
		if strings.Count(out.String(), "precision") != 1 || strings.Count(out.String(), "\n") != 8 {
			t.Errorf("printed %s", out.String())
		}
	})

	t.Run("BesideAConfiguredModel", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		var out strings.Builder
		o := options{Models: app.Models{Extractor: "openai", OpenAIBaseURL: stub.OpenAIURL(), OpenAIAPIKey: "k"}, Show: true}
		if err := run(t.Context(), o, &out); err != nil {
			t.Fatal(err)
		}
		if n := len(stub.Calls(stubmodel.At(stubmodel.Chat))); n != 60 {
			t.Errorf("%d calls", n)
		}
		if !strings.Contains(out.String(), "openai:127.0.0.1") || !strings.Contains(out.String(), "missed berlin") && !strings.Contains(out.String(), "missed bristol") {
			t.Errorf("printed %s", out.String())
		}
	})

	t.Run("FailedCallsAreCounted", func(t *testing.T) {
		t.Parallel()
		samples := loaded(t)[:2]
		judged := measure(t.Context(), failing{}, samples)
		var out strings.Builder
		if err := report(&out, "failing", samples, judged); err != nil {
			t.Fatal(err)
		}
		if judged[0].failed != 1 || judged[0].found != 0 || judged[0].silent != 0 || !strings.HasSuffix(strings.TrimSpace(out.String()), "2") {
			t.Errorf("got %+v and %s", judged[0], out.String())
		}
	})
}

// failing is a provider that is down.
type failing struct{ model.Extractor }

func (failing) Extract(context.Context, model.Request) (model.Extraction, error) {
	return model.Extraction{}, errors.New("down")
}
