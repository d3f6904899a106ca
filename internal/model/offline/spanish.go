package offline

import (
	"regexp"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// spanish reads Spanish statements. The subject stands in the verb, so the table of first persons finds them:
// with "me" or "no" before the verb, after an expression of time, or after "yo".
type spanish struct {
	words      vocabulary
	fillers    []string
	remember   []string
	chatter    []string
	times      []string
	verbs      map[string]verb
	liking     vocabulary
	kinVerbs   vocabulary
	when       vocabulary
	moods      vocabulary
	infinitive *regexp.Regexp
	possessive map[string]string
	// nouns are words that are verbs too; before one of the prepositions they are.
	nouns, prepositions vocabulary
}

func newSpanish() *spanish {
	return &spanish{
		words: newVocabulary(`yo me mi mis soy estoy tengo vivo trabajo el la los las una un y en es que con para por de del no muy pero mañana hoy
			ayer gusta encanta odio prefiero quiero nos hemos fue desde hola gracias recuerda llamo estudio hablo voy años nuestra nuestro he fui`),
		fillers: []string{
			"hola", "buenos días", "buenas tardes", "buenas", "bueno", "pues", "y", "pero", "además", "también", "por cierto", "en realidad", "sí", "no,",
			"ok", "vale", "gracias", "muchas gracias", "la verdad", "ah", "oye", "mira", "por favor", "de hecho", "otra cosa", "claro", "entonces", "porque", "yo",
		},
		remember: []string{"recuerda que", "recuerde que", "acuérdate de que", "ten en cuenta que", "no olvides que", "anota que", "apunta que", "recuerda:", "anota:"},
		chatter: []string{
			"tengo una pregunta", "tengo una duda", "tengo otra pregunta", "tengo un problema", "tengo un texto", "tengo una lista", "tengo una tabla", "tengo un archivo", "tengo un error", "tengo una frase", "tengo una función",
			"tengo hambre", "tengo sueño", "tengo prisa", "tengo razón", "estoy bien", "estoy en casa",
			"estoy muy bien", "estoy cansado", "estoy cansada", "estoy listo", "estoy lista", "estoy seguro", "estoy de acuerdo", "estoy aquí", "quiero saber", "quiero que",
			"quiero preguntar", "quiero entender", "me gustaría saber", "me gustaría que", "me gustaría preguntar", "necesito ayuda", "necesito que", "necesito saber",
			"necesito tu", "necesito un ejemplo", "espero que", "me gusta tu", "me gusta eso", "me gusta esa", "me gusta esta respuesta", "me encanta tu", "me encanta eso", "tengo que irme", "tengo que decir",
			"voy a intentar", "voy a ver", "voy a probar", "uso esto", "mi pregunta", "mi problema", "mi duda", "no tengo ni idea", "no tengo idea", "no tengo tiempo", "busco una receta",
		},
		times: []string{
			"mañana", "hoy", "ayer", "ahora", "actualmente", "normalmente", "siempre", "nunca", "a veces", "antes", "desde", "el próximo", "la próxima", "el año", "el mes", "el lunes",
			"el martes", "el miércoles", "el jueves", "el viernes", "el sábado", "el domingo", "la semana", "en", "este", "esta", "cada", "todos los", "todas las", "los", "hace", "de niño", "de niña",
		},
		verbs: newVerbs(map[memory.FactType]string{
			memory.TypePreference: "prefiero prefiere, odio odia, amo ama, adoro adora, detesto detesta, disfruto disfruta, bebo bebe, tomo toma, como come, evito evita",
			memory.TypeIdentity:   "soy es, llamo llama, nací nació, crecí creció, provengo proviene, vengo viene",
			memory.TypeFact: "vivo vive, trabajo trabaja, estudio estudia, hablo habla, tengo tiene, uso usa, utilizo utiliza, juego juega, toco toca, conduzco conduce, enseño enseña, " +
				"corro corre, nado nada, leo lee, escribo escribe, cocino cocina, practico practica, llevo lleva, sufro sufre, padezco padece, estoy está, colecciono colecciona, viajo viaja, " +
				"dirijo dirige, dedico dedica, fumo fuma, monto monta, hago hace, vivía vivía, trabajaba trabajaba, aprendo aprende, doy da, duermo duerme",
			memory.TypeEvent: "mudé mudó, casé casó, gradué graduó, compré compró, vendí vendió, empecé empezó, comencé comenzó, dejé dejó, fui fue, viajé viajó, visité visitó, conocí conoció, " +
				"adopté adoptó, perdí perdió, gané ganó, terminé terminó, aprobé aprobó, renuncié renunció, reservé reservó, cumplí cumplió, tuve tuvo, jubilé jubiló, divorcié divorció, rompí rompió, " +
				"he ha, caso casa, mudo muda, vuelo vuela, cambié cambió, fundé fundó, participé participó, obtuve obtuvo, aprendí aprendió",
			memory.TypeDecision: "decidí decidió, elegí eligió",
			memory.TypeGoal:     "quiero quiere, planeo planea, espero espera, voy va, pienso piensa, deseo desea, quisiera quisiera, pretendo pretende, sueño sueña",
			memory.TypeTodo:     "debo debe, necesito necesita",
		}),
		liking:   newVocabulary("gusta gustan encanta encantan fascina fascinan interesa interesan gustaría apasiona apasionan molesta molestan duele duelen"),
		kinVerbs: newVocabulary("es son vive viven trabaja trabajan tiene tienen se está están estudia estudian nació cumple murió era eran fue"),
		when:     newVocabulary("lunes martes miércoles jueves viernes sábado domingo mañana ayer enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre semana"),
		moods: newVocabulary(`miedo confundido confundida cansado cansada dormir pensar hambre sed frío calor clic ejemplos triste contento contenta feliz enfermo enferma aburrido
			aburrida seguro segura listo lista eso esto`),
		infinitive: regexp.MustCompile(`([aei]r|[aeiáéí]ndo)me\b`),
		nouns:      newVocabulary("trabajo uso estudio juego viajo toco como fumo sueño monto caso"), prepositions: newVocabulary("en como para con desde por"),
		possessive: map[string]string{"mi": "su", "mis": "sus", "mío": "suyo", "mía": "suya"},
	}
}

func (s *spanish) likeness(text string) int { return s.words.likeness(text) }

func (s *spanish) read(text string, who speaker) (statement, bool) {
	text = dropLead(text, s.fillers)
	for _, phrase := range s.remember {
		if startsWith(text, phrase) && len(strings.Fields(text)) > 4 {
			text = dropLead(strings.TrimLeft(text[len(phrase):], " ,:"), s.fillers)
			if found, ok := s.clause(text, who); ok {
				return found, true
			}
			return statement{s.quoted(text, who), memory.TypeFact}, true
		}
	}
	if startsWith(text, s.chatter...) || fleeting(text, s.moods) || hasWord(text, "tu", "tus", "tú", "te", "ti", "usted", "contigo") {
		return statement{}, false
	}
	return s.clause(text, who)
}

func (s *spanish) clause(text string, who speaker) (statement, bool) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return statement{}, false
	}
	lower := strings.ToLower(text)
	switch first := strings.ToLower(fields[0]); {
	case startsWith(text, "mi nombre es") && len(fields) > 3:
		return statement{who.or("El usuario") + " se llama " + strings.Join(fields[3:], " "), memory.TypeIdentity}, true
	case first == "mi" || first == "mis":
		return s.mine(text, fields, who)
	case strings.HasPrefix(lower, "nuestr") || first == "nosotros" || startsWith(text, "decidimos", "hemos decidido", "vamos a", "vivimos", "nos mudamos", "nos casamos", "elegimos", "tenemos"):
		return s.ours(text, lower, who)
	}
	if found, ok := s.oursLater(text, lower, fields, who); ok {
		return found, true
	}
	at := s.skipTime(fields)
	before := strings.Join(fields[:at], " ")
	st, ok := s.predicate(fields[at:], before, who)
	if ok {
		return st, true
	}
	if startsWith(text, "el", "la", "los", "las") && s.has(fields, s.when) && s.has(fields, newVocabulary("es empieza comienza termina será fue")) && !s.personal(text) {
		return statement{text, memory.TypeEvent}, true
	}
	return statement{}, false
}

