package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		answer string
		want   []string
	}{
		{"StrictObject", `{"facts":[{"text":"User likes coffee","type":"preference"}]}`, []string{"User likes coffee"}},
		{"NothingWorthKeeping", `{"facts":[]}`, nil},
		{"OtherMembersAreIgnored", `{"id":"7","user_id":"bob","facts":[{"text":"a","id":"mem_1","supersedes":3}],"done":true}`, []string{"a"}},
		{"CodeFence", "```json\n{\"facts\":[\"a\"]}\n```", []string{"a"}},
		{"CodeFenceWithoutLanguage", "```\n{\"facts\":[\"a\"]}\n```\n", []string{"a"}},
		{"CodeFenceOnOneLine", "```json {\"facts\":[\"a\"]} ```", []string{"a"}},
		{"CodeFenceAfterProse", "Here it is:\n```json\n{\"facts\":[\"a\"]}\n```\nBye.", []string{"a"}},
		{"ProseAround", `Here you go: {"facts":["a"]} Hope it helps`, []string{"a"}},
		{"ProseWithBraces", `Set {name} and [note] as in [1]: {"facts":["a"]}`, []string{"a"}},
		{"FirstOfTwoAnswers", `{"facts":["a"]} {"facts":["b"]}`, []string{"a"}},
		{"EmptyListInProseIsNoAnswer", `I found [] in it: {"facts":["a"]}`, []string{"a"}},
		{"EmptyListAlone", `The result is []`, nil},
		{"ThinkBlockWithBraces", `<think>{"facts":["wrong"]} or {x}</think>` + "\n```json\n{\"facts\":[\"a\"]}\n```", []string{"a"}},
		{"ThinkBlockWithoutOpeningTag", `{"facts":["wrong"]}, no.</think>{"facts":["a"]}`, []string{"a"}},
		{"TwoThinkBlocks", `<think>x</think><think>{}</think> {"facts":["a"]}`, []string{"a"}},
		{"ThinkTagInsideAFactStays", `{"facts":["User writes <think>deep</think> in HTML"]}`, []string{"User writes <think>deep</think> in HTML"}},
		{"ListOfStrings", `["a","b"]`, []string{"a", "b"}},
		{"ListOfObjects", `[{"text":"a"}]`, []string{"a"}},
		{"MixedElements", `{"facts":[{"fact":"a"},"b",{"memory":"c"},{"content":"d"},{"text":"e"}]}`, []string{"a", "b", "c", "d", "e"}},
		{"NullsOfStrictMode", `{"facts":[{"text":"a","type":null,"event_date":null}]}`, []string{"a"}},
		{"BlankFactsAreDropped", `{"facts":["", "  \n", "\u200b\u200d", "\u0000", "a"]}`, []string{"a"}},
		{"NULIsRemoved", `{"facts":["a\u0000b"]}`, []string{"ab"}},
		{"RawNULOutsideIsProse", "\x00{\"facts\":[\"a\"]}", []string{"a"}},
		{"LoneSurrogateIsReplaced", `{"facts":["a \ud83d b"]}`, []string{"a \uFFFD b"}},
		{"InvalidUTF8IsReplaced", "{\"facts\":[\"a \xff b\"]}", []string{"a \uFFFD b"}},
		{"PairedSurrogatesStay", `{"facts":["\ud83d\ude00 a"]}`, []string{"😀 a"}},
		{"ByteOrderMark", "\ufeff{\"facts\":[\"a\"]}", []string{"a"}},
		{"LanguageIsKept", `{"facts":["用户喜欢喝咖啡"]}`, []string{"用户喜欢喝咖啡"}},
		{"SchemaThenAnswer", `{"type":"object","properties":{"facts":{"type":"array"}}} {"facts":["a"]}`, []string{"a"}},
		{"LongestFact", `{"facts":["` + strings.Repeat("é", maxFactRunes) + `"]}`, []string{strings.Repeat("é", maxFactRunes)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(c.answer, Request{})
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			if texts := textsOf(got); !slices.Equal(texts, c.want) {
				t.Fatalf("got %q, want %q", texts, c.want)
			}
		})
	}
}

