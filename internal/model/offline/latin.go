package offline

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// vocabulary counts the words of a text that mark a language.
type vocabulary map[string]bool

func newVocabulary(list string) vocabulary {
	v := vocabulary{}
	for _, word := range strings.Fields(list) {
		v[word] = true
	}
	return v
}

func (v vocabulary) likeness(text string) int {
	n := 0
	for _, word := range lowerWords(text) {
		if v[word] {
			n++
		}
	}
	return n
}

// lowerWords returns the words of a text in a script with spaces, in lower case, without marks at their ends.
// An apostrophe ends a word and stays with it, so that j'aime is j' and aime, and I'm is i'm.
func lowerWords(text string) []string {
	var found []string
	for _, field := range strings.Fields(strings.ToLower(text)) {
		field = strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if field == "" {
			continue
		}
		found = append(found, field)
		if head, tail, ok := strings.Cut(field, "'"); ok && len(head) <= 2 && tail != "" {
			found = append(found, head+"'", tail)
		}
	}
	return found
}

// dropLead removes greetings, fillers and joining words before a statement, as long as one stands there.
// Fillers must be in lower case.
func dropLead(text string, fillers []string) string {
	for range 6 { // "Oh hi, well, by the way, actually" is five
		rest, ok := dropOne(text, fillers)
		if !ok {
			return text
		}
		text = rest
	}
	return text
}

func dropOne(text string, fillers []string) (string, bool) {
	lower := strings.ToLower(text)
	for _, filler := range fillers {
		if !strings.HasPrefix(lower, filler) || len(lower) != len(text) {
			continue
		}
		rest := text[len(filler):]
		if rest == "" || !strings.ContainsAny(rest[:1], " ,;:!-") && !strings.HasPrefix(rest, "–") {
			continue
		}
		rest = strings.TrimLeft(rest, " ,;:!-–")
		if rest != "" {
			return rest, true
		}
	}
	return text, false
}

// upperFirst returns text with a capital at its beginning.
func upperFirst(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[size:]
}

// hasWord tells whether one of the words stands in text.
func hasWord(text string, words ...string) bool {
	for _, word := range lowerWords(text) {
		for _, w := range words {
			if word == w {
				return true
			}
		}
	}
	return false
}

// startsWith tells whether text begins with one of the phrases, as whole words, whatever the case.
func startsWith(text string, phrases ...string) bool {
	lower := strings.ToLower(text)
	for _, phrase := range phrases {
		rest, ok := strings.CutPrefix(lower, phrase)
		if !ok {
			continue
		}
		if rest == "" || strings.HasSuffix(phrase, "'") || strings.HasSuffix(phrase, " ") {
			return true
		}
		if r, _ := utf8.DecodeRuneInString(rest); !unicode.IsLetter(r) && r != '\'' {
			return true
		}
	}
	return false
}

// fleeting tells what passes soon: a short sentence with a word of mood.
func fleeting(text string, moods vocabulary) bool {
	return len(strings.Fields(text)) <= 6 && moods.likeness(text) > 0
}

// verb is what a table knows of a first person's verb: the third person and what kind of statement it makes.
type verb struct {
	third string
	label memory.FactType
}

// newVerbs reads rows of "first third" pairs, joined by commas, all of one label. A word alone is its own third
// person.
func newVerbs(rows map[memory.FactType]string) map[string]verb {
	verbs := map[string]verb{}
	for label, row := range rows {
		for _, pair := range strings.Split(row, ",") {
			first, third, ok := strings.Cut(strings.TrimSpace(pair), " ")
			if !ok {
				third = first
			}
			if first != "" {
				verbs[first] = verb{third, label}
			}
		}
	}
	return verbs
}

// replaceWords replaces whole words, keeping a capital. Marks around a word stay.
func replaceWords(text string, words map[string]string) string {
	var out strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
		switch {
		case end == 0:
			_, size := utf8.DecodeRuneInString(text)
			out.WriteString(text[:size])
			text = text[size:]
			continue
		case end < 0:
			end = len(text)
		}
		word := text[:end]
		text = text[end:]
		other, ok := words[strings.ToLower(word)]
		if ok && word != "I" && !strings.HasPrefix(word, "I'") && unicode.IsUpper([]rune(word)[0]) {
			other = upperFirst(other)
		}
		if ok {
			word = other
		}
		out.WriteString(word)
	}
	return out.String()
}
