package offline

import (
	"strings"
	"unicode"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// german reads German statements: "Ich" with a verb of the table, "Mein …", "Wir …", "Mir gefällt …", and main
// clauses with the verb before "ich".
type german struct {
	words       vocabulary
	fillers     []string
	remember    []string
	chatter     []string
	verbs       map[string]verb
	kinVerbs    vocabulary
	participles map[string]memory.FactType
	noEvents    vocabulary
	months      vocabulary
	moods       vocabulary
	reflexive   map[string]string
	possessive  map[string]string
}

func newGerman() *german {
	return &german{
		words: newVocabulary(`ich mein meine meinen meinem meiner mich mir wir uns unser unsere der die das den dem ein eine einen ist bin sind
			war habe hat haben und nicht kein keine mit von für auf im am zum zur auch aber gern gerne wohne arbeite mag heiße seit ab dass bitte danke`),
		fillers: []string{
			"hallo zusammen", "hallo", "hi", "hey", "guten morgen", "guten tag", "guten abend", "ach", "also", "und", "aber", "übrigens",
			"eigentlich", "ja", "nein", "ok", "okay", "danke dir", "vielen dank", "danke", "na ja", "naja", "außerdem", "ehrlich gesagt", "bitte",
			"übrigens noch", "noch etwas", "nur zur info", "zur info", "denn", "weißt du", "gut", "stimmt",
		},
		remember: []string{"merk dir", "merke dir", "merken sie sich", "denk daran", "denke daran", "vergiss nicht", "notiere dir", "notier dir", "notiere"},
		chatter: []string{
			"ich habe eine frage", "ich habe noch eine frage", "ich hab eine frage", "ich habe ein problem", "ich habe keine ahnung", "ich habe verstanden",
			"ich habe eine liste", "ich habe einen text", "ich habe einen satz", "ich habe eine tabelle", "ich habe eine datei", "ich habe eine funktion", "ich habe einen fehler",
			"ich habe hunger", "ich habe durst", "ich habe keine zeit", "ich habe es", "ich habe gerade", "ich bin müde", "ich bin da", "ich bin wieder", "ich bin fertig",
			"ich bin nicht sicher", "ich bin mir", "ich bin bereit", "ich bin gespannt", "ich bin froh", "ich bin auf der suche nach einem rezept", "ich möchte wissen",
			"ich möchte gerne wissen", "ich möchte gern wissen", "ich möchte dich", "ich möchte fragen", "ich möchte, dass", "ich möchte bitte", "ich möchte etwas",
			"ich will wissen", "ich will, dass", "ich will dich", "ich brauche hilfe", "ich brauche deine", "ich brauche eine antwort", "ich brauche ein beispiel",
			"ich mag es nicht", "ich mag deine", "ich liebe es", "ich muss los", "ich muss gehen", "ich muss sagen", "ich muss zugeben",
			"ich werde es", "ich würde gerne wissen", "ich würde gern wissen", "ich suche ein rezept", "meine frage", "mein problem", "mein code", "mein programm", "mein computer", "mein rechner", "mein skript", "mein handy", "meine datei",
			"mir gefällt deine", "mir gefällt es", "ich lese gerade deine", "ich gehe jetzt", "ich höre",
		},
		verbs: newVerbs(map[memory.FactType]string{
			memory.TypePreference: "mag, liebe liebt, hasse hasst, bevorzuge bevorzugt, genieße genießt, esse isst, trinke trinkt, vertrage verträgt, vermeide vermeidet, verabscheue verabscheut, interessiere interessiert, koche kocht, schaue schaut, lese liest, höre hört",
			memory.TypeIdentity:   "heiße heißt, bin ist, komme kommt, stamme stammt",
			memory.TypeFact: "wohne wohnt, lebe lebt, arbeite arbeitet, studiere studiert, spreche spricht, habe hat, hab hat, spiele spielt, fahre fährt, besitze besitzt, lerne lernt, unterrichte unterrichtet, " +
				"leite leitet, nutze nutzt, benutze benutzt, verwende verwendet, mache macht, gehe geht, jogge joggt, laufe läuft, schwimme schwimmt, sammle sammelt, tanze tanzt, singe singt, " +
				"male malt, schreibe schreibt, leide leidet, rauche raucht, trage trägt, pendle pendelt, reise reist, schlafe schläft, stehe steht, kenne kennt, kann, engagiere engagiert, züchte züchtet, baue baut, backe backt, nähe näht, stricke strickt, repariere repariert, pflege pflegt, trainiere trainiert, klettere klettert, wandere wandert, betreibe betreibt, führe führt, miete mietet, verdiene verdient, war, hatte, wohnte, arbeitete, lebte",
			memory.TypeGoal:  "will, möchte, plane plant, werde wird, hoffe hofft, beabsichtige beabsichtigt, würde",
			memory.TypeTodo:  "muss, soll, sollte, darf, brauche braucht",
			memory.TypeEvent: "ziehe zieht, heirate heiratet, fliege fliegt, besuche besucht, treffe trifft, bekomme bekommt, beginne beginnt, starte startet, feiere feiert, verreise verreist, kündigte, heiratete, zog, kaufte, begann, ging, fuhr, flog, traf, verlor, gewann, bekam, besuchte, wechsle wechselt",
		}),
		kinVerbs: newVocabulary(`ist sind heißt heißen wohnt wohnen lebt leben arbeitet arbeiten hat haben mag mögen liebt lieben wird werden war waren studiert
			studieren spielt spielen kommt kommen feiert zieht spricht fährt hasst kocht geht beginnt endet läuft verträgt vertragen isst essen trinkt trinken kann können darf dürfen muss müssen will wollen möchte braucht besucht lernt lernen heiratet fährt fahren leitet kauft schläft liegt baut hilft`),
		participles: map[string]memory.FactType{
			"beschlossen": memory.TypeDecision, "entschieden": memory.TypeDecision, "entschlossen": memory.TypeDecision, "geeinigt": memory.TypeDecision,
			"gezogen": memory.TypeEvent, "umgezogen": memory.TypeEvent, "gekauft": memory.TypeEvent, "verkauft": memory.TypeEvent, "geheiratet": memory.TypeEvent,
			"gekündigt": memory.TypeEvent, "angefangen": memory.TypeEvent, "begonnen": memory.TypeEvent, "gegründet": memory.TypeEvent, "bestanden": memory.TypeEvent,
			"gewonnen": memory.TypeEvent, "verloren": memory.TypeEvent, "adoptiert": memory.TypeEvent, "besucht": memory.TypeEvent, "kennengelernt": memory.TypeEvent,
			"gebucht": memory.TypeEvent, "abgeschlossen": memory.TypeEvent, "geflogen": memory.TypeEvent, "gefahren": memory.TypeEvent, "gereist": memory.TypeEvent,
			"gewechselt": memory.TypeEvent, "bekommen": memory.TypeEvent, "geworden": memory.TypeEvent, "getrennt": memory.TypeEvent, "gebrochen": memory.TypeEvent,
			"geboren": memory.TypeIdentity, "aufgewachsen": memory.TypeIdentity, "verheiratet": memory.TypeIdentity, "teilgenommen": memory.TypeEvent, "gestartet": memory.TypeEvent,
			"gewesen": memory.TypeEvent, "gegangen": memory.TypeEvent, "gewohnt": memory.TypeFact, "gearbeitet": memory.TypeFact, "studiert": memory.TypeFact, "gelebt": memory.TypeFact,
			"aufgehört": memory.TypeDecision,
		},
		noEvents: newVocabulary(`verstanden gesehen gelesen gefragt vergessen gehört versucht probiert gedacht gemeint gesagt gemerkt getestet`),
		months: newVocabulary(`januar februar märz april mai juni juli august september oktober november dezember montag dienstag mittwoch donnerstag freitag
			samstag sonntag morgen gestern übermorgen woche monat jahr wochenende uhr`),
		moods: newVocabulary(`müde verwirrt krank traurig wütend gelangweilt zurück gleich angst recht hunger durst schlafen schlauch fertig glücklich froh später details
			unsicher überrascht neugierig`),
		reflexive: map[string]string{"mich": "sich", "mir": "sich"},
		possessive: map[string]string{
			"mein": "sein", "meine": "seine", "meinen": "seinen", "meinem": "seinem", "meiner": "seiner", "meines": "seines",
		},
	}
}

func (g *german) likeness(text string) int { return g.words.likeness(text) }

func (g *german) read(text string, who speaker) (statement, bool) {
	text = dropLead(text, g.fillers)
	for _, phrase := range g.remember {
		if startsWith(text, phrase) {
			return g.asked(strings.TrimLeft(text[len(phrase):], " ,:"), who)
		}
	}
	if startsWith(text, g.chatter...) || fleeting(text, g.moods) || pointing(text) || hasWord(text, "du", "dich", "dir", "dein", "deine", "deinen", "deinem", "deiner", "ihnen") {
		return statement{}, false
	}
	return g.clause(text, who)
}

// pointing tells "Ich mag das": a pronoun for something said before, no article of a noun.
func pointing(text string) bool {
	fields := strings.Fields(text)
	for i := 2; i < min(len(fields), 4); i++ {
		if fields[i] == "das" && (i+1 == len(fields) || !unicode.IsUpper([]rune(fields[i+1])[0])) {
			return true
		}
	}
	return false
}

// asked reads what the speaker asked to remember. It is kept even if no rule knows its form.
func (g *german) asked(text string, who speaker) (statement, bool) {
	text = strings.TrimSpace(strings.TrimPrefix(text, "bitte"))
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return statement{}, false
	}
	if fields[0] == "dass" {
		text = mainClause(fields[1:])
	}
	if found, ok := g.clause(text, who); ok {
		return found, true
	}
	return statement{g.quoted(text, who), memory.TypeFact}, true
}