func TestParseRefusesTheWholeAnswer(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		answer string
		reason string
	}{
		{"Empty", "", ReasonEmpty},
		{"OnlySpace", " \n\t", ReasonEmpty},
		{"OnlyThinking", "<think>a</think>", ReasonEmpty},
		{"ThinkingCutOff", `<think>{"facts":["a"]}`, ReasonTruncated},
		{"ProseOnly", "I could not find anything.", ReasonNotJSON},
		{"MissingFacts", `{}`, ReasonWrongShape},
		{"FactsAreNull", `{"facts":null}`, ReasonWrongShape},
		{"FactsAreAString", `{"facts":"a"}`, ReasonWrongShape},
		{"FactsAreAnObject", `{"facts":{"text":"a"}}`, ReasonWrongShape},
		{"OtherKey", `{"memories":["a"]}`, ReasonWrongShape},
		{"KeyInAnotherCase", `{"Facts":["a"]}`, ReasonWrongShape},
		{"TopLevelNull", `null`, ReasonWrongShape},
		{"TopLevelString", `"a"`, ReasonWrongShape},
		{"TopLevelNumber", `7`, ReasonWrongShape},
		{"SingleFactObject", `{"text":"a"}`, ReasonWrongShape},
		{"SchemaEcho", `{"$defs":{"facts":["a"]},"properties":{"facts":["b"]}}`, ReasonWrongShape},
		{"SchemaEchoWithFacts", `{"properties":{},"facts":["a"]}`, ReasonWrongShape},
		{"OurSchemaEcho", answerSchema, ReasonWrongShape},
		{"ObjectAsValue", `{"facts":[{"a":{"b":1}}]}`, ReasonWrongShape},
		{"ObjectAsText", `{"facts":["good",{"text":{"b":1}}]}`, ReasonWrongShape},
		{"FactAsKey", `{"facts":[{"User likes coffee":"preference"}]}`, ReasonWrongShape},
		{"Number", `{"facts":["a",1]}`, ReasonWrongShape},
		{"NumberAsText", `{"facts":[{"text":1}]}`, ReasonWrongShape},
		{"Null", `{"facts":["a",null]}`, ReasonWrongShape},
		{"Boolean", `{"facts":[true]}`, ReasonWrongShape},
		{"ListInList", `{"facts":[["a"]]}`, ReasonWrongShape},
		{"UpdateWithAnInventedID", `{"id":"12","event":"DELETE"}`, ReasonWrongShape},
		{"ConversationEcho", `[{"role":"user","content":"hello"}]`, ReasonWrongShape},
		{"TruncatedInTheMiddle", `{"facts":[{"text":"a"},{"text":"b`, ReasonTruncated},
		{"TruncatedAfterACompleteList", `{"notes":["a","b"],"facts":["c`, ReasonTruncated},
		{"TruncatedInAFence", "```json\n{\"facts\":[\"a\",", ReasonTruncated},
		{"TrailingComma", `{"facts":["a",]}`, ReasonNotJSON},
		{"BrokenAfterACompleteList", `{"notes":["a"],"facts":["b",]}`, ReasonNotJSON},
		{"SingleQuotes", `{'facts':['a']}`, ReasonNotJSON},
		{"DuplicateMembers", `{"facts":["a"],"facts":["b"]}`, ReasonNotJSON},
		{"WrongAnswerThenAnother", `{"facts":[{"a":1}]} {"facts":["b"]}`, ReasonWrongShape},
		{"ListOfNumbersInProse", `see [1, 2]`, ReasonWrongShape},
		{"TooManyFacts", `{"facts":[` + strings.TrimSuffix(strings.Repeat(`"a",`, maxFacts+1), ",") + `]}`, ReasonTooLarge},
		{"FactTooLong", `{"facts":["` + strings.Repeat("a", maxFactRunes+1) + `"]}`, ReasonTooLarge},
		{"TotalTooLong", `{"facts":[` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("a", 7_000)+`",`, 15), ",") + `]}`, ReasonTooLarge},
		{"AnswerTooLarge", strings.Repeat(" ", maxAnswerBytes+1), ReasonTooLarge},
		{"DeepNesting", strings.Repeat("[", 100_000), ReasonNotJSON},
		{"ManyBracesInProse", strings.Repeat("{x ", 100_000), ReasonNotJSON},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(c.answer, Request{})
			var failure *Error
			if !errors.As(err, &failure) {
				t.Fatalf("got %q and error %v, want output_invalid", textsOf(got), err)
			}
			if failure.Class != task.OutputInvalid || failure.Reason != c.reason {
				t.Fatalf("got class %s, reason %q, want reason %q", failure.Class, failure.Reason, c.reason)
			}
			if got != nil {
				t.Fatalf("an invalid answer left facts: %q", textsOf(got))
			}
		})
	}
}

func TestParseReadsLabels(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	morning := time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	cases := []struct {
		name    string
		members string
		label   memory.FactType
		date    *time.Time
	}{
		{"KnownType", `"type":"Preference"`, memory.TypePreference, nil},
		{"UnknownTypeIsDropped", `"type":"hobby"`, "", nil},
		{"TypeOfAnotherKindIsDropped", `"type":3`, "", nil},
		{"Date", `"event_date":"2026-03-01"`, "", &midnight},
		{"TimeInAnotherZone", `"event_date":"2026-03-01T09:30:00+01:00"`, "", &morning},
		{"VagueDateIsDropped", `"event_date":"last spring"`, "", nil},
		{"NumberAsDateIsDropped", `"event_date":20260301`, "", nil},
		{"YearWithoutRFC3339FormIsDropped", `"event_date":"9999-12-31T23:59:59-05:00"`, "", nil},
		{"YearZeroIsDropped", `"event_date":"0000-01-01"`, "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(`{"facts":[{"text":"a",`+c.members+`}]}`, Request{})
			if err != nil || len(got) != 1 {
				t.Fatalf("got %d facts and error %v", len(got), err)
			}
			if got[0].Type != c.label {
				t.Errorf("type is %q, want %q", got[0].Type, c.label)
			}
			if (got[0].EventDate == nil) != (c.date == nil) || c.date != nil && !got[0].EventDate.Equal(*c.date) {
				t.Errorf("date is %v, want %v", got[0].EventDate, c.date)
			}
		})
	}
}

