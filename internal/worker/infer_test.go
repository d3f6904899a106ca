package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// saying makes a lease's payload of these turns of one user.
func saying(t *testing.T, turns ...string) func(*Lease) {
	t.Helper()
	add := command.Add{Scope: memory.Scope{UserID: "u"}, Infer: true}
	for _, turn := range turns {
		add.Messages = append(add.Messages, command.Message{Role: "user", Content: turn})
	}
	payload, err := add.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return func(l *Lease) { l.Payload = payload }
}

// answering is a model that gives these facts.
func answering(facts ...model.Fact) func(model.Request) (model.Extraction, error) {
	return func(model.Request) (model.Extraction, error) {
		return model.Extraction{Facts: facts, Usage: model.Usage{Calls: 1, TokensIn: 7}}, nil
	}
}

func TestSupersede(t *testing.T) {
	t.Parallel()
	paris := KnownRecord{ID: uuid.New(), Version: 3, Text: "User lives in Paris", SaidAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	tea := KnownRecord{ID: uuid.New(), Version: 1, Text: "User likes tea"}
	both := func() ([]KnownRecord, error) { return []KnownRecord{paris, tea}, nil }

	t.Run("KnownRecordsAreShownUnderNumbersAndNamedByThem", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Known, r.known = r, both
			r.reply = answering(model.Fact{Text: "User moved to Berlin", Supersedes: 1}, model.Fact{Text: "User has a dog"})
			r.begin()
			r.hint(saying(t, "I moved to Berlin"))
			r.elapse(0)
			if want := []string{"claim", "known 40", "extract", "commit", "notify", "ack"}; !slices.Equal(r.order, want) {
				t.Errorf("it went %v, want %v", r.order, want)
			}
			if terms := r.asked[0]; !slices.Contains(terms, "berlin") {
				t.Errorf("looked for %q", terms)
			}
			want := []model.Known{{Number: 1, Text: paris.Text, Said: paris.SaidAt}, {Number: 2, Text: tea.Text}}
			if !slices.Equal(r.requests[0].Known, want) {
				t.Errorf("the model was shown %+v", r.requests[0].Known)
			}
			records := r.commits[0].Plan.Records
			if got := records[0].Supersedes; got == nil || *got != (memory.Target{ID: paris.ID, Version: 3}) {
				t.Errorf("the first fact supersedes %+v", got)
			}
			if records[1].Supersedes != nil {
				t.Errorf("the second fact supersedes %+v", records[1].Supersedes)
			}
			r.end()
		})
	})

	t.Run("OnlyTheFirstFactKeepsATargetAndOthersAreAdditions", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Known, r.known = r, both
			r.reply = answering(model.Fact{Text: "a", Supersedes: 2}, model.Fact{Text: "b", Supersedes: 2}, model.Fact{Text: "c", Supersedes: 3},
				model.Fact{Text: "d", Supersedes: -1}, model.Fact{Text: " user lives in PARIS", Supersedes: 1})
			r.begin()
			r.hint(nil)
			r.elapse(0)
			for i, record := range r.commits[0].Plan.Records {
				if (record.Supersedes != nil) != (i == 0) {
					t.Errorf("%s supersedes %+v", record.Text, record.Supersedes)
				}
			}
			r.end()
		})
	})

	t.Run("NoMoreThanFortyAreShown", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Known = r
			r.known = func() ([]KnownRecord, error) { return make([]KnownRecord, maxKnown+5), nil }
			r.begin()
			r.hint(saying(t, strings.Repeat("all sorts of different words: ", 5), fmt.Sprint(slices.Repeat([]int{1, 2}, 10))))
			r.elapse(0)
			if n := len(r.requests[0].Known); n != maxKnown {
				t.Errorf("%d were shown", n)
			}
			r.end()
		})
	})

	t.Run("WhatPeopleSayIsLookedForFirst", func(t *testing.T) {
		t.Parallel()
		var long strings.Builder
		for i := range 2 * maxKnownTerms {
			fmt.Fprintf(&long, "word%d ", i)
		}
		terms := termsOf([]model.Message{{Role: "assistant", Content: long.String()}, {Role: "user", Content: "zebra"}})
		if len(terms) != maxKnownTerms || terms[0] != "zebra" {
			t.Errorf("%d terms from %q", len(terms), terms[0])
		}
	})

	t.Run("WhatIsKnownIsReadAgainWhileTheDatabaseFails", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Known = r
			tries := 0
			r.known = func() ([]KnownRecord, error) {
				if tries++; tries < 3 {
					return nil, errDatabase
				}
				return nil, nil
			}
			r.begin()
			r.hint(nil)
			r.elapse(time.Minute)
			if tries != 3 || r.extractions != 1 || len(r.commits) != 1 {
				t.Errorf("it went %v", r.order)
			}
			r.end()
		})
	})

	t.Run("WithoutWhatIsKnownTheModelIsNotAsked", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.deps.Known = r
			r.known = func() ([]KnownRecord, error) { return nil, errDatabase }
			r.begin()
			r.hint(nil)
			r.elapse(time.Minute)
			if r.extractions != 0 || len(r.laters) != 1 || r.laters[0].Class != task.InternalFailure {
				t.Errorf("it went %v, %+v", r.order, r.laters)
			}
			r.end()
		})
	})
}