// mainClause puts the verb of "ich … mag" where a main clause has it.
func mainClause(fields []string) string {
	last := len(fields) - 1
	if last < 2 || !strings.EqualFold(fields[0], "ich") {
		return upperFirst(strings.Join(fields, " "))
	}
	return "Ich " + fields[last] + " " + strings.Join(fields[1:last], " ")
}

func (g *german) clause(text string, who speaker) (statement, bool) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return statement{}, false
	}
	first := strings.ToLower(fields[0])
	switch {
	case first == "ich":
		return g.first(fields, who)
	case first == "mir" && (fields[1] == "gefällt" || fields[1] == "gefallen" || fields[1] == "schmeckt" || fields[1] == "schmecken"):
		if hasWord(strings.Join(fields[1:], " "), "mein", "meine", "mich", "ich", "mir", "uns") {
			return statement{g.quoted(text, who), memory.TypePreference}, true
		}
		return statement{who.or("Dem Nutzer") + " " + strings.Join(fields[1:], " "), memory.TypePreference}, true
	case g.possessive[first] != "":
		return g.mine(text, fields, who)
	case first == "wir" || first == "unser" || first == "unsere":
		return g.ours(text, fields, who)
	}
	if found, ok := g.inverted(fields, who); ok {
		return found, true
	}
	if (first == "der" || first == "die" || first == "das") && g.has(fields[1:], g.months) && g.has(fields[1:], newVocabulary("ist findet beginnt startet endet war sind")) && !g.personal(text) {
		return statement{text, memory.TypeEvent}, true
	}
	return statement{}, false
}

