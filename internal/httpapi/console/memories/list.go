package memories

import (
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	perPage = 50
	// searched is how many records a search shows: as many as somebody reads.
	searched = 20
)

// list is the page of a search, of somebody's records, or of who has some.
type list struct {
	whose
	Here, Erase string
	Query       string
	Kinds       []option
	// Unscoped tells that something is searched for and nobody's memory is chosen.
	Unscoped bool
	Entities []entity
	Rows     []row
	// Searched tells that the rows answer the query.
	Searched bool
	// Next and First lead to other pages, empty without one.
	Next, First string
}

// entity is somebody who has records.
type entity struct {
	recall.Entity
	Link string
}

// row is one record of a list.
type row struct {
	Text   string
	Link   string
	ID     uuid.UUID
	Type   string
	At     time.Time
	Expiry *time.Time
	Other  string // the rest of its scope
	Score  *score
}

// score is how a record was found.
type score struct {
	Place           int
	Fused           string
	Words, Meanings string
}

func (s section) list(v *frame.Visit) (frame.Answer, error) {
	chosen, err := whoseOf(v.Query("by"), v.Query("value"))
	if err != nil {
		return frame.Answer{}, err
	}
	shown := list{whose: chosen, Here: v.Link("/memories"), Query: v.Query("q"), Kinds: kinds(recall.EntityType(v.Query("by")))}
	if id, ok := httpapi.ParseMemoryID(shown.Query); ok {
		return frame.Answer{To: s.linkTo(v, id)}, nil
	}
	switch {
	case !chosen.chosen():
		shown.Unscoped = shown.Query != ""
		err = s.who(v, &shown)
	case command.Blank(shown.Query):
		err = s.newest(v, &shown)
	default:
		err = s.search(v, &shown)
	}
	if err != nil {
		return frame.Answer{}, err
	}
	if chosen.chosen() && v.May(eraseNeeds) {
		shown.Erase = chosen.address(v.Link("/erase"))
	}
	return frame.Answer{Title: "Memories", Template: "memories.html", Data: &shown}, nil
}

// who lists who has records.
func (s section) who(v *frame.Visit, shown *list) error {
	query := recall.EntityQuery{Limit: perPage}
	if kind := recall.EntityType(v.Query("by")); known(kind) {
		query.Type, shown.By = kind, kind
	}
	cursor := cursorOf(v)
	var err error
	if query.After, err = httpapi.OpenEntityPlace(v.Caller.Workspace, "console entities", query.Type, cursor); err != nil {
		return err
	}
	page, err := s.deps.Entities.List(v.Context(), v.Workspace(), query)
	if err != nil {
		return err
	}
	for _, e := range page.Entities {
		shown.Entities = append(shown.Entities, entity{e, whose{By: e.Type, Value: e.ID}.address(shown.Here)})
	}
	next, err := httpapi.SealEntityPlace(v.Caller.Workspace, "console entities", query.Type, page.Next)
	shown.paged(url.Values{"by": {string(query.Type)}}, cursor, next)
	return err
}

func known(kind recall.EntityType) bool {
	_, ok := kind.ScopeOf("x")
	return ok
}

// newest lists somebody's records, newest first.
func (s section) newest(v *frame.Visit, shown *list) error {
	query, cursor := recall.MemoryQuery{Scope: shown.Scope, Limit: perPage}, cursorOf(v)
	var err error
	if query.After, err = httpapi.OpenPlace(v.Caller.Workspace, "console memories", shown.Scope, cursor); err != nil {
		return err
	}
	page, err := s.deps.Reader.List(v.Context(), v.Workspace(), query)
	if err != nil {
		return err
	}
	shown.Rows = s.rows(v, shown.whose, page.Records, false)
	next, err := httpapi.SealPlace(v.Caller.Workspace, "console memories", shown.Scope, page.Next)
	shown.paged(url.Values{"by": {string(shown.By)}, "value": {shown.Value}}, cursor, next)
	return err
}

// search lists what answers a question best, as the API finds it, with the parts of each score.
func (s section) search(v *frame.Visit, shown *list) error {
	records, err := s.deps.Searcher.Search(v.Context(), v.Workspace(), recall.SearchQuery{
		Text: shown.Query, Scope: shown.Scope, Limit: searched, Mode: recall.Hybrid, LatestOnly: true, Explain: true,
	})
	shown.Rows, shown.Searched = s.rows(v, shown.whose, records, true), true
	return err
}

func (l *list) paged(query url.Values, cursor, next *string) {
	link := func(cursor string) string {
		query.Del("cursor")
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		return l.Here + "?" + query.Encode()
	}
	if cursor != nil {
		l.First = link("")
	}
	if next != nil {
		l.Next = link(*next)
	}
}

func (s section) rows(v *frame.Visit, chosen whose, records []memory.Record, scored bool) []row {
	rows := make([]row, len(records))
	for i, r := range records {
		rows[i] = row{
			Text: r.Text, Link: s.linkTo(v, r.ID), ID: r.ID, Type: string(r.Type), At: r.CreatedAt, Expiry: r.ExpiresAt,
			Other: scopeText(without(r.Scope, chosen.By)),
		}
		if scored {
			rows[i].Score = scoreOf(i+1, r)
		}
	}
	return rows
}

func scoreOf(place int, r memory.Record) *score {
	s := score{Place: place, Fused: fraction(r.Score)}
	if parts := r.Explain; parts != nil {
		s.Words, s.Meanings = part(parts.LexicalRank, parts.LexicalScore), part(parts.SemanticRank, parts.SemanticScore)
	}
	return &s
}

// part is a place in one of the rankings with its score, empty for a record that this way didn't find.
func part(rank int, score float64) string {
	if rank == 0 {
		return ""
	}
	return "#" + strconv.Itoa(rank) + " · " + fraction(score)
}

func fraction(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }

func (s section) linkTo(v *frame.Visit, id uuid.UUID) string {
	return v.Link("/memories/mem_" + id.String())
}

// without is the scope but for the value that the page is about anyway.
func without(scope memory.Scope, by recall.EntityType) memory.Scope {
	switch by {
	case recall.User:
		scope.UserID = ""
	case recall.Agent:
		scope.AgentID = ""
	case recall.Run:
		scope.RunID = ""
	case recall.App:
		scope.AppID = ""
	}
	return scope
}

// scopeText is a scope in one line.
func scopeText(scope memory.Scope) string {
	text := ""
	for _, part := range []struct{ name, value string }{
		{"user", scope.UserID}, {"agent", scope.AgentID}, {"run", scope.RunID}, {"app", scope.AppID},
	} {
		if part.value == "" {
			continue
		}
		if text != "" {
			text += " · "
		}
		text += part.name + " " + part.value
	}
	return text
}
