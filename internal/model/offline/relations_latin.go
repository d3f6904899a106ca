package offline

import (
	"regexp"
	"strings"
)

// relationsOf compiles a language's table. Each row is a kind, its value if it is an opinion, and a pattern for a
// folded statement, in which WHO is the subject, WHAT the value to the end, and TOPIC what an opinion is about. A
// kind that ends in ! is a change. Who is the pattern of a subject.
func relationsOf(who string, rows [][3]string) []relationRule {
	names := strings.NewReplacer("WHO", who, "WHAT", `(?P<what>.{1,80}?)`, "TOPIC", `(?P<topic>[^,;，。]{1,60}?)`)
	rules := make([]relationRule, len(rows))
	for i, row := range rows {
		kind, event := strings.CutSuffix(row[0], "!")
		rules[i] = relationRule{kind: kind, value: row[1], event: event, pattern: regexp.MustCompile(`^` + names.Replace(row[2]) + `$`)}
	}
	return rules
}

// latinWho is a subject; an expression of time may stand before it, with a comma.
const latinWho = `(?:[^:;,]{1,60}, )?(?P<who>[^,;]{1,60}?)`

func englishRelations() []relationRule {
	const now = `(?:now |currently |still |really |just |recently |finally |officially )*`
	const end = `(?: (?:anymore|any more|now|these days|again|very much|a lot|so much|at all))*`
	return relationsOf(latinWho, [][3]string{
		{"home", "", `WHO ` + now + `(?:lives?|is living|are living|is based|resides|has lived|has been living) ` + now + `(?:alone |with [^,]{1,30}? )?in WHAT`},
		{"home!", "", `WHO (?:has |have )?` + now + `(?:moved|relocated)(?: back| over)?(?: from [^,]{1,30}?)? to WHAT`},
		{"employer", "", `WHO ` + now + `works? ` + now + `(?:full-time |part-time |remotely |as [^,]{1,40}? )?(?:at|for) WHAT`},
		{"employer!", "", `WHO (?:has )?` + now + `(?:started|got|began) (?:working|work|an? (?:new )?job|the job) (?:at|for|with) WHAT`},
		{"profession", "", `WHO ` + now + `works? ` + now + `as (?:an? |the )?WHAT(?: (?:at|for|in|with|since) .+)?`},
		{"name", "", `WHO(?:'s (?:full )?name is| is ` + now + `(?:called|named)| goes by| wants to be called) (?:now )?WHAT`},
		{"age", "", `WHO ` + now + `(?:is|turned|has turned) ` + now + `(?P<what>\d{1,3})(?: years? old)?(?: today| yesterday| last .+)?`},
		{"status", "", `WHO (?:is|got|has gotten) ` + now + `(?P<what>married|single|divorced|engaged|widowed|separated)(?: (?:to|since|again|now|last|in (?:january|february|march|april|may|june|july|august|september|october|november|december))\b.*)?`},
		{"favorite", "", `WHO's (?:all-time )?favou?rite TOPIC (?:is|are) (?:now )?WHAT`},
		{"attribute", "", `WHO's (?:new |current )?(?P<topic>e-?mail(?: address)?|phone(?: number)?|address|birthday|job(?: title)?|profession|employer|nationality|boss|manager|doctor|dentist|landlord|pronouns) (?:is|are) (?:now )?WHAT`},
		{"like", "no", `WHO ` + now + `(?:doesn't|does not|don't) ` + now + `(?:like|love|enjoy) TOPIC` + end},
		{"like", "no", `WHO (?:no longer (?:likes|loves|enjoys)|` + now + `(?:hates|dislikes|despises|detests|can't stand|cannot stand)) TOPIC` + end},
		{"like", "yes", `WHO ` + now + `(?:absolutely )?(?:likes|loves|enjoys|adores) TOPIC` + end},
		{"eat", "no", `WHO (?:` + now + `(?:doesn't|does not|never) eats?|no longer eats|stopped eating) TOPIC` + end},
		{"eat", "yes", `WHO ` + now + `eats TOPIC` + end},
		{"drink", "no", `WHO (?:` + now + `(?:doesn't|does not|never) drinks?|no longer drinks|stopped drinking) TOPIC` + end},
		{"drink", "yes", `WHO ` + now + `drinks TOPIC` + end},
	})
}

