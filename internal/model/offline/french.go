package offline

import (
	"regexp"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// french reads French statements: "je" with a verb of the table, "mon …", and what a group has decided.
type french struct {
	words        vocabulary
	fillers      []string
	remember     []string
	chatter      []string
	verbs        map[string]verb
	participles  map[string]memory.FactType
	noEvents     vocabulary
	kinVerbs     vocabulary
	when         vocabulary
	moods        vocabulary
	subject      *regexp.Regexp
	pronominal   *regexp.Regexp
	possessive   map[string]string
	timeSubjects *regexp.Regexp
}

func newFrench() *french {
	return &french{
		words: newVocabulary(`je j' j'ai j'aime j'habite me m' mon ma mes moi suis le les des une un et est nous notre nos dans avec pour pas ne n' très mais
			du au aux que qui chez depuis demain hier bonjour merci l' d' on ans c'est travaille préfère déteste adore souviens-toi`),
		fillers: []string{
			"bonjour", "bonsoir", "salut", "coucou", "alors", "et", "mais", "aussi", "au fait", "en fait", "d'ailleurs", "oui", "non", "ok", "d'accord",
			"merci", "merci beaucoup", "bon", "eh bien", "ah", "bref", "pour info", "s'il te plaît", "s'il vous plaît", "moi", "voilà", "car", "donc", "puis",
		},
		remember: []string{
			"souviens-toi que", "souvenez-vous que", "rappelle-toi que", "rappelez-vous que", "retiens que", "retenez que", "note que", "notez que",
			"n'oublie pas que", "n'oubliez pas que", "sache que",
		},
		chatter: []string{
			"j'ai une question", "j'ai une autre question", "j'ai un problème", "j'ai une phrase", "j'ai un texte", "j'ai une liste", "j'ai un tableau", "j'ai un fichier", "j'ai une erreur", "j'ai une fonction",
			"j'ai besoin d'aide", "j'ai besoin de ton", "j'ai besoin que", "j'ai compris", "j'ai faim", "j'ai soif", "j'ai froid", "j'ai chaud",
			"j'ai hâte", "j'ai raison", "j'ai peur", "je suis désolé", "je suis à la maison", "je prends note", "j'ai fini,", "je suis désolée", "je suis content", "je suis contente", "je suis prêt", "je suis prête", "je suis là", "je suis d'accord",
			"je suis perdu", "je suis fatigué", "je suis fatiguée", "je suis curieux", "je suis sûr", "je suis en train", "je vais bien", "je vais très bien", "je vais essayer", "je vais voir", "je vais y",
			"je veux savoir", "je veux que", "je voudrais savoir", "je voudrais que", "je voudrais te", "je voudrais vous", "j'aimerais savoir", "j'aimerais que", "j'aime ça", "j'aime bien ça", "j'aime ta",
			"j'aime votre", "j'adore ça", "j'adore ta", "j'espère que", "je dois y aller", "je dois partir", "je dois dire", "ma question", "mon problème", "je cherche une recette", "je prends ça", "je lis ta", "j'ai le temps", "je n'ai pas le temps", "je n'ai aucune idée",
		},
		verbs: newVerbs(map[memory.FactType]string{
			memory.TypePreference: "aime, adore, déteste, préfère, hais hait, apprécie, bois boit, mange, supporte, évite, raffole, écoute, regarde",
			memory.TypeIdentity:   "appelle, suis est, viens vient, surnomme",
			memory.TypeFact: "habite, vis vit, travaille, étudie, parle, ai a, joue, fais fait, utilise, enseigne, apprends apprend, possède, conduis conduit, cours court, nage, lis lit, souffre, " +
				"dirige, cuisine, écris écrit, pratique, collectionne, voyage, fume, chante, danse, dors dort, gère, loue, prends prend, habitais habitait, travaillais travaillait, étais était, avais avait, intéresse, occupe, porte, entraîne, répare, conçois conçoit, construis construit, soigne, peins peint, couds coud, élève",
			memory.TypeGoal:  "veux veut, voudrais voudrait, aimerais aimerait, vais va, compte, prévois prévoit, espère, envisage, souhaite, rêve, projette",
			memory.TypeTodo:  "dois doit",
			memory.TypeEvent: "déménage, marie, pars part, visite, commence, fête",
		}),
		participles: map[string]memory.FactType{
			"décidé": memory.TypeDecision, "choisi": memory.TypeDecision, "opté": memory.TypeDecision, "né": memory.TypeIdentity, "née": memory.TypeIdentity, "grandi": memory.TypeIdentity,
			"acheté": memory.TypeEvent, "déménagé": memory.TypeEvent, "commencé": memory.TypeEvent, "quitté": memory.TypeEvent, "vendu": memory.TypeEvent, "rencontré": memory.TypeEvent,
			"adopté": memory.TypeEvent, "visité": memory.TypeEvent, "gagné": memory.TypeEvent, "perdu": memory.TypeEvent, "fini": memory.TypeEvent, "terminé": memory.TypeEvent, "obtenu": memory.TypeEvent,
			"réservé": memory.TypeEvent, "démissionné": memory.TypeEvent, "voyagé": memory.TypeEvent, "eu": memory.TypeEvent, "allé": memory.TypeEvent, "allée": memory.TypeEvent, "parti": memory.TypeEvent,
			"partie": memory.TypeEvent, "devenu": memory.TypeEvent, "devenue": memory.TypeEvent, "marié": memory.TypeEvent, "mariée": memory.TypeEvent, "installé": memory.TypeEvent, "installée": memory.TypeEvent,
			"fiancé": memory.TypeEvent, "fiancée": memory.TypeEvent, "inscrit": memory.TypeEvent, "inscrite": memory.TypeEvent, "cassé": memory.TypeEvent, "divorcé": memory.TypeEvent, "divorcée": memory.TypeEvent,
			"participé": memory.TypeEvent, "fondé": memory.TypeEvent, "changé": memory.TypeEvent, "arrêté": memory.TypeEvent, "travaillé": memory.TypeFact, "vécu": memory.TypeFact,
		},
		noEvents: newVocabulary("compris vu lu essayé oublié dit entendu pensé demandé testé trouvé remarqué"),
		kinVerbs: newVocabulary("est sont s' s'appelle habite habitent travaille travaillent a ont vit vivent étudie aime adore déteste joue était"),
		when:     newVocabulary("lundi mardi mercredi jeudi vendredi samedi dimanche demain hier janvier février mars avril mai juin juillet août septembre octobre novembre décembre semaine"),
		moods: newVocabulary(`peur sommeil confus confuse fatigué fatiguée dormir faim soif froid chaud ça cela triste content contente heureux heureuse malade prêt
			prête sûr sûre perdu perdue`),
		subject:      regexp.MustCompile(`(?i)^(?:je |j')(ne |n')?(me |m')?(\p{L}+)(?: (.*))?$`),
		pronominal:   regexp.MustCompile(`\b(?:me |m')(\p{L}+(?:er|ir|re)(?:\s|$|,))`),
		timeSubjects: regexp.MustCompile(`(?i)^((?:demain|hier|aujourd'hui|depuis|en|l'année|la semaine|le mois|le week-end|cet|cette|ce|chaque|tous les|toutes les|actuellement|maintenant|normalement|souvent|parfois|avant)(?: [\p{L}\d'-]+){0,4}),? (je |j')`),
		possessive:   map[string]string{"mon": "son", "ma": "sa", "mes": "ses", "mien": "sien", "mienne": "sienne"},
	}
}

func (f *french) likeness(text string) int { return f.words.likeness(text) }

func (f *french) read(text string, who speaker) (statement, bool) {
	text = dropLead(text, f.fillers)
	for _, phrase := range f.remember {
		if startsWith(text, phrase) && len(strings.Fields(text)) > 4 {
			text = strings.TrimLeft(text[len(phrase):], " ,:")
			if found, ok := f.clause(text, who); ok {
				return found, true
			}
			return statement{f.quoted(text, who), memory.TypeFact}, true
		}
	}
	if startsWith(text, f.chatter...) || fleeting(text, f.moods) || hasWord(text, "tu", "te", "toi", "ton", "ta", "tes", "vous", "votre", "vos", "t'") {
		return statement{}, false
	}
	return f.clause(text, who)
}

func (f *french) clause(text string, who speaker) (statement, bool) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return statement{}, false
	}
	if f.subject.MatchString(text) {
		return f.predicate(text, "", who)
	}
	if m := f.timeSubjects.FindStringSubmatchIndex(text); m != nil {
		return f.predicate(text[m[4]:], text[m[2]:m[3]], who)
	}
	lower := strings.ToLower(text)
	switch {
	case startsWith(text, "mon nom est", "mon prénom est") && len(fields) > 3:
		return statement{who.or("L'utilisateur") + " s'appelle " + strings.Join(fields[3:], " "), memory.TypeIdentity}, true
	case startsWith(text, "mon", "ma", "mes"):
		return f.mine(text, fields, who)
	case startsWith(text, "nous avons", "nous allons", "nous sommes", "nous habitons", "nous utilisons", "on a", "on va", "on est", "notre", "nos"):
		return f.ours(text, lower, who)
	case startsWith(text, "le", "la", "l'", "les") && f.when.likeness(text) > 0 && hasWord(text, "est", "commence", "finit", "sera", "aura", "débute") && !f.personal(text):
		return statement{text, memory.TypeEvent}, true
	}
	return statement{}, false
}

