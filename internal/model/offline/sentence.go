package offline

import (
	"strings"
	"unicode"
)

// sentence is one sentence without its final mark.
type sentence struct {
	text     string
	question bool
}

// sentences cuts a message into sentences. Code blocks and quoted lines are left out: they are not what the
// speaker says of himself. Typographic apostrophes become plain ones, so that the tables know one form.
func sentences(content string) []sentence {
	var found []sentence
	code := false
	for row := range strings.Lines(content) {
		row = strings.TrimSpace(strings.NewReplacer("’", "'", "ʼ", "'", "\u00a0", " ", "\u202f", " ", "\u3000", " ").Replace(row))
		if strings.HasPrefix(row, "```") {
			code = !code
			continue
		}
		if code || row == "" || strings.HasPrefix(row, ">") {
			continue
		}
		found = append(found, cut(trimBullet(row))...)
	}
	return found
}

// trimBullet removes the mark of a list's element.
func trimBullet(row string) string {
	for _, mark := range []string{"- ", "* ", "• ", "– ", "・", "·"} {
		if rest, ok := strings.CutPrefix(row, mark); ok {
			return strings.TrimSpace(rest)
		}
	}
	return row
}

// cut splits one line at final marks.
func cut(row string) []sentence {
	var found []sentence
	runes := []rune(row)
	start := 0
	for i := 0; i < len(runes); i++ {
		if !final(runes[i]) || !ends(runes, i) {
			continue
		}
		end, question := i, false
		for i < len(runes) && final(runes[i]) {
			question = question || runes[i] == '?' || runes[i] == '？'
			i++
		}
		found = add(found, runes[start:end], question)
		start = i
	}
	return add(found, runes[start:], false)
}

func add(found []sentence, runes []rune, question bool) []sentence {
	text := strings.TrimFunc(string(runes), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"“”„«»()[]*_~`, r) || unicode.Is(unicode.So, r) || r == '\uFE0F' || r == '\u200D'
	})
	text = strings.TrimLeft(text, "¡¿,;:")
	if text == "" {
		return found
	}
	return append(found, sentence{text: text, question: question})
}

// maxHead is how many words may stand before a clause that is read alone: more of them are seldom empty.
const maxHead = 3

// tails returns the clauses of a sentence that can be read without their beginning: behind the first comma, if few
// words and no condition stand before it, and in Chinese behind every comma that "I" follows.
func tails(text string) []string {
	var found []string
	for rest := text; ; {
		_, tail, ok := strings.Cut(rest, "，")
		if !ok {
			break
		}
		if strings.HasPrefix(tail, "我") && !chineseCondition(text) {
			found = append(found, tail)
		}
		rest = tail
	}
	head, tail, ok := strings.Cut(text, ", ")
	if words := lowerWords(head); ok && len(words) > 0 && len(words) <= maxHead && !isCondition(words[0]) && !isMadeUp(head) {
		found = append(found, strings.TrimSpace(tail))
	}
	return found
}

func chineseCondition(text string) bool {
	for _, word := range []string{"如果", "要是", "假如", "假设", "假設", "若是", "想象"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// isMadeUp tells that what follows is an example or a story.
func isMadeUp(head string) bool {
	return hasWord(head, "example", "story", "dream", "game", "novel", "book", "film", "movie", "scene", "beispiel", "geschichte", "traum", "spiel",
		"ejemplo", "historia", "sueño", "juego", "exemple", "histoire", "rêve", "jeu") //nolint:misspell // French
}

func isCondition(word string) bool {
	switch word {
	case "if", "when", "unless", "imagine", "suppose", "pretend", "wenn", "falls", "si", "s'", "cuando", "quand", "lorsque", "imagina", "imagine-toi", "stell", "stellen", "angenommen":
		return true
	}
	return false
}

func final(r rune) bool { return strings.ContainsRune(".!?…。！？；", r) }

// ends tells whether the mark at i ends a sentence. A point does so before a space or the end, unless it belongs
// to an abbreviation, an initial or a German ordinal ("am 3. Mai").
func ends(runes []rune, i int) bool {
	if runes[i] != '.' {
		return true
	}
	next := i + 1
	for next < len(runes) && (final(runes[next]) || strings.ContainsRune(`"”)»`, runes[next])) {
		next++
	}
	if next == len(runes) {
		return true
	}
	if !unicode.IsSpace(runes[next]) {
		return false
	}
	before := i
	for before > 0 && !unicode.IsSpace(runes[before-1]) {
		before--
	}
	word := strings.ToLower(string(runes[before:i]))
	after := strings.ToLower(firstWord(string(runes[next:min(next+24, len(runes))]))) // no month is longer
	if isAbbreviation(word) {
		return false
	}
	if len(word) <= 2 && strings.Trim(word, "0123456789") == "" {
		return !isMonth(after)
	}
	return len([]rune(word)) > 1
}

func firstWord(text string) string {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return ""
	}
	return strings.Trim(fields[0], ".,;:!")
}

func isAbbreviation(word string) bool {
	switch word {
	case "dr", "mr", "mrs", "ms", "st", "prof", "z.b", "bzw", "ca", "e.g", "i.e", "etc", "vs", "no", "nr", "sr", "sra", "mme", "approx", "str", "usw":
		return true
	}
	return false
}

func isMonth(word string) bool {
	switch word {
	case "januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober", "november", "dezember":
		return true
	}
	return false
}
