package events

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	perPage = 50
	// renewed is how often the first page of a list asks again.
	renewed = 3 * time.Second
)

// option is one choice of a filter.
type option struct {
	Value, Label string
	Chosen       bool
}

// row is one event of a list.
type row struct {
	ID       uuid.UUID
	Link     string
	At       time.Time
	Kind     task.Kind
	Status   task.EventStatus
	Scope    string
	Attempts int
	// Came is what came of it in a word: an outcome or an error's code.
	Came string
	Took string
}

// list is what is shown.
type list struct {
	Here                       string
	Query, Value               string
	Statuses, Kinds, Times, By []option
	// Filtered tells that something is left out.
	Filtered bool
	NotFound bool
	Rows     []row
	// Next and First lead to other pages, empty without one. Looked tells that a page ends where looking did.
	Next, First string
	Looked      bool
}

func windows() []option {
	return []option{{Value: "15m", Label: "15 minutes"}, {Value: "1h", Label: "1 hour"}, {Value: "24h", Label: "24 hours"}, {Value: "168h", Label: "7 days"}}
}

func (s section) list(v *frame.Visit) (frame.Answer, error) {
	shown := list{Here: v.Link("/events"), Query: v.Query("q")}
	if shown.Query != "" {
		to, err := s.find(v, shown.Query)
		if err != nil || to != "" {
			return frame.Answer{To: to}, err
		}
		shown.NotFound = true
	}
	filter, chosen := filterOf(v, &shown)
	var cursor *string
	if text := v.Query("cursor"); text != "" {
		cursor = &text
	}
	var err error
	if filter.After, err = httpapi.OpenPlace(v.Caller.Workspace, "console events", chosen.Encode(), cursor); err != nil {
		return frame.Answer{}, err
	}
	page, err := s.deps.Finder.FoundEvents(v.Context(), v.Workspace(), filter)
	if err != nil {
		return frame.Answer{}, err
	}
	next, err := httpapi.SealPlace(v.Caller.Workspace, "console events", chosen.Encode(), page.Next)
	if err != nil {
		return frame.Answer{}, err
	}
	if next != nil {
		shown.Next, shown.Looked = address(shown.Here, chosen, *next), len(page.Events) < perPage
	}
	answer := frame.Answer{Title: "Events", Template: "events.html", Data: &shown}
	if cursor != nil {
		shown.First = address(shown.Here, chosen, "")
	} else if !shown.NotFound {
		answer.Every = renewed
	}
	for _, event := range page.Events {
		shown.Rows = append(shown.Rows, rowOf(v, event))
	}
	return answer, nil
}

// find answers where the event of that id or idempotency key is shown, empty for none.
func (s section) find(v *frame.Visit, text string) (string, error) {
	if id, ok := httpapi.ParseEventID(text); ok {
		_, err := s.deps.Reader.Get(v.Context(), v.Workspace(), id)
		if err == nil {
			return v.Link("/events/" + frame.EventID(id)), nil
		}
		if !fault.Is(err, fault.EventNotFound) {
			return "", err
		}
	}
	key, err := command.ParseKey([]string{text})
	if err != nil || key == nil {
		return "", nil //nolint:nilerr // what can't be a key is the key of nothing
	}
	event, found, err := s.deps.Reader.ByKey(v.Context(), v.Workspace(), key.Hash())
	if err != nil || !found {
		return "", err
	}
	return v.Link("/events/" + frame.EventID(event.ID)), nil
}

// filterOf reads the filters that a page of this list would send; others are as good as none.
func filterOf(v *frame.Visit, shown *list) (recall.EventFilter, url.Values) {
	filter, chosen := recall.EventFilter{Kinds: task.Kinds(), Limit: perPage}, url.Values{}
	keep := func(name, value string) { chosen.Set(name, value); shown.Filtered = true }
	status, ok := task.ParseEventStatus(v.Query("status"))
	if ok {
		filter.Status = status
		keep("status", string(status))
	}
	for _, known := range []task.EventStatus{task.EventPending, task.EventRunning, task.EventRetrying, task.EventSucceeded, task.EventFailed} {
		shown.Statuses = append(shown.Statuses, option{string(known), strings.ToLower(string(known)), ok && known == status})
	}
	kind := task.Kind(v.Query("kind"))
	for _, known := range task.Kinds() {
		shown.Kinds = append(shown.Kinds, option{string(known), strings.ReplaceAll(string(known), "_", " "), known == kind})
	}
	if slices.Contains(task.Kinds(), kind) {
		filter.Kinds = []task.Kind{kind}
		keep("kind", string(kind))
	}
	shown.Times = windows()
	for i := range shown.Times {
		if window := &shown.Times[i]; window.Value == v.Query("within") {
			window.Chosen = true
			filter.Within, _ = time.ParseDuration(window.Value) // it is one of ours
			keep("within", window.Value)
		}
	}
	by := recall.EntityType(v.Query("by"))
	shown.Value = v.Query("value")
	for _, known := range []recall.EntityType{recall.User, recall.Agent, recall.Run, recall.App} {
		shown.By = append(shown.By, option{string(known), string(known) + " id", known == by})
		if known == by && shown.Value != "" {
			filter.By, filter.Value = by, shown.Value
			keep("by", string(by))
			keep("value", shown.Value)
		}
	}
	return filter, chosen
}

func address(path string, chosen url.Values, cursor string) string {
	query := url.Values{}
	for name, values := range chosen {
		query[name] = values
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

func rowOf(v *frame.Visit, e recall.Event) row {
	r := row{
		ID: e.ID, Link: v.Link("/events/" + frame.EventID(e.ID)), At: e.AcceptedAt, Kind: e.Kind, Status: e.Status, Attempts: e.Attempts,
		Scope: scopeText(e.Scope), Came: string(e.Outcome),
	}
	if e.ErrorCode != "" {
		r.Came = string(e.ErrorCode)
	}
	if e.CompletedAt != nil {
		r.Took = frame.Span(e.CompletedAt.Sub(e.AcceptedAt))
	}
	return r
}

// scopeText is a scope in one line.
func scopeText(scope *memory.Scope) string {
	if scope == nil {
		return "erased"
	}
	var parts []string
	for _, part := range []struct{ name, value string }{
		{"user", scope.UserID}, {"agent", scope.AgentID}, {"run", scope.RunID}, {"app", scope.AppID},
	} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	return strings.Join(parts, " · ")
}

// may tells whether the visitor may retry and cancel.
func may(v *frame.Visit) bool { return v.May(access.OperationsRetry) }
