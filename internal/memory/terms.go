package memory

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

const (
	// maxTerms bounds the row of one record; the longest body that is accepted has more words only if it is a
	// list of names, and then the first ones will do.
	maxTerms = 2000
	// maxTermBytes cuts what is no word but a link or an encoded file; the longest words of real languages fit.
	maxTermBytes = 64
)

// Terms is what a text can be found by: its distinct terms in the order of their first appearance, how often
// each occurs, and the length of the text in words. A term is valid UTF-8 of 1 to 64 bytes, without a space or
// a control character; there are at most 2,000.
type Terms struct {
	Terms  []string
	Counts []int16
	Length int
}

// TermsOf cuts text into terms. Texts and queries are cut alike: whoever searches compares the terms of both.
//
// Words are found by the rules of Unicode and folded, marks over letters are dropped, and a word also counts as
// its stem and its parts, a Korean one also as pairs of its syllables. Scripts that are written without spaces give overlapping pairs of characters, and
// emoji count as words. Stop words of the text's language are left out unless it has nothing else.
func TermsOf(text string) Terms {
	folded := Fold(strings.ReplaceAll(strings.ToValidUTF8(text, " "), "’", "'"))
	units := cut(folded)
	lang := vote(units)
	b := termBuilder{places: map[string]int{}}
	for _, u := range units {
		if u.form == wordUnit && stopWord(lang, u.text) {
			continue
		}
		b.add(u, lang)
	}
	if len(b.terms.Terms) == 0 {
		for _, u := range units {
			b.add(u, lang)
		}
	}
	return b.terms
}

// form says how a unit of text becomes terms.
type form int

const (
	wordUnit form = iota
	runUnit       // characters of scripts that are written without spaces
	signUnit      // an emoji or another pictorial sign
)

// unit is a folded piece of text that belongs together.
type unit struct {
	form form
	text string // of words and signs
	run  []rune
}

// cut finds the units of a folded text in their order.
func cut(folded string) []unit {
	var units []unit
	joined := false // the last unit is a run that ends where the next segment begins
	segments := words.FromString(folded)
	for segments.Next() {
		rest := segments.Value()
		if !strings.ContainsFunc(rest, wordRune) {
			joined = false
			if strings.ContainsFunc(rest, pictorial) {
				units = append(units, unit{form: signUnit, text: visible(rest)})
			}
			continue
		}
		for rest != "" {
			size, run := piece(rest)
			text := visible(rest[:size])
			rest = rest[size:]
			switch {
			case text == "":
			case run && joined:
				last := &units[len(units)-1]
				last.run = append(last.run, []rune(text)...)
			case run:
				units = append(units, unit{form: runUnit, run: []rune(text)})
				joined = true
			default:
				units = append(units, unit{form: wordUnit, text: text})
				joined = false
			}
		}
	}
	return units
}

// piece returns the size of the first part of s that is all of one kind: written without spaces, or with.
func piece(s string) (size int, run bool) {
	for i, r := range s {
		if i == 0 {
			run = unspaced(r)
			continue
		}
		// A mark or an invisible character stays with what it follows.
		if unspaced(r) != run && !unicode.In(r, unicode.M, unicode.Cf) {
			return i, run
		}
	}
	return len(s), run
}

// termBuilder collects terms within the bounds of a row.
type termBuilder struct {
	terms  Terms
	places map[string]int
}

func (b *termBuilder) add(u unit, lang language) {
	switch u.form {
	case wordUnit:
		b.terms.Length++
		for _, term := range variants(u.text, lang) {
			b.count(term)
		}
		b.addSyllables(u.text)
	case signUnit:
		b.terms.Length++
		b.count(u.text)
		if plain := withoutTone(u.text); plain != u.text {
			b.count(plain)
		}
	case runUnit:
		b.addRun(u.run)
	}
}

// addRun counts the pairs of neighbours, and single characters where one alone can be a word.
func (b *termBuilder) addRun(run []rune) {
	b.terms.Length += len(run)
	for i, r := range run {
		if len(run) == 1 || unicode.Is(unicode.Han, r) {
			b.count(string(r))
		}
		if i > 0 {
			b.count(string(run[i-1 : i+1]))
		}
	}
}

// addSyllables counts the pairs of neighbouring syllables of a longer Korean word: particles are written without a space
// behind the noun.
func (b *termBuilder) addSyllables(word string) {
	syllables := []rune(word)
	if len(syllables) < 3 {
		return
	}
	for i := 1; i < len(syllables); i++ {
		if unicode.Is(unicode.Hangul, syllables[i-1]) && unicode.Is(unicode.Hangul, syllables[i]) {
			b.count(string(syllables[i-1 : i+1]))
		}
	}
}

func (b *termBuilder) count(term string) {
	if term = bounded(term); term == "" {
		return
	}
	place, known := b.places[term]
	switch {
	case known:
		if b.terms.Counts[place] < math.MaxInt16 {
			b.terms.Counts[place]++
		}
	case len(b.terms.Terms) < maxTerms:
		b.places[term] = len(b.terms.Terms)
		b.terms.Terms = append(b.terms.Terms, term)
		b.terms.Counts = append(b.terms.Counts, 1)
	}
}

// bounded cuts a term at a character's boundary.
func bounded(term string) string {
	if len(term) <= maxTermBytes {
		return term
	}
	end := maxTermBytes
	for end > 0 && !utf8.RuneStart(term[end]) {
		end--
	}
	return term[:end]
}
