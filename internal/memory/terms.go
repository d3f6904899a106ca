package memory

import (
	"math"
	"slices"
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
	units := unitsOf(text)
	lang := vote(units)
	var b termBuilder
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

// unitsOf folds a text and cuts it. Most texts are of ASCII, where all of it is a matter of bytes.
func unitsOf(text string) []unit {
	if ascii(text) {
		return cutASCII(Fold(text))
	}
	return cut(Fold(strings.ReplaceAll(strings.ToValidUTF8(text, " "), "’", "'")))
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

// cutASCII is cut for lower-case ASCII: words are runs of letters, digits and underlines, which one sign of certain kinds may
// join when letters or digits are on both of its sides. There is nothing else to find.
func cutASCII(folded string) []unit {
	units := make([]unit, 0, len(folded)/5+1)
	for at := 0; at < len(folded); {
		if !wordByte(folded[at]) {
			at++
			continue
		}
		start, readable := at, false
		for at < len(folded) && (wordByte(folded[at]) || joins(folded, at)) {
			readable = readable || folded[at] != '_'
			at++
		}
		if readable {
			units = append(units, unit{form: wordUnit, text: folded[start:at]})
		}
	}
	return units
}

func wordByte(c byte) bool { return letterByte(c) || digitByte(c) || c == '_' }

func letterByte(c byte) bool { return c >= 'a' && c <= 'z' }

func digitByte(c byte) bool { return c >= '0' && c <= '9' }

// joins tells whether the sign at a place, which follows a word, goes on with it.
func joins(s string, at int) bool {
	if at+1 == len(s) {
		return false
	}
	before, after := s[at-1], s[at+1]
	switch s[at] {
	case '.', '\'':
		return letterByte(before) && letterByte(after) || digitByte(before) && digitByte(after)
	case ':':
		return letterByte(before) && letterByte(after)
	case ',', ';':
		return digitByte(before) && digitByte(after)
	}
	return false
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

// fewTerms are looked through faster than a map is made.
const fewTerms = 48

// termBuilder collects terms within the bounds of a row.
type termBuilder struct {
	terms  Terms
	places map[string]int // of all terms, once they are more than a few
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
	if ascii(word) {
		return
	}
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
	place, known := b.place(term)
	switch {
	case known:
		if b.terms.Counts[place] < math.MaxInt16 {
			b.terms.Counts[place]++
		}
	case len(b.terms.Terms) < maxTerms:
		if b.places != nil {
			b.places[term] = len(b.terms.Terms)
		}
		b.terms.Terms = append(b.terms.Terms, term)
		b.terms.Counts = append(b.terms.Counts, 1)
	}
}

func (b *termBuilder) place(term string) (place int, known bool) {
	if len(b.terms.Terms) < fewTerms {
		place = slices.Index(b.terms.Terms, term)
		return place, place >= 0
	}
	if b.places == nil {
		b.places = make(map[string]int, 4*fewTerms)
		for i, t := range b.terms.Terms {
			b.places[t] = i
		}
	}
	place, known = b.places[term]
	return place, known
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
