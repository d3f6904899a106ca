package offline

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

const provider = "offline"

// Bounds of one extraction.
const (
	maxFacts    = 1_000 // a conversation of 250 kB holds fewer statements
	maxSentence = 600   // runes; longer text is a document and no statement
	maxName     = 60    // runes; a longer speaker's name is no name
)

// Extractor picks statements by rules. It is safe for concurrent use.
type Extractor struct {
	languages []language
	relations *relations
	isoDate   *regexp.Regexp
}

// New returns an extractor.
func New() *Extractor {
	return &Extractor{
		languages: []language{newEnglish(), newGerman(), newSpanish(), newFrench(), newChinese(), newJapanese()},
		relations: newRelations(),
		isoDate:   regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`),
	}
}

// Provider returns "offline".
func (e *Extractor) Provider() string { return provider }

// Local is true: nothing leaves the process.
func (e *Extractor) Local() bool { return true }

// Check never fails.
func (e *Extractor) Check(context.Context) error { return nil }

// language reads the sentences of one language.
type language interface {
	// likeness counts what marks text as this language, 0 for nothing.
	likeness(text string) int
	// read returns what is worth remembering of a sentence without its final mark, worded for the speaker.
	read(sentence string, who speaker) (statement, bool)
}

// statement is a sentence worth remembering.
type statement struct {
	text  string
	label memory.FactType
}

// speaker is who said it, without a name if the conversation gives none.
type speaker struct{ name string }

// or returns the speaker's name, or the language's word for a user.
func (s speaker) or(user string) string {
	if s.name != "" {
		return s.name
	}
	return user
}

func speakerOf(m model.Message) speaker {
	name := strings.Join(strings.Fields(m.Name), " ")
	if utf8.RuneCountInString(name) > maxName {
		return speaker{}
	}
	return speaker{name}
}

// Extract returns the statements of everybody but the assistant, in the order in which they were said, each
// once, with the known statement that it makes outdated. The request's instructions have
// no effect; a fact has the categories of whose name or description a word stands in it. It fails only
// when ctx has ended.
func (e *Extractor) Extract(ctx context.Context, request model.Request) (model.Extraction, error) {
	started := time.Now()
	var facts []model.Fact
	seen := map[memory.ContentKey]bool{}
	for _, message := range request.Messages {
		if ctx.Err() != nil {
			return model.Extraction{}, model.Unanswered(ctx, ctx.Err(), 0)
		}
		if !speaks(message.Role) {
			continue
		}
		for _, found := range e.readMessage(message) {
			key := memory.KeyOf(found.text)
			if seen[key] || len(facts) == maxFacts {
				continue
			}
			seen[key] = true
			facts = append(facts, model.Fact{Text: found.text, Type: found.label, EventDate: e.date(found.text)})
		}
	}
	e.relations.link(facts, request.Known, request.Said)
	if len(request.Categories) > 0 {
		newFiling(request.Categories).file(facts)
	}
	return model.Extraction{Facts: facts, Usage: model.Usage{Duration: time.Since(started)}}, nil
}

// speaks tells roles whose words can be facts.
func speaks(role string) bool {
	switch strings.ToLower(strings.TrimSpace(role)) {
	case "assistant", "system", "developer", "tool", "function", "model":
		return false
	default:
		return true
	}
}

func (e *Extractor) readMessage(message model.Message) []statement {
	who := speakerOf(message)
	var found []statement
	var usual []language // the message's own languages, found when the first sentence asks for them
	for _, s := range sentences(message.Content) {
		if s.question || utf8.RuneCountInString(s.text) > maxSentence {
			continue
		}
		likeliest := e.likeliest(s.text)
		if likeliest == nil {
			if usual == nil {
				usual = e.usual(message.Content)
			}
			likeliest = usual
		}
		found = append(found, readSentence(s.text, likeliest, who)...)
	}
	return found
}

// readSentence reads a sentence, or what stands behind a beginning that says little ("Good idea, but …"). One that says
// several things leaves several statements.
func readSentence(text string, languages []language, who speaker) []statement {
	for _, part := range append([]string{text}, tails(text)...) {
		for _, l := range languages {
			if st, ok := l.read(part, who); ok {
				return orClauses(st, part, l, who)
			}
		}
	}
	return nil
}

// clausal is a language that can tell the clauses of a sentence apart.
type clausal interface {
	clauses(sentence string) []string
}

// orClauses is what the clauses of a sentence say, or its one statement.
func orClauses(whole statement, text string, l language, who speaker) []statement {
	reader, ok := l.(clausal)
	if !ok {
		return []statement{whole}
	}
	clauses := reader.clauses(text)
	if len(clauses) < 2 {
		return []statement{whole}
	}
	var found []statement
	for _, clause := range clauses {
		if st, ok := l.read(clause, who); ok {
			found = append(found, st)
		}
	}
	return found
}

// likeliest returns the languages that text resembles most, nil if it resembles none.
func (e *Extractor) likeliest(text string) []language {
	best, most := []language(nil), 0
	for _, l := range e.languages {
		switch n := l.likeness(text); {
		case n > most:
			best, most = []language{l}, n
		case n == most && n > 0:
			best = append(best, l)
		}
	}
	return best
}

// usual returns the languages of a whole message, all of them if it resembles none.
func (e *Extractor) usual(message string) []language {
	if best := e.likeliest(message); best != nil {
		return best
	}
	return e.languages
}

// date returns the one date that a statement gives in ISO form; other dates stay words.
func (e *Extractor) date(text string) *time.Time {
	found := e.isoDate.FindAllString(text, 2)
	if len(found) != 1 {
		return nil
	}
	date, err := time.Parse(time.DateOnly, found[0])
	if err != nil {
		return nil
	}
	return &date
}
