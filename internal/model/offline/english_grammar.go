package offline

import "strings"

// englishGrammar turns the first person into the third.
type englishGrammar struct {
	adverbs    map[string]bool
	unchanged  map[string]bool // modals and past forms
	irregular  map[string]string
	later      map[string]string // pronouns behind the first subject
	coordinate map[string]bool   // present verbs that may follow "and" without a subject
}

func newEnglishGrammar() englishGrammar {
	return englishGrammar{
		adverbs: newVocabulary(`really also usually always never often sometimes mostly mainly currently now just recently still absolutely
			definitely particularly especially generally rarely hardly actually finally already only normally typically both personally truly
			strongly regularly occasionally originally once first no longer`),
		unchanged: newVocabulary(`will would can can't cannot could should must might may had was wasn't won't wouldn't didn't did used
			bought sold quit met went left broke won became flew took gave began learnt built got ate ran saw made read wrote had grew came
			chose lost understood taught spoke drove rode swam sang slept spent paid kept led fell felt put cut hurt told said gotta`),
		irregular: map[string]string{
			"am": "is", "have": "has", "do": "does", "go": "goes", "don't": "doesn't", "haven't": "hasn't", "were": "was",
		},
		later: map[string]string{
			"i": "they", "i'm": "they're", "i've": "they've", "i'll": "they'll", "i'd": "they'd", "me": "them", "my": "their", "mine": "theirs",
			"myself": "themselves", "we": "they", "we're": "they're", "we've": "they've", "we'll": "they'll", "us": "them", "our": "their",
			"ours": "theirs", "ourselves": "themselves",
		},
		coordinate: newVocabulary(`like love hate prefer enjoy live work study speak have own use play drive eat drink run teach manage swim sing
			dance write cook watch avoid dislike need want go`),
	}
}

// third words a statement for its speaker. What begins with neither I nor my is kept if it names no first
// person, and quoted otherwise.
func (g englishGrammar) third(text string, who speaker) string {
	fields := strings.Fields(text)
	user := who.or("User")
	first := strings.ToLower(fields[0])
	rest := strings.Join(fields[1:], " ")
	switch first {
	case "i'm":
		return g.join(user, "is", rest)
	case "i've":
		return g.join(user, "has", rest)
	case "i'll":
		return g.join(user, "will", rest)
	case "i'd":
		return g.join(user, "would", rest)
	case "i":
		return g.subject(user, fields[1:])
	case "my":
		return possessive(user) + " " + g.others(rest)
	case "we", "we're", "we've", "we'll", "our", "let's":
		return user + " said: " + upperFirst(text)
	}
	if strings.HasPrefix(strings.ToLower(text), "call me ") || strings.HasPrefix(strings.ToLower(text), "you can call me ") {
		_, name, _ := strings.Cut(text, " me ")
		return user + " wants to be called " + name
	}
	if len(fields) > 3 && strings.EqualFold(fields[2], "my") { // "Anna is my sister"
		return strings.Join(fields[:2], " ") + " " + possessive(user) + " " + g.others(strings.Join(fields[3:], " "))
	}
	if hasWord(text, "i", "i'm", "i've", "i'll", "i'd", "me", "my", "we", "our", "us", "we're") {
		return user + " said: " + upperFirst(text)
	}
	return upperFirst(text)
}

func (g englishGrammar) join(user, verb, rest string) string {
	return user + " " + verb + " " + g.others(rest)
}

// subject conjugates the first verb behind "I" and its adverbs.
func (g englishGrammar) subject(user string, fields []string) string {
	at := 0
	for at < len(fields)-1 && g.adverbs[strings.ToLower(fields[at])] {
		at++
	}
	if at >= len(fields) {
		return user
	}
	head := append([]string{user}, fields[:at]...)
	present := !g.unchanged[strings.ToLower(fields[at])] && !strings.HasSuffix(strings.ToLower(fields[at]), "ed")
	head = append(head, g.conjugate(fields[at]))
	return strings.TrimSpace(strings.Join(head, " ") + " " + g.others(strings.Join(g.coordinated(fields[at+1:], present), " ")))
}

// coordinated conjugates a present verb that directly follows "and", "but" or "or" without a subject of its own.
func (g englishGrammar) coordinated(fields []string, present bool) []string {
	out := append([]string(nil), fields...)
	for i := 1; i < len(out) && present; i++ {
		switch word := strings.ToLower(out[i-1]); {
		case word == "to" || g.unchanged[word] || word == "i":
			present = false
		case (word == "and" || word == "but" || word == "or") && g.coordinate[strings.ToLower(out[i])]:
			out[i] = g.conjugate(out[i])
		}
	}
	return out
}

func (g englishGrammar) conjugate(verb string) string {
	lower := strings.ToLower(strings.TrimRight(verb, ",;:"))
	mark := verb[len(lower):]
	if third, ok := g.irregular[lower]; ok {
		return third + mark
	}
	switch {
	case g.unchanged[lower] || strings.HasSuffix(lower, "ed") && lower != "need":
		return verb
	case strings.HasSuffix(lower, "y") && len(lower) > 1 && !strings.ContainsRune("aeiou", rune(lower[len(lower)-2])):
		return lower[:len(lower)-1] + "ies" + mark
	case strings.HasSuffix(lower, "s"), strings.HasSuffix(lower, "x"), strings.HasSuffix(lower, "z"), strings.HasSuffix(lower, "ch"),
		strings.HasSuffix(lower, "sh"), strings.HasSuffix(lower, "o"):
		return lower + "es" + mark
	}
	return lower + "s" + mark
}

// others words everything behind the first subject. "I am" and "I was" become plural with their pronoun.
func (g englishGrammar) others(text string) string {
	fields := strings.Fields(text)
	for i := 1; i < len(fields); i++ {
		if strings.ToLower(fields[i-1]) != "i" {
			continue
		}
		switch strings.ToLower(fields[i]) {
		case "am":
			fields[i] = "are"
		case "was":
			fields[i] = "were"
		}
	}
	return replaceWords(strings.Join(fields, " "), g.later)
}

func possessive(name string) string {
	if strings.HasSuffix(name, "s") {
		return name + "'"
	}
	return name + "'s"
}
