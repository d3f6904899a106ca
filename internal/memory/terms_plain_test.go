package memory

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/french"
	"github.com/kljensen/snowball/russian"
	"github.com/kljensen/snowball/spanish"
	"github.com/kljensen/snowball/swedish"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

// plainTermsOf is TermsOf without its shorter ways: every text by the rules of Unicode, every word through every stemmer.
func plainTermsOf(text string) (terms Terms) {
	units := cut(plainFold(strings.ReplaceAll(strings.ToValidUTF8(text, " "), "’", "'")))
	lang := vote(units)
	places := map[string]int{}
	count := func(term string) {
		if term = bounded(term); term == "" {
			return
		}
		place, known := places[term]
		switch {
		case known:
			terms.Counts[place] = int16(min(int(terms.Counts[place])+1, math.MaxInt16)) // #nosec G115 -- the least of both
		case len(terms.Terms) < maxTerms:
			places[term] = len(terms.Terms)
			terms.Terms, terms.Counts = append(terms.Terms, term), append(terms.Counts, 1)
		}
	}
	add := func(u unit) {
		switch u.form {
		case wordUnit:
			terms.Length++
			for _, term := range plainVariants(u.text, lang) {
				count(term)
			}
			if syllables := []rune(u.text); len(syllables) >= 3 {
				for i := 1; i < len(syllables); i++ {
					if unicode.Is(unicode.Hangul, syllables[i-1]) && unicode.Is(unicode.Hangul, syllables[i]) {
						count(string(syllables[i-1 : i+1]))
					}
				}
			}
		case signUnit:
			terms.Length++
			count(u.text)
			if plain := withoutTone(u.text); plain != u.text {
				count(plain)
			}
		case runUnit:
			terms.Length += len(u.run)
			for i, r := range u.run {
				if len(u.run) == 1 || unicode.Is(unicode.Han, r) {
					count(string(r))
				}
				if i > 0 {
					count(string(u.run[i-1 : i+1]))
				}
			}
		}
	}
	for _, u := range units {
		if u.form != wordUnit || !stopWord(lang, u.text) {
			add(u)
		}
	}
	if len(terms.Terms) == 0 {
		for _, u := range units {
			add(u)
		}
	}
	return terms
}

func plainVariants(word string, lang language) []string {
	found := []string{bare(word)}
	keep := func(terms ...string) {
		for _, term := range terms {
			if term = bare(term); term != "" && !slices.Contains(found, term) {
				found = append(found, term)
			}
		}
	}
	keep(plainStems(word, lang)...)
	parts := strings.FieldsFunc(word, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
	if len(parts) < 2 {
		return found
	}
	for _, part := range parts[:min(len(parts), maxParts)] {
		if utf8.RuneCountInString(part) >= 2 && !stopWord(lang, part) {
			keep(part)
			keep(plainStems(part, lang)...)
		}
	}
	return found
}

func plainStems(word string, lang language) []string {
	if len(word) > maxTermBytes {
		return nil
	}
	first, _ := utf8.DecodeRuneInString(word)
	switch {
	case unicode.Is(unicode.Cyrillic, first):
		return []string{russian.Stem(strings.ReplaceAll(word, "ё", "е"), true)}
	case unicode.Is(unicode.Arabic, first):
		return []string{arabicStem(bare(word))}
	case !unicode.Is(unicode.Latin, first):
		return nil
	}
	found := []string{english.Stem(word, true)}
	if lang == inSpanish || lang == unknown {
		found = append(found, spanish.Stem(word, true))
	}
	if lang == inFrench || lang == unknown {
		found = append(found, french.Stem(word, true))
	}
	if lang == inGerman || lang == unknown {
		found = append(found, germanStem(word))
	}
	if lang == inSwedish {
		found = append(found, swedish.Stem(word, true))
	}
	return found
}

// plainFold is Fold by the rules of Unicode for every text.
func plainFold(text string) string {
	return strings.TrimSpace(cases.Fold().String(norm.NFKC.String(text)))
}

// TestTermsOfShortWays holds that TermsOf answers what it would without them.
func TestTermsOfShortWays(t *testing.T) {
	t.Parallel()
	parts := []string{
		"the", "and", "is", "it's", "der", "und", "nicht", "el", "los", "une", "och", "Running", "RUNS", "invoices", "happily", "national",
		"Katzen", "gatos", "word12", "12", "3.14", "1,000", "10:30", "a:b", "e-mail", "ana@example.com", "x_y", "_", "__a", "9a", "a9", "b2b",
		"y", "yes", "can't", "'quoted'", "o'clock's", "U.S.A.", "3.a", "a.3", "a,b", "1;2", "1'2", "a..b", "1..2", "a.:b",
		".", ",", ":", ";", "'", "_", "-", "!", "$", "`", "\"", "\x00", "\x7f", "\t", "\r\n", "\n", " ", "  ", "é", "café", "東京", "👍🏽", "커피를", "’",
	}
	word := rapid.OneOf(rapid.SampledFrom(parts), rapid.StringMatching(`[a-zA-Z0-9'_.,:;-]{1,12}`), rapid.StringMatching(`[ -~]{1,6}`),
		rapid.StringMatching(`[a-z]{1,8}(s|es|ed|ing|ly|ies|ation|ness|ment|er|en|e|y|os|as|aux|ción|heit)?`), rapid.String())
	property.Check(t, func(t *rapid.T) {
		var text strings.Builder
		space := rapid.SampledFrom([]string{" ", " ", "", "\n"}).Draw(t, "space")
		for _, w := range rapid.SliceOfN(word, 0, 80).Draw(t, "words") {
			text.WriteString(w + space)
		}
		if got, want := Fold(text.String()), plainFold(text.String()); got != want {
			t.Fatalf("%q folds to %q, want %q", text.String(), got, want)
		}
		got, want := TermsOf(text.String()), plainTermsOf(text.String())
		if !slices.Equal(got.Terms, want.Terms) || !slices.Equal(got.Counts, want.Counts) || got.Length != want.Length {
			t.Fatalf("%q has %+v, want %+v", text.String(), got, want)
		}
	})
	t.Run("EveryPairOfSigns", func(t *testing.T) {
		t.Parallel()
		for before := range rune(128) {
			for sign := range rune(128) {
				for _, after := range "a1_. " {
					text := string([]rune{'b', before, sign, after, 'c', '2'})
					if got, want := TermsOf(text), plainTermsOf(text); !slices.Equal(got.Terms, want.Terms) || got.Length != want.Length {
						t.Fatalf("%q has %+v, want %+v", text, got, want)
					}
				}
			}
		}
	})
}

func BenchmarkTermsOf(b *testing.B) {
	for name, text := range map[string]string{
		"Short":   "likes green tea",
		"English": "The customer prefers to receive invoices by e-mail on the first of each month, and doesn't like phone calls before 10.30",
		"German":  "Die Kundin möchte ihre Rechnungen künftig per E-Mail erhalten und nicht mehr angerufen werden",
		"Chinese": "我喜欢在早上喝咖啡，但是不喜欢茶",
	} {
		for way, f := range map[string]func(string) Terms{"Plain": plainTermsOf, "Short": TermsOf} {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f(text)
				}
			})
		}
	}
}
