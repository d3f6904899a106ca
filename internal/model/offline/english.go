package offline

import (
	"regexp"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// english reads English statements.
type english struct {
	words    vocabulary
	fillers  []string
	typed    map[string]string // what people type for a contraction
	moods    vocabulary
	joint    *regexp.Regexp
	remember *regexp.Regexp
	chatter  *regexp.Regexp
	when     *regexp.Regexp
	lead     *regexp.Regexp
	rules    []englishRule
	grammar  englishGrammar
}

// englishRule is one form of a statement. A timed one only counts with an expression of time.
type englishRule struct {
	pattern *regexp.Regexp
	label   memory.FactType
	timed   bool
}

// adverbs may stand between a subject and its verb.
const englishAdverbs = `(?:(?:really|also|usually|always|never|often|sometimes|mostly|mainly|currently|now|just|recently|still|` +
	`absolutely|definitely|particularly|especially|generally|rarely|hardly|actually|finally|already|only|normally|` +
	`typically|both|personally|truly|strongly|regularly|occasionally|originally|very much|do|once|first|no longer) ){0,2}`

func newEnglish() *english {
	return &english{
		words: newVocabulary(`i i'm i've i'll i'd my the is am are was were and we we're our you your to of with have has had it this that
			for on at from like likes love hate prefer live work want need will would be not don't can't name she he they please thanks
			hello remember decided let's favorite favourite`),
		fillers: []string{
			"hi there", "hello there", "hi", "hello", "hey", "good morning", "good evening", "oh", "well", "so", "and", "but", "also", "btw",
			"by the way", "actually", "anyway", "ok", "okay", "yes", "yeah", "yep", "no", "nope", "sure", "right", "great", "thanks a lot",
			"thanks", "thank you", "fyi", "just so you know", "for the record", "honestly", "to be honest", "you know", "i mean", "haha",
			"wow", "hmm", "big news", "good news", "great news", "um", "please", "one more thing", "for context", "for your information", "as i said", "then", "because", "since you ask",
		},
		moods: newVocabulary(`tired confused sick hungry thirsty bored sad angry upset excited nervous scared stuck lost sleepy late busy free bit little
			curious done ready happy sorry glad unsure worried annoyed frustrated impressed surprised`),
		typed:    map[string]string{"im": "I'm", "ive": "I've", "dont": "don't", "cant": "can't", "doesnt": "doesn't"},
		joint:    englishJoint(),
		remember: regexp.MustCompile(`(?i)^(?:remember|note|keep in mind|bear in mind|make a note|don't forget|do not forget)(?:(?: that|:|,) *(.+)| ((?:i|i'm|i've|my) .+))$`),
		chatter:  regexp.MustCompile(`(?i)^(?:` + strings.Join(englishChatter(), "|") + `)`),
		when: regexp.MustCompile(`(?i)\b(?:today|tomorrow|tonight|yesterday|(?:next|last|this|every|each|coming) (?:\w+)|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|` +
			`(?:january|february|march|april|june|july|august|september|october|november|december)|in may|may \d+|\d+(?:st|nd|rd|th)|(?:in|since|until) \d{4}|` +
			`\d{4}-\d{2}-\d{2}|\w+ (?:days?|weeks?|months?|years?) ago|in (?:\w+) (?:days?|weeks?|months?|years?)|at \d+(?::\d+)? ?(?:am|pm)?|at noon|when i was)\b`),
		lead: regexp.MustCompile(`(?i)^((?:in (?:january|february|march|april|may|june|july|august|september|october|november|december|spring|summer|autumn|winter|\d{4}|my|high school|college|the (?:morning|evening|afternoon|past|summer|winter))|` +
			`on (?:weekends|weekdays|\w+days?)|at (?:night|work|home|school|university|college|weekends|the weekend)|for (?:the|\w+ (?:years|months|weeks))|` +
			`(?:after|before|during) (?:the|my|our|work|school|college|university|bed|breakfast|lunch|dinner|\w+ing)|since|until|last|next|every|each|` +
			`this (?:year|month|week|morning|evening|summer|winter|spring|autumn|weekend)|yesterday|today|tomorrow|tonight|` +
			`currently|recently|usually|sometimes|lately|normally|these days|right now|once a|two|three|as a|when i was)\b[^,.;:]{0,60}?),? ((?:i|i'm|i've|i'll|i'd|we|we're|we've|we'll) .+)$`),
		rules:   englishRules(),
		grammar: newEnglishGrammar(),
	}
}

// englishChatter lists beginnings that look like statements and aren't worth keeping.
func englishChatter() []string {
	return []string{
		`i(?:'m| am) (?:just |so |very |really |doing |not )*(?:fine|good|great|ok|okay|well|sorry|happy to|glad|sure|back|here|ready|done|curious|` +
			`confused|bored|tired|hungry|wondering|afraid|asking|kidding|looking forward|all set|having|getting (?:an|the)|trying|stuck|lost|looking for (?:an?|some|the|your) (?:recipe|` +
			`example|way|book|movie|film|tip|idea|answer|help|advice|word|explanation|good)|(?:using|working on|talking about|asking about) (?:it|this|that|your))\b`,
		`i(?:'d| would) (?:really )?(?:like|love|appreciate|prefer)(?: to)? (?:you|know|ask|see|hear|understand|have|get|find|some|an?|it|that|if|help|this)\b`,
		`i (?:really |just |only )?(?:want|need)(?: to)? (?:you|know|ask|see|hear|understand|find|get|help|some|your|go|run|check|think|say|an? (?:answer|example|list|summary|` +
			`poem|story|recipe|break|moment|minute|hand|favor|quick)|it|this|that)\b`,
		`i (?:just |still |also )?(?:have|had|got|have got)(?: to)? (?:an? |another |some |one more |one |no |any )?(?:quick |small |little |last |follow-up )?(?:questions?|problems?|issues?|ideas?|` +
			`clue|go|run|leave|say|admit|ask|errors?|request|favor|look|it|that|this|your)\b`,
		`i (?:really |absolutely |do )?(?:like|love|hate|enjoy|prefer) (?:(?:it|that)(?: a lot| so much| very much| too)?(?:$|[,;]| and)|this (?:idea|one|answer|poem|story|version|plan)|these|those|your|you|how you|what you|the (?:idea|answer|way you|first|second|last|other) ?)`,
		`i (?:don't|do not|can't|cannot|didn't|did not) (?:\w+ )?(?:know|understand|think|get|see|care|mind|remember|believe|want (?:you|to (?:know|bother))|have (?:a|any|much|time)|need (?:it|that|your|help|any))\b`,
		`i(?:'ve| have)(?: got)? (?:an?|some|this|the|two) (?:\w+ )?(?:bug|list|function|table|file|array|class|script|query|column|dataframe|string|loop|spreadsheet|pdf|document|text|task|assignment|exam question)s?\b`,
		`my (?:code|script|program|query|function|app|build|test|output|input|model|file|data)s? (?:is|are|was|has|isn't|doesn't|does|don't|can|can't|cannot|won't|would|will|starts?)\b`,
		`my (?:laptop|computer|phone|browser|wi-?fi|internet|server|screen|printer|keyboard)s? (?:isn't|doesn't|don't|can't|cannot|won't|is not)\b`,
		`i (?:learned|learnt|read|heard|found out) that\b`,
		`i (?:will|'ll) (?:let you|try|see|check|be (?:right )?back|think|do (?:it|that)|ask|wait|get back|have a look)\b`,
		`i'll (?:let you|try|see|check|be (?:right )?back|think|do (?:it|that)|ask|wait|get back|have a look|take (?:it|that|the))\b`,
		`i (?:use|read|lost|left|made|took|tried|finished|changed|started|met|found) (?:it|that|this|your|the (?:answer|code you))\b`,
		`i (?:was|were|am|'m) (?:just )?(?:wondering|asking|hoping you|thinking you|about to ask)\b`,
		`my (?:question|problem|point|request|bad|apologies|pleasure|goodness|god|guess|code|error|first question|next question|last question)\b`,
		`i(?:'ve| have) (?:got (?:to go|it|this|that)|never (?:heard|seen|tried|thought)|been (?:waiting|trying|wondering|looking|thinking|getting|having)|tried|already)\b`,
		`i (?:started|stopped|built|launched|restarted) (?:the|a|my) (?:server|app|container|process|build|script|program|service)\b`,
		`i (?:went (?:through|over|ahead)|left a (?:comment|message)|finished (?:reading|watching)|met (?:him|her|them)|like where)\b`,
		`the (?:weather|(?:next |first |last )?question|answer|result|problem|sum)\b`,
		`we (?:have|need) (?:to (?:talk|go|fix|leave)|a problem|an issue|an error)\b`,
		`(?:we|i) should (?:talk|stop|see|go|get)\b`,
		`let's (?:see|go|start|talk|begin|do (?:it|this|that)|use (?:it|this|that)|try)\b`,
	}
}

func englishRules() []englishRule {
	rule := func(label memory.FactType, timed bool, pattern string) englishRule {
		return englishRule{regexp.MustCompile(`(?i)^` + strings.ReplaceAll(pattern, "ADV", englishAdverbs)), label, timed}
	}
	kin := `(?:[\w'-]+ ){1,4}?`
	be := `(?:'m| am) `
	return []englishRule{
		rule(memory.TypeDecision, false, `(?:i|we)(?:'ve| have)? ADV(?:decided|chose|chosen|agreed|settled|picked|opted|resolved)\b`),
		rule(memory.TypeDecision, false, `(?:i|we)(?:'m|'re| am| are) (?:going with|sticking with|switching to)\b`),
		rule(memory.TypeDecision, false, `let's (?:go with|stick with|settle on|use|switch to)\b`),
		rule(memory.TypeIdentity, false, `my (?:full |first |last |nick)?(?:name|age|birthday|pronouns|(?:new |current )?(?:job|job title|profession|nationality|email|e-mail|phone number|address|employer|native language|mother tongue))(?:'s| is| are)\b`),
		rule(memory.TypeIdentity, false, `(?:you can |people |everyone |friends )?call(?:s)? me\b`),
		rule(memory.TypePreference, false, `(?:my|our) favou?rite\b`),
		rule(memory.TypePreference, false, `i`+be+`ADV(?:a (?:big |huge )?(?:fan|lover) of|not a (?:big )?fan of|into|fond of|crazy about|addicted to|a vegetarian|a vegan|interested in|vegetarian|vegan|pescatarian)\b`),
		rule(memory.TypeFact, false, `i(?:'m| am) ADV(?:severely |highly )?(?:allergic|lactose|gluten|diabetic|celiac|colou?r ?blind|deaf|blind|left-handed|pregnant|intolerant)\b`),
		rule(memory.TypeGoal, false, `i`+be+`ADV(?:going to|planning|hoping to|thinking (?:of|about)|training for|saving|moving|getting married|learning|preparing|expecting|aiming|looking for a (?:new )?(?:job|flat|apartment|house|roommate|place))\b`),
		rule(memory.TypeEvent, false, `i`+be+`ADV(?:flying|travel+ing|visiting|starting|leaving|meeting|attending|going)\b`),
		rule(memory.TypeFact, false, `i`+be+`ADV(?:working|living|studying|using|building|writing|reading|taking|training|teaching|running|doing|playing|on a|in charge|responsible)\b`),
		rule(memory.TypeIdentity, false, `i`+be+`ADV(?:not )?(?:an? |the |\d+|from\b|called |named |married|single|divorced|engaged|retired|unemployed|self-employed|widowed|gay|bi|trans|`+
			`american|british|german|french|spanish|italian|chinese|japanese|indian|canadian|mexican|dutch|polish|swedish|brazilian|irish|turkish|korean|russian|ukrainian|jewish|muslim|christian|catholic|buddhist|hindu)`),
		rule(memory.TypeIdentity, false, `(?-i:I(?:'m| am) [A-Z][a-z]+(?:$|,| and | from ))`),
		rule(memory.TypeIdentity, false, `i(?:'ve| have)? ADV(?:come from|grew up|was born|were born|identify as|go by)\b`),
		rule(memory.TypePreference, false, `i ADV(?:like|love|hate|prefer|enjoy|adore|dislike|despise|detest|favou?r|avoid|can't stand|cannot stand|eat|drink|listen to|watch|cook|wear|would rather)\b`),
		rule(memory.TypePreference, false, `i'd rather\b`),
		rule(memory.TypePreference, false, `i (?:don't|do not|can't|cannot|never) ADV(?:like|love|enjoy|eat|drink|smoke|use|wear|watch|stand|drive|listen)\b`),
		rule(memory.TypeGoal, false, `i(?:'d| would) ADV(?:like|love) to (?:visit|learn|travel|become|move|buy|start|run|live|climb|write|study|retire|own|build|open|work|change|quit|lose|finish)\b`),
		rule(memory.TypeGoal, false, `i ADV(?:plan|hope|intend|aim|dream of|want|wish) (?:to\b|on\b|\w+ing\b)`),
		rule(memory.TypeGoal, false, `(?:my|our) (?:goal|dream|plan|aim|ambition|resolution|target)\b`),
		rule(memory.TypeTodo, false, `i(?:'ve got to| ADV(?:need to|have to|must|gotta)) `),
		rule(memory.TypeEvent, true, `(?:i|we)(?:'ll| will) `),
		rule(memory.TypeEvent, true, `(?:i|we) ADV(?:start|begin|leave|fly|arrive|finish|graduate|retire|move|travel)\b`),
		rule(memory.TypePreference, false, `i(?:'ve| have) ADV(?:loved|liked|enjoyed|hated|preferred|always wanted)\b`),
		rule(memory.TypeFact, false, `i ADV(?:used to|live|work|study|speak|own|have|use|play|drive|ride|run|teach|manage|lead|belong to|attend|go to|commute|suffer|raise|keep|support|collect|volunteer|practi[cs]e|train|swim|sing|dance|paint|write|code|develop|maintain|rent|`+
			`share|believe in|know how to|weigh|celebrate|wake up|get up|sleep|spend|earn|pay|rarely|worked|lived|studied|grew)\b`),
		rule(memory.TypeFact, false, `i(?:'ve| have) ADV(?:been|got|lived|worked|known|played|used|had|owned|never)\b`),
		rule(memory.TypeEvent, false, `(?:i|we)(?:'ve| have)? ADV(?:moved|started|bought|sold|quit|graduated|met|married|adopted|visited|went|booked|joined|left|finished|broke|won|became|signed up|attended|completed|passed|failed|turned|`+
			`retired|changed jobs|switched|launched|founded|received|climbed|travel+ed|flew|hiked|celebrated|took up|stopped|gave up|began|learned|learnt|built|published|volunteered|hired|injured|lost|had a baby|had surgery|`+
			`got (?:the (?:new )?(?:job|position|role|offer|promotion|apartment|flat|house|visa|grant|scholarship)|married|engaged|divorced|promoted|fired|laid off|hired|vaccinated|accepted|into|an? (?:new )?(?:job|dog|cat|car|bike|house|apartment|flat|puppy|kitten|tattoo|raise|promotion|degree|visa|offer)))\b`),
		rule(memory.TypeEvent, true, `i(?:'ve| have)? ADV(?:saw|seen|watched|read|ate|cooked|tried|made|took|ran|played|had|got|did|was|painted|wrote|ordered|planted|fixed|gave)\b`),
		rule(memory.TypeFact, false, `my `+kin+`(?:is|are|was|were|has|have|had|lives?|works?|likes?|loves?|hates?|prefers?|plays?|studies|study|speaks?|died|passed|got|wants?|needs?|moved|started|goes|comes|turns|turned|celebrates?|owns?|runs?|teaches|will|starts|begins|attends?|can|can't|cannot|won't|would|doesn't|don't|isn't|aren't|eats?|drinks?|`+
			`cooks?|bought|wrote|writes?|leads?|manages?|graduated|graduates|married|retired|hurts?|visits?|visited|told me to|advised me)\b`),
		rule(memory.TypeFact, false, `(?:my|our) [\w-]+(?:'s) (?:name|birthday|a|an|the|called|from|in)\b`),
		rule(memory.TypeFact, false, `we(?:'re| are|'ve| have)? ADV(?:live|have|own|moved|got|bought|use|work|married|moving|getting|expecting|planning|met|run|adopted|been)\b`),
		rule(memory.TypeFact, false, `our `+kin+`(?:is|are|was|has|have|uses?|runs?|lives?|starts?|will|moved|got)\b`),
		rule(memory.TypeEvent, true, `(?:the|our|a|next) (?:[\w'-]+ ){1,5}?(?:is|are|will be|starts?|takes place|was|opens?|closes?|launches|ends?|begins?|leaves?|departs?|happens?)\b`),
		rule(memory.TypeFact, false, `[A-Z][\w'-]+ (?:is|was) (?:my|our) `),
		rule(memory.TypeFact, false, `(?-i:[A-Z][a-z]+) (?:(?:will|is going to) (?:lead|run|manage|handle|take over|be responsible|be in charge)|is (?:leading|managing|responsible|in charge)|leads|manages|owns)\b`),
		rule(memory.TypePreference, false, `(?-i:[A-Z][a-z]+) (?:(?:doesn't|does not|never) (?:like|love|eat|drink|smoke|want)s?|likes|loves|hates|prefers|is (?:allergic|vegetarian|vegan))\b`),
	}
}

func (e *english) likeness(text string) int { return e.words.likeness(text) }

func (e *english) read(text string, who speaker) (statement, bool) {
	text = replaceWords(dropLead(text, e.fillers), e.typed)
	if m := e.remember.FindStringSubmatch(text); m != nil {
		return e.asked(dropLead(m[1]+m[2], e.fillers), who)
	}
	if e.chatter.MatchString(text) || e.fleeting(text) {
		return statement{}, false
	}
	if found, ok := e.match(text, text, who); ok {
		return found, true
	}
	return e.led(text, who)
}

// match reads a clause of text; an expression of time may stand anywhere in text.
func (e *english) match(clause, text string, who speaker) (statement, bool) {
	for _, rule := range e.rules {
		if rule.pattern.MatchString(clause) && (!rule.timed || e.when.MatchString(text)) {
			return statement{e.grammar.third(clause, who), rule.label}, true
		}
	}
	return statement{}, false
}

// led reads a clause behind an expression of time or place: "After the outage we …".
func (e *english) led(text string, who speaker) (statement, bool) {
	m := e.lead.FindStringSubmatch(text)
	if m == nil || e.chatter.MatchString(m[2]) || e.fleeting(m[2]) {
		return statement{}, false
	}
	found, ok := e.match(m[2], text, who)
	if !ok {
		return statement{}, false
	}
	if startsWith(m[2], "we", "we're", "we've", "we'll") {
		return statement{who.or("User") + " said: " + upperFirst(text), found.label}, true
	}
	return statement{upperFirst(e.grammar.others(m[1])) + ", " + found.text, found.label}, true
}

// fleeting tells what is said to the assistant or passes soon: short statements of mood, and two words alone.
func (e *english) fleeting(text string) bool {
	words := strings.Fields(text)
	if hasWord(text, "you", "your", "yours", "you're") && !startsWith(text, "you can call me") {
		return true
	}
	if len(words) < 3 && !strings.EqualFold(words[0], "i'm") {
		return true
	}
	return len(words) <= 7 && startsWith(text, "i'm", "i am", "i feel", "i was") && e.moods.likeness(text) > 0
}

// asked reads what the speaker asked to remember. It is kept even if no rule knows its form.
func (e *english) asked(text string, who speaker) (statement, bool) {
	if len(strings.Fields(text)) < 2 {
		return statement{}, false
	}
	for _, rule := range e.rules {
		if rule.pattern.MatchString(text) {
			return statement{e.grammar.third(text, who), rule.label}, true
		}
	}
	return statement{e.grammar.third(text, who), memory.TypeFact}, true
}