// first reads "Ich" and a verb.
func (g *german) first(fields []string, who speaker) (statement, bool) {
	v, ok := g.verbs[strings.ToLower(fields[1])]
	if !ok {
		return statement{}, false
	}
	label, ok := g.label(strings.ToLower(fields[1]), v, fields[2:])
	if !ok {
		return statement{}, false
	}
	rest, ok := g.rest(strings.Join(fields[2:], " "), who)
	if !ok {
		return statement{g.quoted(strings.Join(fields, " "), who), label}, true
	}
	return statement{who.or("Nutzer") + " " + v.third + " " + rest, label}, true
}

// inverted reads "Seit 2019 wohne ich …": an adverbial, a verb of the table, and the subject behind it.
func (g *german) inverted(fields []string, who speaker) (statement, bool) {
	switch strings.ToLower(fields[0]) {
	case "was", "wie", "wo", "warum", "wann", "wer", "welche", "welches", "welcher", "kann", "soll", "muss", "darf", "das", "dann", "wenn", "weil", "da":
		return statement{}, false
	}
	for i := 2; i < min(len(fields), 8); i++ { // an adverbial has few words
		if fields[i] != "ich" {
			continue
		}
		v, ok := g.verbs[strings.ToLower(fields[i-1])]
		if !ok {
			return statement{}, false
		}
		label, ok := g.label(strings.ToLower(fields[i-1]), v, fields[i+1:])
		if !ok {
			return statement{}, false
		}
		rest, ok := g.rest(strings.Join(fields[i+1:], " "), who)
		before := strings.Join(fields[:i-1], " ")
		if !ok || g.personal(before) {
			return statement{g.quoted(strings.Join(fields, " "), who), label}, true
		}
		return statement{strings.TrimSpace(before + " " + v.third + " " + who.or("der Nutzer") + " " + rest), label}, true
	}
	return statement{}, false
}

