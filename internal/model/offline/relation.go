package offline

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// relation is something of which somebody has one at a time, such as a home or a name, or an opinion of one thing.
// Two statements with the same key and different values don't both hold.
type relation struct{ key, value string }

// relationRule finds one relation in a statement as the extractor words it. The groups of its pattern are who, what
// and topic. A rule with a value of its own finds opinions: the topic is what they are about.
type relationRule struct {
	kind    string
	pattern *regexp.Regexp
	value   string
	event   bool // a change that may be long ago, other than a state
}

// relations knows the relations of all languages. Kinds are the same in all of them, so that a statement can
// outdate one in another language.
type relations struct {
	rules    []relationRule
	user     *regexp.Regexp
	group    *regexp.Regexp
	additive *regexp.Regexp
	longAgo  *regexp.Regexp
	year     *regexp.Regexp
	joined   *regexp.Regexp
	article  *regexp.Regexp
}

func newRelations() *relations {
	r := &relations{
		user:     regexp.MustCompile(`(?i)(?:(?:^|[\s'])(?:user|nutzer|usuario|utilisateur)|用户|ユーザー)$`),
		group:    regexp.MustCompile(`(?i) ?(?:said|sagt|dice|dit|说|の発言) ?[:：] ?(?:we|wir|nous|on|我们|我們|私たち)$`),
		additive: regexp.MustCompile(`(?i)\b(?:also|too|as well|besides|another|second|sometimes|auch|ausserdem|zusätzlich|zweit\w*|manchmal|también|además|a veces|aussi|également|parfois)\b|也|还|還|另外|有时|時々|(?:ユーザー|に|を)も`),
		longAgo:  regexp.MustCompile(`(?i)\b(?:years ago|as a child|as a kid|when they|vor \d+ jahren|vor \p{L}+ jahren|als kind|damals|hace (?:\d+|\p{L}+) años|de niñ[oa]|il y a (?:\d+|\p{L}+) ans|enfant)\b|以前|小时候|年前|昔|子供の頃`),
		year:     regexp.MustCompile(`\b(?:19|20)\d\d\b`),
		joined:   regexp.MustCompile(`(?i)[,;，、；]| (?:and|but|while|und|aber|y|pero|et|mais) `),
		article:  regexp.MustCompile(`(?i)^(?:an?|another|one|their|his|her|my|the same|eine?[mnr]?|seine?[mnr]?|una?|su|otr[oa]|une|son|sa|\d+)\b|^一`),
	}
	for _, table := range []func() []relationRule{englishRelations, germanRelations, spanishRelations, frenchRelations, chineseRelations, japaneseRelations} {
		r.rules = append(r.rules, table()...)
	}
	return r
}

// of returns the relations that a statement states, each kind once. Statements that add to others ("also") state
// none.
func (r *relations) of(text string, said time.Time) []relation {
	text = strings.TrimRight(memory.Fold(text), ".!。！ ")
	if r.additive.MatchString(text) {
		return nil
	}
	var found []relation
	var kinds []string
	for _, rule := range r.rules {
		if slices.Contains(kinds, rule.kind) {
			continue
		}
		if rel, ok := r.read(rule, text, said); ok {
			found, kinds = append(found, rel), append(kinds, rule.kind)
		}
	}
	return found
}

func (r *relations) read(rule relationRule, text string, said time.Time) (relation, bool) {
	m := rule.pattern.FindStringSubmatch(text)
	if m == nil || rule.event && r.isOld(text, said) {
		return relation{}, false
	}
	group := func(name string) string {
		if i := rule.pattern.SubexpIndex(name); i > 0 {
			return strings.TrimSpace(m[i])
		}
		return ""
	}
	who := r.group.ReplaceAllString(group("who"), "")
	if r.user.MatchString(who) {
		who = "user"
	}
	rel := relation{key: rule.kind + "\n" + who + "\n" + group("topic"), value: group("what")}
	if rule.value != "" {
		rel.value = rule.value
	}
	switch rule.kind {
	case "home", "employer":
		return rel, rel.value != "" && !r.article.MatchString(rel.value)
	case "name": // a name of one of several pets or children ends no other one's
		return rel, rel.value != "" && !strings.ContainsAny(who, "':：的の")
	}
	return rel, rel.value != ""
}

// isOld tells that a statement of a change gives a time long before it was said.
func (r *relations) isOld(text string, said time.Time) bool {
	if r.longAgo.MatchString(text) {
		return true
	}
	for _, found := range r.year.FindAllString(text, -1) {
		if year, err := strconv.Atoi(found); err == nil && !said.IsZero() && year < said.Year()-1 {
			return true
		}
	}
	return false
}

// link gives each fact the known statement that it makes outdated: the newest one with a relation of the fact and
// another value. Only a statement that says nothing else can be outdated, and each by one fact.
func (r *relations) link(facts []model.Fact, known []model.Known, said time.Time) {
	if len(known) == 0 {
		return
	}
	states := make([]relation, len(known)) // empty where nothing can be outdated
	for i, k := range known {
		if all := r.of(k.Text, k.Said); len(all) == 1 && !r.joined.MatchString(k.Text) {
			states[i] = all[0]
		}
	}
	for i := range facts {
		for _, rel := range r.of(facts[i].Text, said) {
			at := newest(states, rel.key)
			if at < 0 || same(states[at].value, rel.value) {
				continue
			}
			facts[i].Supersedes = known[at].Number
			states[at] = relation{}
			break
		}
	}
}

func newest(states []relation, key string) int {
	for i := len(states) - 1; i >= 0; i-- {
		if states[i].key == key {
			return i
		}
	}
	return -1
}

// same tells whether two values may be the same one, given with more or fewer words: "Berlin" and "Berlin last
// year". Where words are not separated a beginning counts too.
func same(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " ,;(") || rest[0] >= 0x80)
}