func germanRelations() []relationRule {
	const now = `(?:jetzt |nun |inzwischen |mittlerweile |noch |immer |wieder |seit [^,]{1,20}? )*`
	const own = `(?:mein|meine) (?:neue |neuer |neues )?`
	return relationsOf(latinWho, [][3]string{
		{"home", "", `WHO (?:wohnt|lebt) ` + now + `(?:allein |mit [^,]{1,30}? )?in WHAT`},
		{"home", "", `[^,]{1,40} (?:wohnt|lebt) (?P<who>der nutzer|\p{L}+) ` + now + `in WHAT`},
		{"home!", "", `WHO (?:ist|sind) (?:[^,]{1,40}? )?nach (?P<what>[^,]{1,40}?) (?:um)?gezogen`},
		{"employer", "", `WHO arbeitet ` + now + `(?:als [^,]{1,40}? )?bei WHAT`},
		{"employer", "", `[^,]{1,40} arbeitet (?P<who>der nutzer|\p{L}+) ` + now + `bei WHAT`},
		{"profession", "", `WHO arbeitet ` + now + `als WHAT(?: (?:bei|in|für|seit) .+)?`},
		{"name", "", `WHO heisst ` + now + `WHAT`},
		{"age", "", `WHO (?:ist|wurde) ` + now + `(?P<what>\d{1,3})(?: jahre alt| geworden)?`},
		{"status", "", `WHO (?:ist|hat sich|hat) ` + now + `(?P<what>verheiratet|ledig|single|geschieden|verlobt|verwitwet|getrennt|geheiratet)`},
		{"favorite", "", `WHO sagt: meine? lieblings(?P<topic>\p{L}{1,40}) (?:ist|sind) ` + now + `WHAT`},
		{"attribute", "", `WHO sagt: ` + own + `(?P<topic>e-mail(?:-adresse)?|telefonnummer|handynummer|adresse|beruf|geburtstag|chefin|chef|arzt|ärztin) (?:ist|lautet) ` + now + `WHAT`},
		{"like", "no", `WHO mag keine?[nrms]? TOPIC(?: mehr)?`},
		{"like", "no", `WHO mag TOPIC (?:gar )?nicht(?: mehr)?`},
		{"like", "no", `WHO (?:hasst|verabscheut) TOPIC`},
		{"like", "yes", `WHO (?:mag|liebt) ` + now + `(?:sehr )?TOPIC(?: sehr| wieder)?`},
		{"eat", "no", `WHO isst ` + now + `keine?[nrms]? TOPIC(?: mehr)?`},
		{"eat", "yes", `WHO isst ` + now + `(?:gerne? )?TOPIC`},
		{"drink", "no", `WHO trinkt ` + now + `keine?[nrms]? TOPIC(?: mehr)?`},
		{"drink", "yes", `WHO trinkt ` + now + `(?:gerne? )?TOPIC`},
	})
}

