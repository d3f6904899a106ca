package playground

import (
	"crypto/rand"
	"net/url"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/events"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// firstUser is whose memories are written unless somebody else is named.
	firstUser = "playground"
	// found is how many records a search shows: what one reads at a glance.
	found = 10
	// maxText keeps the longest message, each character of it four bytes of three signs, within what a form may be.
	maxText = 20_000
)

// hit is one record that was found.
type hit struct {
	ID    string
	Here  string
	Text  string
	Score float64
}

// shown is the page.
type shown struct {
	Here string
	User string
	// Text is what the same request has sent and was refused with.
	Text    string
	Infer   bool
	Problem string
	// Key is for the next message, Sent the one that the event was written with.
	Key, Sent string
	MaxText   int
	// InferCost and AddCost are the prices here, Metered whether there are any.
	InferCost, AddCost credit.Amount
	// Event is what was written last, nil for none that is shown. ID is its id for who may not see its life.
	Event *events.Glance
	ID    string
	// Searches tells that the visitor may search.
	Searches bool
	Query    string
	Hits     []hit
	// Erase leads to where everything of the user is erased, empty for who may not.
	Erase string
}

// newKey makes an idempotency key that tells where it comes from.
func newKey() string { return "console-" + rand.Text() }

// page is the form for the user, with the event that the address names and what the search in it finds.
func (s section) page(v *frame.Visit, user string) (shown, error) {
	if user == "" {
		user = firstUser
	}
	metered := v.Caller.Workspace.Metered
	p := shown{
		Here: v.Link("/playground"), User: user, Infer: v.Query("as") != "is", Key: newKey(), MaxText: maxText,
		InferCost: s.deps.Prices.Of(task.Infer, metered), AddCost: s.deps.Prices.Of(task.Add, metered), Searches: v.May(access.MemoryRead),
	}
	if v.May(access.Admin) {
		p.Erase = v.Link("/erase?" + url.Values{"by": {"user"}, "value": {user}}.Encode())
	}
	if err := s.addEvent(v, &p); err != nil {
		return shown{}, err
	}
	return p, s.addHits(v, &p)
}

func (s section) addEvent(v *frame.Visit, p *shown) error {
	text := v.Query("event")
	if text == "" {
		return nil
	}
	id, ok := httpapi.ParseEventID(text)
	if !ok {
		return fault.New(fault.EventNotFound)
	}
	p.ID = frame.EventID(id)
	if sent, err := command.ParseKey([]string{v.Query("key")}); err == nil && sent != nil {
		p.Sent = v.Query("key")
	}
	if !v.May(access.OperationsRead) {
		return nil
	}
	event, err := s.deps.Events.Look(v, id)
	p.Event = &event
	return err
}

func (s section) addHits(v *frame.Visit, p *shown) error {
	p.Query = v.Query("q")
	if !p.Searches || command.Blank(p.Query) || v.Live {
		return nil
	}
	scope, err := command.NewScope(&p.User, nil, nil, nil)
	if err != nil {
		return err
	}
	records, err := s.deps.Searcher.Search(v.Context(), v.Workspace(), recall.SearchQuery{
		Text: p.Query, Scope: scope, Limit: found, Mode: recall.Hybrid, LatestOnly: true,
	})
	if err != nil {
		return err
	}
	p.Hits = hitsOf(v, records)
	return nil
}

func hitsOf(v *frame.Visit, records []memory.Record) []hit {
	hits := make([]hit, len(records))
	for i, r := range records {
		id := "mem_" + r.ID.String()
		hits[i] = hit{ID: id, Here: v.Link("/memories/" + id), Text: r.Text, Score: r.Score}
	}
	return hits
}

func (s section) show(v *frame.Visit) (frame.Answer, error) {
	p, err := s.page(v, v.Query("user"))
	if err != nil {
		return frame.Answer{}, err
	}
	return answerOf(p), nil
}

func answerOf(p shown) frame.Answer {
	answer := frame.Answer{Title: "Playground", Template: "playground.html", Data: p}
	if p.Event != nil {
		answer.Every, answer.Said = p.Event.Every, "Event is "+string(p.Event.Status)
	}
	return answer
}
