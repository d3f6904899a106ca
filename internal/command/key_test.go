package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", MaxKey)
	same := []struct {
		name   string
		header string
		value  string
	}{
		{"Bare", "abc", "abc"},
		{"QuotedIsTheSameKey", `"abc"`, "abc"},
		{"OneCharacter", "!", "!"},
		{"Longest", longest, longest},
		{"LongestQuoted", `"` + longest + `"`, longest},
		{"EscapesCountOnce", `"` + strings.Repeat(`\\`, MaxKey) + `"`, strings.Repeat(`\`, MaxKey)},
		{"EscapedQuote", `"a\"b"`, `a"b`},
		{"CommaInQuotes", `"a,b"`, "a,b"},
		{"BackslashBare", `a\b`, `a\b`},
		{"SemicolonBare", "a;b=c", "a;b=c"},
		{"Tilde", "~", "~"},
	}
	for _, c := range same {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			key, err := ParseKey([]string{c.header})
			if err != nil || key == nil || key.value != c.value {
				t.Fatalf("key %v (right value: %v), error %v", key, key != nil && key.value == c.value, err)
			}
		})
	}
	refused := []struct {
		name  string
		lines []string
	}{
		{"Empty", []string{""}},
		{"EmptyQuoted", []string{`""`}},
		{"TwoLines", []string{"a", "a"}},
		{"List", []string{"a, b"}},
		{"ListWithoutSpace", []string{"a,b"}},
		{"QuotedList", []string{`"a", "b"`}},
		{"TooLong", []string{strings.Repeat("k", MaxKey+1)}},
		{"TooLongQuoted", []string{`"` + strings.Repeat("k", MaxKey+1) + `"`}},
		{"NotASCII", []string{"clé"}},
		{"Space", []string{"a b"}},
		{"SpaceQuoted", []string{`"a b"`}},
		{"OuterSpace", []string{" a"}},
		{"Tab", []string{"a\tb"}},
		{"NUL", []string{"a\x00"}},
		{"Delete", []string{"a\x7f"}},
		{"OpenQuote", []string{`"abc`}},
		{"QuoteInside", []string{`a"b`}},
		{"ParameterAfterQuotes", []string{`"abc";a=1`}},
		{"UnknownEscape", []string{`"a\n"`}},
		{"OpenEscape", []string{`"a\`}},
	}
	for _, c := range refused {
		t.Run("Refuses"+c.name, func(t *testing.T) {
			t.Parallel()
			if key, err := ParseKey(c.lines); !fault.Is(err, fault.InvalidIdempotencyKey) || key != nil {
				t.Fatalf("key %v, error %v", key, err)
			}
		})
	}
	t.Run("NamesTheRuleThatABareKeyBreaks", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string]string{`a"x`: "quote", `a,b`: "list", `"a", "b"`: "closed"} {
			if _, err := ParseKey([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v", text, err)
			}
		}
	})
	t.Run("AbsentIsNoKeyAndNoError", func(t *testing.T) {
		t.Parallel()
		if key, err := ParseKey(nil); key != nil || err != nil {
			t.Fatalf("key %v, error %v", key, err)
		}
	})
}

func TestKey(t *testing.T) {
	t.Parallel()
	t.Run("NeverPrintsItself", func(t *testing.T) {
		t.Parallel()
		key := Key{value: "canary-key"}
		for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if printed := fmt.Sprintf(form, key); strings.Contains(printed, "canary") {
				t.Fatalf("%s printed %s", form, printed)
			}
		}
	})
	t.Run("RandomKeysDiffer", func(t *testing.T) {
		t.Parallel()
		first, second := RandomKey(), RandomKey()
		if first.Hash() == second.Hash() {
			t.Fatal("two random keys are equal")
		}
	})
	t.Run("DifferentKeysHaveDifferentHashes", func(t *testing.T) {
		t.Parallel()
		if (Key{"a"}).Hash() == (Key{"A"}).Hash() {
			t.Fatal("case was folded")
		}
	})
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"abc", `"abc"`, `"a\"b"`, "", "a,b", `"`, "\x00", strings.Repeat("k", 201)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, err := ParseKey([]string{header})
		if err != nil {
			if key != nil || !fault.Is(err, fault.InvalidIdempotencyKey) {
				t.Fatal("a refusal must be INVALID_IDEMPOTENCY_KEY and nothing else")
			}
			return
		}
		if len(key.value) < 1 || len(key.value) > MaxKey {
			t.Fatal("a key outside its limits was taken")
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key.value) + `"`
		again, err := ParseKey([]string{quoted})
		if err != nil || again.Hash() != key.Hash() {
			t.Fatal("the quoted form of a key must be the same key")
		}
	})
}