func TestLongConversation(t *testing.T) {
	t.Parallel()
	// Six turns of 2,000 characters are more than three windows of 4,000, because these overlap.
	turns := make([]string, 6)
	for i := range turns {
		turns[i] = strings.Repeat(fmt.Sprint("turn ", i, " "), 280)
	}
	short := func(r *rig) { r.cfg.InputChars = minInputChars }
	lastTurn := func(request model.Request) string {
		text := request.Messages[len(request.Messages)-1].Content
		return text[:6]
	}

	t.Run("IsReadInWindowsOfOnePlan", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			short(r)
			r.reply = func(request model.Request) (model.Extraction, error) {
				return model.Extraction{
					Facts: []model.Fact{{Text: "User likes tea"}, {Text: lastTurn(request)}, {Text: "USER likes tea "}}, Usage: model.Usage{Calls: 1, TokensIn: 7},
				}, nil
			}
			r.begin()
			m := r.hint(saying(t, turns...))
			r.elapse(0)
			if r.extractions < 4 || len(r.commits) != 1 {
				t.Fatalf("it went %v", r.order)
			}
			if m.progress != r.extractions {
				t.Errorf("%d heartbeats for %d calls", m.progress, r.extractions)
			}
			if usage := r.commits[0].Work.Usage; usage.Calls != r.extractions || usage.TokensIn != int64(7*r.extractions) {
				t.Errorf("used %+v", usage)
			}
			var texts []string
			for _, record := range r.commits[0].Plan.Records {
				texts = append(texts, record.Text)
			}
			// What one answer says twice stays for the commit; what a later window repeats does not.
			if len(texts) != 2+r.extractions || !slices.Equal(texts[:3], []string{"User likes tea", "turn 1", "USER likes tea "}) {
				t.Errorf("planned %q", texts)
			}
			r.end()
		})
	})

	t.Run("AWindowThatFailsFailsTheAttempt", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			short(r)
			calls := 0
			r.reply = func(model.Request) (model.Extraction, error) {
				if calls++; calls == 3 {
					failed := model.NewError(task.ProviderUnavailable, "down", nil)
					failed.Usage = model.Usage{Calls: 1, TokensIn: 1}
					return model.Extraction{}, failed
				}
				return oneFact(), nil
			}
			r.begin()
			r.hint(saying(t, turns...))
			r.elapse(0)
			if len(r.commits) != 0 || len(r.laters) != 1 || r.laters[0].Class != task.ProviderUnavailable {
				t.Fatalf("it went %v", r.order)
			}
			if usage := r.laters[0].Work.Usage; usage.Calls != 3 || usage.TokensIn != 15 {
				t.Errorf("used %+v", usage)
			}
			r.end()
		})
	})

	t.Run("EachWindowHasItsOwnDeadline", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			short(r)
			r.cfg.ModelTimeout = 10 * time.Second
			r.extract = lasting(8 * time.Second)
			r.begin()
			r.hint(saying(t, turns...))
			r.elapse(time.Minute)
			if len(r.commits) != 1 || r.extractions < 4 || r.commits[0].Work.ModelTime != time.Duration(r.extractions)*8*time.Second {
				t.Errorf("it went %v", r.order)
			}
			r.end()
		})
	})

	t.Run("ALostLeaseEndsItBetweenWindows", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			short(r)
			r.deps.Extractor = &extractor{rig: r, local: true}
			r.reply = func(model.Request) (model.Extraction, error) {
				time.Sleep(2 * r.cfg.LeaseTTL)
				return oneFact(), nil
			}
			r.heartbeat = func(context.Context) (Beat, error) { return Beat{}, errDatabase }
			r.begin()
			r.hint(saying(t, turns...))
			r.elapse(time.Hour)
			if r.extractions != 1 || len(r.commits) != 0 {
				t.Errorf("it went %v", r.order)
			}
			r.end()
		})
	})

	t.Run("AReferenceCountsOnceOverAllWindows", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			short(r)
			target := KnownRecord{ID: uuid.New(), Version: 1, Text: "User lives in Paris"}
			r.deps.Known, r.known = r, func() ([]KnownRecord, error) { return []KnownRecord{target}, nil }
			r.reply = func(request model.Request) (model.Extraction, error) {
				return model.Extraction{Facts: []model.Fact{{Text: lastTurn(request), Supersedes: request.Known[0].Number}}}, nil
			}
			r.begin()
			r.hint(saying(t, turns...))
			r.elapse(0)
			if len(r.asked) != 1 {
				t.Errorf("what is known was read %d times", len(r.asked))
			}
			for i, record := range r.commits[0].Plan.Records {
				if (record.Supersedes != nil) != (i == 0) {
					t.Errorf("%s supersedes %+v", record.Text, record.Supersedes)
				}
			}
			r.end()
		})
	})

	t.Run("APlanIsBounded", func(t *testing.T) {
		t.Parallel()
		found := newFindings()
		for i := range 3 {
			var facts []model.Fact
			for j := range maxPlanFacts / 2 {
				facts = append(facts, model.Fact{Text: fmt.Sprint(i, "-", j)})
			}
			found.add(facts)
		}
		if len(found.facts) != maxPlanFacts {
			t.Errorf("%d facts", len(found.facts))
		}
		found = newFindings()
		for i := range 60 {
			found.add([]model.Fact{{Text: fmt.Sprint(i) + strings.Repeat("é", 8_000)}})
		}
		if found.runes > maxPlanRunes || len(found.facts) != 49 {
			t.Errorf("%d facts of %d characters", len(found.facts), found.runes)
		}
	})
}

func TestPromptVersion(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"holdfast-7": `{"prompt":"holdfast-7","extractor":"openai"}`, "": `nonsense`} {
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			r.hint(func(l *Lease) { l.Policy = []byte(policy) })
			r.elapse(0)
			if got := r.requests[0].Prompt; got != name {
				t.Errorf("%s asked with %q", policy, got)
			}
			r.end()
		})
	}
}

func TestInputChars(t *testing.T) {
	t.Parallel()
	for chars, valid := range map[int]bool{0: true, minInputChars: true, maxInputChars: true, minInputChars - 1: false, maxInputChars + 1: false, -1: false} {
		cfg := DefaultConfig()
		cfg.InputChars = chars
		if _, err := cfg.checked(true); (err == nil) != valid {
			t.Errorf("%d: %v", chars, err)
		}
	}
}
