package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// canary stands for the caller's text: it must be in no error.
const canary = "canary-7f3a"

func TestReadJSON(t *testing.T) {
	t.Parallel()
	taken := map[string]string{
		"Object":              `{"content":"x","metadata":{"a":[1,2.50,-0,1e-300,1.0,9007199254740992.5]}}`,
		"Scalar":              ` "x" `,
		"LargestInteger":      `{"metadata":{"n":9007199254740992}}`,
		"SmallestInteger":     `{"metadata":{"n":-9007199254740992}}`,
		"DeepestLevel":        strings.Repeat("[", 32) + strings.Repeat("]", 32),
		"SurrogatePair":       `{"content":"\ud83d\ude00"}`,
		"Noncharacter":        "\"\uffff\"",
		"SameNameInSiblings":  `[{"a":1},{"a":2}]`,
		"IntegerWithFraction": `{"metadata":{"n":9007199254740992.000}}`,
		"FractionAsMantissa":  `{"metadata":{"n":9007199254740.9920e3}}`,
		"ZeroWithExponent":    `{"metadata":[0.0e-999,0e99999999999]}`,
	}
	for name, body := range taken {
		t.Run("Takes"+name, func(t *testing.T) {
			t.Parallel()
			if got, err := ReadJSON([]byte(body)); err != nil || string(got) != body {
				t.Fatalf("got %s, %v", got, err)
			}
		})
	}

	refused := []struct {
		name    string
		body    string
		pointer string
		rule    string
	}{
		{"Empty", ``, "", "valid JSON"},
		{"WhiteSpace", " \n", "", "valid JSON"},
		{"Truncated", `{"content":"` + canary, "/content", "complete JSON"},
		{"TruncatedObject", `{"content":"x"`, "", "complete JSON"},
		{"TruncatedMember", `{"content":`, "/content", "complete JSON"},
		{"SingleQuotes", `{'content':'` + canary + `'}`, "", "valid JSON"},
		{"Comment", `{} // ` + canary, "", "one JSON value and nothing after it"},
		{"TrailingValue", `{"content":"x"} "` + canary + `"`, "", "one JSON value and nothing after it"},
		{"TrailingComma", `{"content":"x",}`, "", "valid JSON"},
		{"ByteOrderMark", "\ufeff{}", "", "valid JSON"},
		{"DuplicateMember", `{"content":"a","content":"` + canary + `"}`, "", "no member twice"},
		{"DuplicateByEscape", `{"content":"a","\u0063ontent":"` + canary + `"}`, "", "no member twice"},
		{"DuplicateInMetadata", `{"metadata":{"` + canary + `":1,"` + canary + `":2}}`, "/metadata", "no member twice"},
		{"InvalidUTF8", "{\"content\":\"" + canary + "\xff\"}", "", "valid UTF-8"},
		{"LoneHighSurrogate", `{"content":"` + canary + `\ud83d"}`, "", "no lone surrogates"},
		{"LoneLowSurrogate", `{"content":"` + canary + `\ude00x"}`, "", "no lone surrogates"},
		{"SwappedSurrogates", `{"content":"\ude00\ud83d"}`, "", "no lone surrogates"},
		{"LoneSurrogateInName", `{"\ud83d":1}`, "", "no lone surrogates"},
		{"EncodedSurrogate", "{\"content\":\"\xed\xa0\xbd\"}", "", "valid UTF-8"},
		{"EscapedNUL", `{"content":"` + canary + `\u0000"}`, "/content", "no NUL"},
		{"RawNUL", "{\"content\":\"" + canary + "\x00\"}", "", "valid JSON"},
		{"NULInName", `{"metadata":{"` + canary + `\u0000":1}}`, "/metadata", "no NUL"},
		{"NULInMessage", `{"messages":[{},{"role":"user","content":"\u0000"}]}`, "/messages/1/content", "no NUL"},
		{"IntegerTooLarge", `{"metadata":{"n":9007199254740993}}`, "/metadata", "integers within 2^53"},
		{"IntegerTooSmall", `{"metadata":{"n":-9007199254740993}}`, "/metadata", "integers within 2^53"},
		{"IntegerHuge", `{"limit":123456789012345678901234567890}`, "/limit", "integers within 2^53"},
		{"IntegerTooLargeWithFraction", `{"metadata":{"n":9007199254740993.0}}`, "/metadata", "integers within 2^53"},
		{"IntegerTooLargeWithExponent", `{"metadata":{"n":9007199254740993e0}}`, "/metadata", "integers within 2^53"},
		{"IntegerTooLargeAsFraction", `{"metadata":{"n":-0.9007199254740993E16}}`, "/metadata", "integers within 2^53"},
		{"PowerTooLarge", `{"metadata":{"n":1e20}}`, "/metadata", "integers within 2^53"},
		{"AbsurdExponent", `{"metadata":{"n":1e-99999999999999999999}}`, "/metadata", "numbers within the range of a double"},
		{"NumberTooLarge", `{"min_score":1e400}`, "/min_score", "numbers within the range of a double"},
		{"NumberVanishes", `{"min_score":1e-400}`, "/min_score", "numbers within the range of a double"},
		{"NumberTooLong", `{"min_score":0.` + strings.Repeat("1", 100) + `}`, "/min_score", "numbers of at most 100 characters"},
		{"NaN", `{"min_score":NaN}`, "", "valid JSON"},
		{"TooDeep", strings.Repeat("[", 33) + strings.Repeat("]", 33), "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0", "at most 32 levels deep"},
		{"UnknownNamesAreCut", `{"` + canary + `":{"content":"\u0000"}}`, "", "no NUL"},
		{"DigitsAsNameAreCut", `{"messages":{"078051120":"\u0000"}}`, "/messages", "no NUL"},
	}
	for _, c := range refused {
		t.Run("Refuses"+c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadJSON([]byte(c.body))
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.InvalidBody || f.Rule != c.rule {
				t.Fatalf("got %v, want rule %q", err, c.rule)
			}
			if c.pointer != "" && f.Pointer != c.pointer {
				t.Fatalf("pointer %q, want %q", f.Pointer, c.pointer)
			}
			if strings.Contains(err.Error(), canary) {
				t.Fatalf("the error quotes the caller: %v", err)
			}
		})
	}
}