// predicate reads je [ne] [me] verb ….
func (f *french) predicate(text, before string, who speaker) (statement, bool) {
	m := f.subject.FindStringSubmatch(text)
	if m == nil || m[4] == "" {
		return statement{}, false
	}
	negation, pronoun, word, rest := strings.ToLower(m[1]), strings.ToLower(m[2]), strings.ToLower(m[3]), m[4]
	v, ok := f.verbs[word]
	if !ok || word == "supporte" && negation == "" || word == "appelle" && pronoun == "" {
		return statement{}, false
	}
	label, ok := f.label(word, pronoun, rest, v)
	if !ok {
		return statement{}, false
	}
	worded := replaceWords(f.reflexive(rest), f.possessive)
	if f.personal(worded) || f.personal(before) {
		return statement{f.quoted(strings.TrimSpace(before+" "+text), who), label}, true
	}
	subject := who.or("L'utilisateur")
	if before != "" {
		subject = before + ", " + who.or("l'utilisateur")
	}
	return statement{subject + " " + f.elide(negation, pronoun, v.third) + " " + worded, label}, true
}

// elide joins ne, se and the verb: before a vowel ne is n' and se is s'.
func (f *french) elide(negation, pronoun, verb string) string {
	vowel := strings.ContainsRune("aeiouhéèêàâîôœ", []rune(verb)[0])
	out := verb
	if pronoun != "" {
		out = map[bool]string{true: "s'", false: "se "}[vowel] + verb
		vowel = false
	}
	if negation != "" {
		out = map[bool]string{true: "n'", false: "ne "}[vowel] + out
	}
	return out
}