// oursLater reads what a group did behind an expression of time or place: "En el equipo hemos decidido …".
func (s *spanish) oursLater(text, lower string, fields []string, who speaker) (statement, bool) {
	if !startsWith(text, "en", "tras", "después de", "desde", "al", "el", "la", "hoy", "ayer", "este", "esta", "para") {
		return statement{}, false
	}
	if !hasWord(strings.Join(fields[:min(len(fields), 8)], " "), "hemos", "decidimos", "vamos", "vivimos", "elegimos", "mudamos", "casamos") {
		return statement{}, false
	}
	if strings.Contains(lower, "vamos a ver") || strings.Contains(lower, "vamos a empezar") {
		return statement{}, false
	}
	found, ok := s.ours(text, lower, who)
	found.text = who.or("El usuario") + " dice: " + upperFirst(text)
	return found, ok
}

// skipTime returns where the verb may stand: at the beginning, or behind an expression of time.
func (s *spanish) skipTime(fields []string) int {
	if !startsWith(strings.Join(fields, " "), s.times...) {
		return 0
	}
	for i := 1; i < min(len(fields)-1, 6); i++ { // an expression of time has few words
		word := strings.ToLower(fields[i])
		if _, ok := s.verbs[word]; ok || word == "me" || word == "no" {
			return i
		}
	}
	return 0
}