func TestReadJSONSpellsIntegersPlainly(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"limit": 1.0 , "min_score":0.50,"query":"1.0"}`:  `{"limit": 1 , "min_score":0.50,"query":"1.0"}`,
		`{"generation":10e-1,"limit":-2.5E1,"top_k":-0.0}`: `{"generation":1,"limit":-25,"top_k":0}`,
		`{"limit":1.5}`: `{"limit":1.5}`,
		`{"metadata":{"n":1.0},"memories":[{"version":2.0,"metadata":{"a":[1e0]}}]}`: `{"metadata":{"n":1.0},"memories":[{"version":2,"metadata":{"a":[1e0]}}]}`,
		`{"filters":{"n":{"eq":1.0}},"limit":3e0}`:                                   `{"filters":{"n":{"eq":1.0}},"limit":3}`,
		`1.0`: `1`,
	} {
		if got, err := ReadJSON([]byte(body)); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v", body, got, err)
		}
	}
}

func TestSafePointer(t *testing.T) {
	t.Parallel()
	for want, parts := range map[string][]string{
		"":                    {canary},
		"/user_id":            {"user_id"},
		"/messages/3/role":    {"messages", "3", "role"},
		"/metadata":           {"metadata", "content"},
		"/filters":            {"filters", "user_id"},
		"/messages":           {"messages", "078"},
		"/messages/0":         {"messages", "0", canary, "role"},
		"/messages/3/content": {"messages", "3", "content", canary},
	} {
		if got := SafePointer(parts); got != want {
			t.Errorf("%q: got %q, want %q", parts, got, want)
		}
	}
}