// label decides by the participle of a perfect tense, else by the verb.
func (g *german) label(first string, v verb, rest []string) (memory.FactType, bool) {
	for _, field := range rest {
		word := strings.ToLower(strings.Trim(field, ".,;:"))
		if label, ok := g.participles[word]; ok {
			return label, true
		}
		if g.noEvents[word] {
			return "", false
		}
	}
	switch {
	case first == "bin" && g.has(rest, newVocabulary("allergisch diabetiker diabetikerin schwanger")): //nolint:misspell // German
		return memory.TypeFact, true
	case first == "bin" && g.has(rest, newVocabulary("vegetarier vegetarierin veganer veganerin vegetarisch vegan fan")):
		return memory.TypePreference, true
	case first == "habe" && g.has(rest, newVocabulary("vor")), first == "habe" && g.has(rest, newVocabulary("geplant")):
		return memory.TypeGoal, true
	case first == "kann" && g.has(rest, newVocabulary("ausstehen leiden")):
		return memory.TypePreference, true
	case (first == "werde" || first == "würde") && !g.has(rest, g.months) && first == "werde":
		return "", false
	}
	return v.label, true
}

// mine reads "Mein Name ist …" and what the speaker says of people and things of his.
func (g *german) mine(text string, fields []string, who speaker) (statement, bool) {
	if !g.has(fields[1:min(len(fields), 7)], g.kinVerbs) {
		return statement{}, false
	}
	noun := strings.ToLower(fields[1])
	switch {
	case (noun == "name" || noun == "vorname") && fields[2] == "ist" && len(fields) > 3:
		return statement{who.or("Nutzer") + " heißt " + strings.Join(fields[3:], " "), memory.TypeIdentity}, true
	case strings.HasPrefix(noun, "lieblings"):
		return statement{g.quoted(text, who), memory.TypePreference}, true
	case noun == "beruf" || noun == "geburtstag" || noun == "alter":
		return statement{g.quoted(text, who), memory.TypeIdentity}, true
	case noun == "ziel" || noun == "traum" || noun == "plan":
		return statement{g.quoted(text, who), memory.TypeGoal}, true
	}
	return statement{g.quoted(text, who), memory.TypeFact}, true
}

// ours reads what the speaker says of a group. It is quoted: nobody knows who belongs to it.
func (g *german) ours(text string, fields []string, who speaker) (statement, bool) {
	for _, field := range fields {
		if label, ok := g.participles[strings.ToLower(strings.Trim(field, ".,;:"))]; ok {
			return statement{g.quoted(text, who), label}, true
		}
	}
	if !g.has(fields[1:min(len(fields), 6)], newVocabulary(`ziehen heiraten fliegen fahren planen nutzen verwenden benutzen wohnen leben haben arbeiten erwarten
		bekommen werden treffen feiern ist sind wohnt arbeitet hat nutzt verwendet`)) {
		return statement{}, false
	}
	return statement{g.quoted(text, who), memory.TypeFact}, true
}

// rest words what follows the verb: pronouns of the first clause refer back to its subject. It answers false if
// a first person is left that cannot be worded.
func (g *german) rest(text string, who speaker) (string, bool) {
	head, tail, cut := strings.Cut(text, ",")
	head = g.coordinated(replaceWords(head, g.reflexive))
	if cut {
		head += "," + tail
	}
	if who.name == "" { // "sein" agrees with "der Nutzer"; a name says nothing of a gender
		head = replaceWords(head, g.possessive)
	}
	return head, !g.personal(head)
}

// coordinated conjugates a verb that follows "und" without a subject of its own.
func (g *german) coordinated(text string) string {
	fields := strings.Split(text, " ")
	for i := 1; i < len(fields); i++ {
		if v, ok := g.verbs[fields[i]]; ok && (fields[i-1] == "und" || fields[i-1] == "oder" || fields[i-1] == "aber") {
			fields[i] = v.third
		}
	}
	return strings.Join(fields, " ")
}

func (g *german) personal(text string) bool {
	return hasWord(text, "ich", "mich", "mir", "mein", "meine", "meinen", "meinem", "meiner", "meines", "wir", "uns", "unser", "unsere", "unseren", "unserem", "unserer")
}

func (g *german) quoted(text string, who speaker) string {
	if !g.personal(text) {
		return upperFirst(text)
	}
	return who.or("Nutzer") + " sagt: " + upperFirst(text)
}

func (g *german) has(fields []string, words vocabulary) bool {
	for _, field := range fields {
		if words[strings.ToLower(strings.Trim(field, ".,;:!"))] {
			return true
		}
	}
	return false
}