// predicate reads [no] [me] verb ….
func (s *spanish) predicate(fields []string, before string, who speaker) (statement, bool) {
	negation, reflexive := "", ""
	for len(fields) > 1 {
		word := strings.ToLower(fields[0])
		if word == "ya" && negation == "" && strings.EqualFold(fields[1], "no") {
			negation, fields = "ya no ", fields[1:]
		} else if (word == "no" || word == "nunca" || word == "siempre" || word == "también") && negation == "" {
			negation = word + " "
		} else if word == "me" {
			reflexive = "se "
		} else {
			break
		}
		fields = fields[1:]
	}
	if len(fields) < 2 {
		return statement{}, false
	}
	word := strings.ToLower(fields[0])
	rest := strings.Join(fields[1:], " ")
	if reflexive != "" && s.liking[word] {
		return s.likes(negation, word, rest, before, who)
	}
	v, ok := s.verbs[word]
	if !ok || word == "como" && negation == "" || word == "llamo" && reflexive == "" {
		return statement{}, false
	}
	label, ok := s.label(word, rest, v)
	if !ok {
		return statement{}, false
	}
	worded := s.others(rest)
	if s.personal(worded) || s.personal(before) {
		return statement{s.quoted(strings.TrimSpace(before+" "+negation+strings.Replace(reflexive, "se", "me", 1)+word+" "+rest), who), label}, true
	}
	subject := who.or("El usuario")
	if before != "" {
		subject = before + " " + who.or("el usuario")
	}
	return statement{subject + " " + negation + reflexive + v.third + " " + worded, label}, true
}

func (s *spanish) likes(negation, verb, rest, before string, who speaker) (statement, bool) {
	label := memory.TypePreference
	if verb == "gustaría" {
		label = memory.TypeGoal
	}
	if verb == "duele" || verb == "duelen" {
		label = memory.TypeFact
	}
	worded := s.others(rest)
	subject := "Al usuario"
	if who.name != "" {
		subject = "A " + who.name
	}
	if before != "" {
		subject = before + " " + strings.ToLower(subject[:1]) + subject[1:]
	}
	if s.personal(worded) {
		return statement{s.quoted(negation+"me "+verb+" "+rest, who), label}, true
	}
	return statement{subject + " " + negation + "le " + verb + " " + worded, label}, true
}

