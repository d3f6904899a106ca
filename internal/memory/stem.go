package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/french"
	"github.com/kljensen/snowball/russian"
	"github.com/kljensen/snowball/spanish"
	"github.com/kljensen/snowball/swedish"
)

// language is one whose stop words are known.
type language int

const (
	unknown language = iota
	inEnglish
	inSpanish
	inFrench
	inGerman
	inSwedish
	inRussian
)

// vote names the language most of whose stop words are in the text: the words that nobody can write a sentence
// without. A text without any stays unknown.
func vote(units []unit) language {
	best, most := unknown, 0
	for lang := inEnglish; lang <= inRussian; lang++ {
		votes := 0
		for _, u := range units {
			if u.form == wordUnit && stopWord(lang, u.text) {
				votes++
			}
		}
		if votes > most {
			best, most = lang, votes
		}
	}
	return best
}

func stopWord(lang language, word string) bool {
	switch lang {
	case inEnglish:
		return english.IsStopWord(word) || englishShort(word)
	case inSpanish:
		return spanish.IsStopWord(word)
	case inFrench:
		return french.IsStopWord(word)
	case inGerman:
		return germanStopWord(word)
	case inSwedish:
		return swedish.IsStopWord(word)
	case inRussian:
		return russian.IsStopWord(word)
	case unknown:
	}
	return false
}

// englishShort lists the short forms that speech is full of.
func englishShort(word string) bool {
	switch word {
	case "i'm", "i've", "i'd", "i'll", "it's", "that's", "what's", "there's", "he's", "she's", "we're", "we've",
		"you're", "you've", "they're", "they've", "don't", "doesn't", "didn't", "isn't", "aren't", "wasn't",
		"can't", "won't", "let's", "would", "could":
		return true
	}
	return false
}

// germanStopWord knows articles, pronouns, prepositions, conjunctions and auxiliaries.
func germanStopWord(word string) bool {
	switch word {
	case "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "und", "oder",
		"aber", "nicht", "kein", "keine", "keinen", "ich", "du", "er", "sie", "es", "wir", "ihr", "mich", "mir",
		"dich", "dir", "ihn", "ihm", "uns", "euch", "ihnen", "mein", "meine", "meinen", "meinem", "meiner", "dein",
		"deine", "sein", "seine", "seinen", "seiner", "unser", "unsere", "ist", "sind", "war", "waren", "bin",
		"bist", "habe", "hat", "haben", "hatte", "wird", "werden", "wurde", "zu", "zum", "zur", "im", "in", "am",
		"an", "auf", "aus", "bei", "beim", "mit", "nach", "von", "vom", "vor", "für", "über", "unter", "um",
		"durch", "ohne", "gegen", "als", "wie", "wenn", "weil", "dass", "ob", "auch", "noch", "nur", "schon",
		"sehr", "so", "was", "wer", "wo", "wann", "warum", "welche", "welcher", "welches", "dieser", "diese",
		"dieses", "man", "sich":
		return true
	}
	return false
}

// maxParts bounds the parts of one word: an address or a name of a file has fewer.
const maxParts = 16

// variants returns the distinct terms that a folded word is found by: itself without marks, its stems, and its
// parts if it is put together with apostrophes, dots or the like.
func variants(word string, lang language) []string {
	whole := bare(word)
	found := []string{whole}
	keep := func(term string) {
		if term != "" && !slices.Contains(found, term) {
			found = append(found, term)
		}
	}
	for _, stem := range stems(word, lang) {
		keep(bare(stem))
	}
	if plainWord(word) {
		return found
	}
	parts := strings.FieldsFunc(word, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
	if len(parts) < 2 {
		return found
	}
	for _, part := range parts[:min(len(parts), maxParts)] {
		if utf8.RuneCountInString(part) < 2 || stopWord(lang, part) {
			continue
		}
		keep(bare(part))
		for _, stem := range stems(part, lang) {
			keep(bare(stem))
		}
	}
	return found
}

// plainWord tells of a word that it is not put together: it has letters and digits of ASCII only.
func plainWord(word string) bool {
	if word == "" {
		return false
	}
	for i := range len(word) {
		if !letterByte(word[i]) && !digitByte(word[i]) {
			return false
		}
	}
	return true
}

// stems returns the word's stems in the languages that it may be of. A text of unknown language, such as a
// query of one word, is stemmed in each, so that it meets texts of each.
func stems(word string, lang language) []string {
	if len(word) > maxTermBytes {
		return nil
	}
	if plainWord(word) && digitByte(word[len(word)-1]) {
		return nil // no ending to lose
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

// germanStem drops the endings of declension from words that stay long enough to be told apart.
func germanStem(word string) string {
	for _, ending := range []string{"ern", "en", "em", "er", "es", "e", "s", "n"} {
		if stem, cut := strings.CutSuffix(word, ending); cut && utf8.RuneCountInString(stem) >= 4 {
			return stem
		}
	}
	return word
}

// arabicStem drops the article and what is written together with it.
func arabicStem(word string) string {
	for _, article := range []string{"وال", "بال", "كال", "فال", "لل", "ال"} {
		if stem, cut := strings.CutPrefix(word, article); cut && utf8.RuneCountInString(stem) >= 3 {
			return stem
		}
	}
	return word
}