func TestParseReadsReferences(t *testing.T) {
	t.Parallel()
	known := []Known{{Number: 1, Text: "a"}, {Number: 2, Text: "b"}, {Number: 7, Text: "g"}}
	cases := []struct {
		name, reference string
		want            int
	}{
		{"Number", `2`, 2},
		{"NumberOfTheListThatIsNoPlace", `7`, 7},
		{"NumberAsText", `" 2 "`, 2},
		{"WholeFraction", `2.0`, 2},
		{"NotInTheList", `3`, 0},
		{"Zero", `0`, 0},
		{"Negative", `-1`, 0},
		{"NegativeAsText", `"-1"`, 0},
		{"Fraction", `1.5`, 0},
		{"Huge", `1e300`, 0},
		{"BeyondFloats", `1e999`, 0},
		{"Null", `null`, 0},
		{"True", `true`, 0},
		{"ID", `"mem_01890a5d-ac96-774b-bcce-b302099a8057"`, 0},
		{"Words", `"the second one"`, 0},
		{"Empty", `""`, 0},
		{"List", `[1]`, 0},
		{"Object", `{"n":1}`, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(`{"facts":[{"text":"x","supersedes":`+c.reference+`}]}`, Request{Known: known})
			if err != nil || len(got) != 1 {
				t.Fatalf("got %d facts and error %v", len(got), err)
			}
			if got[0].Supersedes != c.want {
				t.Errorf("supersedes %d, want %d", got[0].Supersedes, c.want)
			}
		})
	}

	t.Run("OnlyTheFirstFactKeepsATarget", func(t *testing.T) {
		t.Parallel()
		got, err := Parse(`[{"text":"x","supersedes":2},{"text":"y","supersedes":2},{"text":"z","supersedes":1}]`, Request{Known: known})
		if err != nil || got[0].Supersedes != 2 || got[1].Supersedes != 0 || got[2].Supersedes != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})

	t.Run("NothingKnownNothingSuperseded", func(t *testing.T) {
		t.Parallel()
		got, err := Parse(`[{"text":"x","supersedes":1}]`, Request{})
		if err != nil || got[0].Supersedes != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"facts":["a",{"text":"b","type":"fact","event_date":"2026-01-01"}]}`, "```json\n[\"a\"]\n```",
		`{"facts":[{"text":"a","supersedes":1},{"text":"b","supersedes":"1"}]}`, `<think>{</think>{"facts":[]}`, `x {"facts":[{"fact":"\ud83d\u0000"}]} y`, `{"$defs":{},"properties":{}}`, `[[`, `{"a":`,
		"{\"facts\":[\"\xff\"]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		found, err := Parse(answer, Request{Known: []Known{{Number: 1}}})
		if err != nil {
			var failure *Error
			if !errors.As(err, &failure) || failure.Class != task.OutputInvalid || len(found) > 0 {
				t.Fatalf("error %v with %d facts", err, len(found))
			}
			return
		}
		if len(found) > maxFacts {
			t.Fatalf("%d facts", len(found))
		}
		references := 0
		for _, fact := range found {
			if references += fact.Supersedes; references > 1 || fact.Supersedes < 0 {
				t.Fatalf("fact %q supersedes %d", fact.Text, fact.Supersedes)
			}
			if !visible(fact.Text) || !utf8.ValidString(fact.Text) || strings.ContainsRune(fact.Text, 0) ||
				utf8.RuneCountInString(fact.Text) > maxFactRunes {
				t.Fatalf("fact %q", fact.Text)
			}
			if d := fact.EventDate; d != nil && (d.Year() < 1 || d.Year() > 9999) {
				t.Fatalf("date %s", d)
			}
			again, err := Parse(`{"facts":[`+quote(fact.Text)+`]}`, Request{})
			if err != nil || len(again) != 1 || again[0].Text != fact.Text {
				t.Fatalf("%q does not survive a second reading: %q, %v", fact.Text, textsOf(again), err)
			}
		}
	})
}

func textsOf(found []Fact) []string {
	var texts []string
	for _, fact := range found {
		texts = append(texts, fact.Text)
	}
	return texts
}

func TestSecretNeverShowsItself(t *testing.T) {
	t.Parallel()
	secret := Secret("sk-canary")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, struct{ Key Secret }{secret}); strings.Contains(got, "canary") || strings.Contains(got, fmt.Sprintf("%x", "canary")) {
			t.Errorf("%s printed %q", verb, got)
		}
	}
	if got := quote(map[string]Secret{"key": secret}); strings.Contains(got, "canary") {
		t.Errorf("JSON holds %s", got)
	}
	if got := secret.LogValue().String(); got != "[redacted]" {
		t.Errorf("the log value is %q", got)
	}
	if secret.Reveal() != "sk-canary" {
		t.Error("Reveal lost the credential")
	}
}