// reflexive turns "me marier" and "m'installer" into the third person.
func (f *french) reflexive(text string) string {
	return f.pronominal.ReplaceAllStringFunc(text, func(found string) string {
		return "s" + found[1:]
	})
}

// label decides by the participle of a compound tense, else by the verb.
func (f *french) label(word, pronoun, rest string, v verb) (memory.FactType, bool) {
	words := lowerWords(rest)
	if word == "ai" || word == "suis" {
		for i, w := range words {
			if i > 3 { // a participle stands near its auxiliary
				break
			}
			if f.noEvents[w] && word == "ai" {
				return "", false
			}
			if label, ok := f.participles[w]; ok && (word == "ai" || pronoun != "" || strings.HasPrefix(w, "n") || strings.HasPrefix(w, "all") || strings.HasPrefix(w, "part") || strings.HasPrefix(w, "deven")) {
				return label, true
			}
		}
	}
	switch {
	case word == "ai" && hasWord(rest, "ans") && len(words) <= 4:
		return memory.TypeIdentity, true
	case word == "ai" && startsWith(rest, "besoin de", "besoin d'"):
		return memory.TypeTodo, true
	case word == "suis" && hasWord(rest, "allergique", "diabétique", "intolérant", "intolérante", "enceinte"):
		return memory.TypeFact, true
	case word == "suis" && hasWord(rest, "végétarien", "végétarienne", "végane", "vegan", "fan"):
		return memory.TypePreference, true
	}
	return v.label, true
}

// mine reads what the speaker says of people and things of his. It is quoted: "son" could be anybody's.
func (f *french) mine(text string, fields []string, who speaker) (statement, bool) {
	if f.kinVerbs.likeness(strings.Join(fields[1:min(len(fields), 7)], " ")) == 0 {
		return statement{}, false
	}
	label := memory.TypeFact
	switch {
	case hasWord(text, "préféré", "préférée", "préférés", "préférées", "favori", "favorite"):
		label = memory.TypePreference
	case startsWith(text, "mon objectif", "mon but", "mon rêve", "mon projet"):
		label = memory.TypeGoal
	case startsWith(text, "mon anniversaire", "mon métier", "ma profession", "mon âge"):
		label = memory.TypeIdentity
	}
	return statement{f.quoted(text, who), label}, true
}

func (f *french) ours(text, lower string, who speaker) (statement, bool) {
	label := memory.TypeFact
	switch {
	case strings.Contains(lower, "décidé") || strings.Contains(lower, "choisi"):
		label = memory.TypeDecision
	case strings.HasPrefix(lower, "on va voir") || strings.HasPrefix(lower, "on est d'accord") || strings.HasPrefix(lower, "nous sommes d'accord"):
		return statement{}, false
	case strings.HasPrefix(lower, "nous allons") || strings.HasPrefix(lower, "on va"):
		label = memory.TypeGoal
	}
	return statement{f.quoted(text, who), label}, true
}

func (f *french) personal(text string) bool {
	return hasWord(text, "je", "j'", "me", "m'", "moi", "mon", "ma", "mes", "nous", "notre", "nos", "on")
}

func (f *french) quoted(text string, who speaker) string {
	if !f.personal(text) {
		return upperFirst(text)
	}
	return who.or("L'utilisateur") + " dit : " + upperFirst(text)
}
