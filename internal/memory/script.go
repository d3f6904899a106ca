package memory

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// unspaced tells whether words of the character's script are not separated by spaces.
func unspaced(r rune) bool {
	const longVowel = 'ー' // belongs to two scripts, so to neither table
	return r == longVowel || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Yi)
}

func wordRune(r rune) bool { return unicode.In(r, unicode.L, unicode.N) }

// pictorial tells whether the character is an emoji or another sign that stands for itself.
func pictorial(r rune) bool { return unicode.Is(unicode.So, r) }

// visible drops what is not seen: spaces, controls, formatting characters and the selectors between the
// coloured and the plain form of a sign. Joiners inside an emoji stay, they make it the sign that it is.
func visible(s string) string {
	const joiner = '\u200d'
	sign := strings.ContainsFunc(s, pictorial)
	return strings.Map(func(r rune) rune {
		switch {
		case sign && r == joiner:
			return r
		case unicode.IsSpace(r), unicode.In(r, unicode.C, unicode.Z, unicode.Variation_Selector):
			return -1
		}
		return r
	}, s)
}

// withoutTone drops the skin tones of an emoji.
func withoutTone(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x1F3FB && r <= 0x1F3FF {
			return -1
		}
		return r
	}, s)
}

// bare drops the marks over and under letters in scripts where a word stays the same word without them, and
// the stretching and the soft endings of Arabic letters.
func bare(word string) string {
	if ascii(word) {
		return word
	}
	const (
		stretch   = 'ـ'
		softT     = 'ة'
		dotlessYa = 'ى'
	)
	kept, marksMatter := make([]rune, 0, len(word)), false
	for _, r := range norm.NFD.String(word) {
		switch {
		case unicode.Is(unicode.Mn, r):
			if !marksMatter {
				continue
			}
		case r == stretch:
			continue
		case r == softT:
			r = 'ه'
		case r == dotlessYa:
			r = 'ي'
		default:
			marksMatter = !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Arabic, unicode.Hebrew)
		}
		kept = append(kept, r)
	}
	return norm.NFC.String(string(kept))
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
