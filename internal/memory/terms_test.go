package memory

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

// finds tells whether each word of the question has a term in text, and whether any has.
func finds(text, question string) (each, some bool) {
	have := TermsOf(text).Terms
	each = true
	for _, word := range strings.Fields(question) {
		known := slices.ContainsFunc(TermsOf(word).Terms, func(term string) bool { return slices.Contains(have, term) })
		each = each && known
	}
	some = slices.ContainsFunc(TermsOf(question).Terms, func(term string) bool { return slices.Contains(have, term) })
	return each, some
}

func TestTermsOf(t *testing.T) {
	t.Parallel()
	t.Run("AQuestionInTheSameScriptFindsItsText", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ text, query string }{
			{"我喜欢喝咖啡", "咖啡"},
			{"我喜欢喝咖啡", "喝"},
			{"東京タワーの近くに住んでいます", "タワー"},
			{"東京タワーの近くに住んでいます", "住んで"},
			{"ฉันชอบดื่มกาแฟตอนเช้า", "กาแฟ"},
			{"ខ្ញុំចូលចិត្តកាហ្វេ", "កាហ្វេ"},
			{"أحب شرب القهوة في الصباح", "قهوة"},
			{"أُحِبُّ القَهْوَة", "القهوة"},
			{"저는 커피를 좋아해요", "커피를"},
			{"나는 커피를 좋아해요", "커피"},
			{"나는 커피를 좋아해요", "커피가"},
			{"मुझे कॉफ़ी पसंद है", "कॉफ़ी"},
			{"My favourite drink is ☕️ in the morning", "☕"},
			{"Family: 👨‍👩‍👧 on holiday", "👨‍👩‍👧"},
			{"Thumbs 👍🏽 up", "👍"},
			{"Lives in 🇩🇪", "🇩🇪"},
			{"Ana met José at the café", "jose cafe"},
			{"Я люблю свежий кофе, ёлки и чай", "КОФЕ елки"},
			{"Straße nach München", "STRASSE munchen"},
			{"Die Katze heißt Mimi und die Hunde heißen Rex", "Hund"},
			{"Tengo dos gatos negros y una perra", "gato negro"},
			{"J’habite près de l’église", "église"},
			{"Ana's running shoes are from 2019", "ana run shoe 2019"},
			{"mail ana@example.com", "example"},
			{"mail ana@example.com", "ana example.com"},
			{"ＦＵＬＬ ｗｉｄｔｈ", "full width"},
			{"x² and ﬁne", "x2 fine"},
		} {
			if each, _ := finds(c.text, c.query); !each {
				t.Errorf("%q has %q, the question %q has %q", c.text, TermsOf(c.text).Terms, c.query, TermsOf(c.query).Terms)
			}
		}
	})
	t.Run("OtherWordsFindNothing", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ text, query string }{
			{"我喜欢喝咖啡", "茶"},
			{"I drink coffee in the morning", "What is the name of my dog?"},
			{"Ich trinke morgens Kaffee", "Wie heißt der Hund?"},
			{"coffee", "☕"},
			{"ฉันชอบกาแฟ", "ปลา"},
			{"나는 커피를 좋아해요", "고양이"},
		} {
			if _, some := finds(c.text, c.query); some {
				t.Errorf("%q has %q, the question %q has %q", c.text, TermsOf(c.text).Terms, c.query, TermsOf(c.query).Terms)
			}
		}
	})
	t.Run("PairsOfCharactersStandForWords", func(t *testing.T) {
		t.Parallel()
		if got := TermsOf("我喝咖啡").Terms; !slices.Equal(got, []string{"我", "喝", "我喝", "咖", "喝咖", "啡", "咖啡"}) {
			t.Fatalf("terms %q", got)
		}
		if got := TermsOf("กาแฟ").Terms; !slices.Equal(got, []string{"กา", "าแ", "แฟ"}) {
			t.Fatalf("terms %q", got)
		}
	})
	t.Run("MarksThatMakeAnotherWordStay", func(t *testing.T) {
		t.Parallel()
		if _, some := finds("कि", "की"); some {
			t.Fatal("two vowel signs became one word")
		}
	})
	t.Run("StopWordsAreKeptWhenThereIsNothingElse", func(t *testing.T) {
		t.Parallel()
		if got := TermsOf("To be, or not to be").Terms; len(got) != 4 {
			t.Fatalf("terms %q", got)
		}
	})
	t.Run("TermsAreCountedAndWordsGiveTheLength", func(t *testing.T) {
		t.Parallel()
		got := TermsOf("coffee tea COFFEE")
		if got.Counts[slices.Index(got.Terms, "coffee")] != 2 || got.Counts[slices.Index(got.Terms, "tea")] != 1 || got.Length != 3 {
			t.Fatalf("%+v", got)
		}
	})
	t.Run("NothingReadableHasNoTerms", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"", " \t\n", "...!?", "\u200b\u00ad", "\x00", "\xff\xfe"} {
			if got := TermsOf(text); len(got.Terms) != 0 || got.Length != 0 {
				t.Errorf("%q has %+v", text, got)
			}
		}
	})
	t.Run("AHugeTextStaysWithinTheRow", func(t *testing.T) {
		t.Parallel()
		var text strings.Builder
		for i := range 5000 {
			text.WriteString(string(rune('a'+i%26)) + strings.Repeat("x", i%90) + string(rune('0'+i%10)) + " ")
		}
		text.WriteString(strings.Repeat("kettle ", 40_000))
		got := TermsOf("kettle " + text.String())
		checkBounds(t, got)
		if got.Counts[0] != 32767 {
			t.Fatalf("the most frequent term counts %d", got.Counts[0])
		}
	})
}