func spanishRelations() []relationRule {
	const now = `(?:ahora |actualmente |todavía |ya )*`
	return relationsOf(latinWho, [][3]string{
		{"home", "", `WHO ` + now + `(?:vive|reside) ` + now + `(?:con [^,]{1,30}? )?en WHAT`},
		{"home!", "", `WHO (?:dice: nos mudamos|se mudó|se ha mudado|se trasladó|se ha trasladado)(?: de [^,]{1,30}?)? a WHAT`},
		{"employer", "", `WHO ` + now + `trabaja ` + now + `(?:como [^,]{1,40}? )?para WHAT`},
		{"profession", "", `WHO ` + now + `trabaja ` + now + `(?:como|de) WHAT(?: (?:en|para|desde) .+)?`},
		{"name", "", `WHO ` + now + `se llama WHAT`},
		{"age", "", `WHO (?:` + now + `tiene|cumplió|ha cumplido) (?P<what>\d{1,3}) años`},
		{"status", "", `WHO ` + now + `(?:está|es) ` + now + `(?P<what>casad|solter|divorciad|viud|prometid|separad)[oa](?: con .+)?`},
		{"status!", "", `WHO se (?:ha )?(?P<what>casad|divorciad)o(?: con .+)?`},
		{"favorite", "", `WHO dice: mi TOPIC (?:favorit|preferid)[oa] ` + now + `es ` + now + `WHAT`},
		{"attribute", "", `WHO dice: mi (?:nuev[oa] )?(?P<topic>correo|teléfono|número de teléfono|dirección|profesión|cumpleaños|jef[ea]) (?:nuev[oa] )?` + now + `es WHAT`},
		{"like", "no", `WHO (?:ya )?no le gustan? (?:nada )?TOPIC`},
		{"like", "no", `WHO (?:odia|detesta) TOPIC`},
		{"like", "yes", `WHO (?:ahora )?le (?:gustan?|encantan?) (?:mucho )?TOPIC`},
		{"eat", "no", `WHO (?:ya )?no come TOPIC`},
		{"eat", "yes", `WHO ` + now + `come ` + now + `TOPIC`},
		{"drink", "no", `WHO (?:ya )?no (?:bebe|toma) TOPIC`},
		{"drink", "yes", `WHO ` + now + `(?:bebe|toma) ` + now + `TOPIC`},
	})
}

func frenchRelations() []relationRule {
	const now = `(?:maintenant |désormais |actuellement |toujours |récemment |finalement )*`
	const of = `(?:du |des |de la |de l'|de |d'|le |la |les |l')?`
	return relationsOf(latinWho, [][3]string{
		{"home", "", `WHO (?:habite|vit|réside) ` + now + `(?:seule? |avec [^,]{1,30}? )?(?:à|en|au|aux) WHAT`},
		{"home!", "", `WHO (?:(?:a|avons) ` + now + `(?:déménagé|emménagé)|s'est ` + now + `installée?|nous sommes installée?s)(?: de [^,]{1,30}?)? (?:à|en|au|aux) WHAT`},
		{"employer", "", `WHO travaille ` + now + `(?:comme [^,]{1,40}? )?chez WHAT`},
		{"profession", "", `WHO travaille ` + now + `(?:comme|en tant que) WHAT(?: (?:chez|à|dans|depuis) .+)?`},
		{"name", "", `WHO s'appelle ` + now + `WHAT`},
		{"age", "", `WHO (?:a|a eu) ` + now + `(?P<what>\d{1,3}) ans`},
		{"status", "", `WHO (?:est|s'est) ` + now + `(?P<what>mari|célibataire|divorc|fianc|séparé|veuf|veuve)(?:ée?)?(?: avec .+)?`},
		{"favorite", "", `WHO dit : m(?:on|a) TOPIC (?:préférée?|favorite?) est ` + now + `WHAT`},
		{"attribute", "", `WHO dit : m(?:on|a) (?:nouvel |nouvelle |nouveau )?(?P<topic>adresse|numéro(?: de téléphone)?|e-mail|métier|profession|anniversaire|chef|médecin) est ` + now + `WHAT`},
		{"like", "no", `WHO n'aime (?:pas|plus)(?: du tout)? ` + of + `TOPIC`},
		{"like", "no", `WHO (?:déteste|hait) ` + of + `TOPIC`},
		{"like", "yes", `WHO (?:aime|adore) ` + now + `(?:bien |beaucoup )?` + of + `TOPIC`},
		{"eat", "no", `WHO ne mange (?:pas|plus) ` + of + `TOPIC`},
		{"eat", "yes", `WHO mange ` + now + of + `TOPIC`},
		{"drink", "no", `WHO ne boit (?:pas|plus) ` + of + `TOPIC`},
		{"drink", "yes", `WHO boit ` + now + of + `TOPIC`},
	})
}