func (s *spanish) label(word, rest string, v verb) (memory.FactType, bool) {
	switch {
	case word == "he" && hasWord(rest, "decidido", "elegido"):
		return memory.TypeDecision, true
	case word == "he" && hasWord(rest, "entendido", "visto", "leído", "intentado", "probado", "olvidado", "dicho"):
		return "", false
	case word == "tengo" && hasWord(rest, "años"):
		return memory.TypeIdentity, true
	case word == "tengo" && startsWith(rest, "que"):
		return memory.TypeTodo, true
	case word == "voy" && !startsWith(rest, "a"):
		return memory.TypeFact, true
	case word == "soy" && hasWord(rest, "alérgico", "alérgica", "celíaco", "celíaca", "diabético", "diabética", "intolerante"): //nolint:misspell // Spanish
		return memory.TypeFact, true
	case word == "soy" && hasWord(rest, "vegetariano", "vegetariana", "vegano", "vegana", "fan", "aficionado", "aficionada"):
		return memory.TypePreference, true
	case word == "estoy" && hasWord(rest, "planeando", "pensando", "preparando"):
		return memory.TypeGoal, true
	case word == "necesito" && !s.infinitives(rest):
		return "", false
	}
	return v.label, true
}

func (s *spanish) infinitives(rest string) bool {
	first := strings.ToLower(firstWord(rest))
	return strings.HasSuffix(first, "ar") || strings.HasSuffix(first, "er") || strings.HasSuffix(first, "ir") || strings.HasSuffix(first, "rme")
}

// mine reads what the speaker says of people and things of his. It is quoted: "su" could be anybody's.
func (s *spanish) mine(text string, fields []string, who speaker) (statement, bool) {
	if !s.has(fields[1:min(len(fields), 7)], s.kinVerbs) {
		return statement{}, false
	}
	label := memory.TypeFact
	switch {
	case hasWord(text, "favorito", "favorita", "favoritos", "favoritas", "preferido", "preferida"):
		label = memory.TypePreference
	case startsWith(text, "mi objetivo", "mi meta", "mi sueño", "mi plan"):
		label = memory.TypeGoal
	case startsWith(text, "mi cumpleaños", "mi profesión", "mi apellido", "mi edad"):
		label = memory.TypeIdentity
	}
	return statement{s.quoted(text, who), label}, true
}

func (s *spanish) ours(text, lower string, who speaker) (statement, bool) {
	label := memory.TypeFact
	switch {
	case strings.Contains(lower, "decid") || strings.Contains(lower, "elegi"):
		label = memory.TypeDecision
	case strings.HasPrefix(lower, "vamos a ver") || strings.HasPrefix(lower, "vamos a empezar") || strings.HasPrefix(lower, "tenemos que hablar"):
		return statement{}, false
	case strings.HasPrefix(lower, "vamos a"):
		label = memory.TypeGoal
	}
	return statement{s.quoted(text, who), label}, true
}

// others words what follows the verb.
func (s *spanish) others(text string) string {
	fields := strings.Split(text, " ")
	for i := 1; i+1 < len(fields); i++ { // a verb that follows "y" without a subject of its own
		v, ok := s.verbs[fields[i]]
		if ok && (fields[i-1] == "y" || fields[i-1] == "pero") && (!s.nouns[fields[i]] || s.prepositions[fields[i+1]]) {
			fields[i] = v.third
		}
	}
	return replaceWords(s.infinitive.ReplaceAllString(strings.Join(fields, " "), "${1}se"), s.possessive)
}

func (s *spanish) personal(text string) bool {
	return hasWord(text, "yo", "me", "mí", "mi", "mis", "conmigo", "nos", "nosotros", "nosotras", "nuestro", "nuestra", "nuestros", "nuestras", "soy", "tengo")
}

func (s *spanish) quoted(text string, who speaker) string {
	if s.personal(text) || startsWith(text, "decidimos", "hemos", "vamos", "vivimos", "elegimos", "tenemos") {
		return who.or("El usuario") + " dice: " + upperFirst(text)
	}
	return upperFirst(text)
}

func (s *spanish) has(fields []string, words vocabulary) bool {
	return words.likeness(strings.Join(fields, " ")) > 0
}