func TestTermsOfLongTexts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"OneRun":     strings.Repeat("我", 80_000),
		"OneWord":    strings.Repeat("a", 240_000),
		"ManyParts":  strings.Repeat("ab.", 80_000),
		"OnlyMarks":  "a" + strings.Repeat("\u0301", 120_000),
		"OneEmoji":   strings.Repeat("👍🏽\u200d", 20_000),
		"ManyWords":  strings.Repeat("ab cd ", 40_000),
		"Apostrophe": strings.Repeat("a'", 120_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkBounds(t, TermsOf(text))
		})
	}
}

func TestTermsOfAnyText(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom(nil, unicode.Han, unicode.Thai, unicode.Katakana,
			unicode.Latin, unicode.Arabic, unicode.Cyrillic, unicode.So, unicode.Mn, unicode.Cf, unicode.Zs), 0, 60, -1)).Draw(t, "text")
		got := TermsOf(text)
		checkBounds(t, got)
		again := TermsOf(text)
		if !slices.Equal(got.Terms, again.Terms) || !slices.Equal(got.Counts, again.Counts) || got.Length != again.Length {
			t.Fatalf("%q has other terms the second time", text)
		}
	})
}

func FuzzTermsOf(f *testing.F) {
	for _, text := range []string{"Ana's café", "我喜欢喝咖啡", "👨‍👩‍👧 ☕️", "a\x00b", "\xff", "ﷺ ـــ ๆ ー"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkBounds(t, TermsOf(text)) })
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// checkBounds holds what the database and the search rely on.
func checkBounds(t fataler, got Terms) {
	if len(got.Terms) != len(got.Counts) || len(got.Terms) > 2000 || got.Length < 0 {
		t.Fatalf("%d terms, %d counts, length %d", len(got.Terms), len(got.Counts), got.Length)
	}
	seen := map[string]bool{}
	for i, term := range got.Terms {
		switch {
		case term == "" || len(term) > 64:
			t.Fatalf("a term of %d bytes: %q", len(term), term)
		case !utf8.ValidString(term):
			t.Fatalf("%q is not UTF-8", term)
		case strings.ContainsFunc(term, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
			t.Fatalf("%q has a space or a control character", term)
		case seen[term]:
			t.Fatalf("%q is listed twice", term)
		case got.Counts[i] < 1:
			t.Fatalf("%q counts %d", term, got.Counts[i])
		}
		seen[term] = true
	}
}
