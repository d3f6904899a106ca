package memories

import (
	"net/url"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// option is one choice of a filter.
type option struct {
	Value, Label string
	Chosen       bool
}

// whose says whose records a page is about: one value of a scope, as it is kept.
type whose struct {
	By    recall.EntityType
	Value string
	Scope memory.Scope
}

// chosen tells whether it is about anybody.
func (w whose) chosen() bool { return !w.Scope.Empty() }

// address is a path about the same.
func (w whose) address(path string, more ...string) string {
	query := url.Values{"by": {string(w.By)}, "value": {w.Value}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return path + "?" + query.Encode()
}

// whoseOf reads a scope's name and value; nobody's without both. Fault INVALID_REQUEST for a value that no write takes.
func whoseOf(by, value string) (whose, error) {
	w := whose{By: recall.EntityType(by)}
	given, known := w.By.ScopeOf(value)
	if !known || value == "" {
		return whose{}, nil
	}
	var err error
	w.Scope, err = command.NewScope(present(given.UserID), present(given.AgentID), present(given.RunID), present(given.AppID))
	w.Value = w.Scope.UserID + w.Scope.AgentID + w.Scope.RunID + w.Scope.AppID // one of them is set
	return w, err
}

func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// kinds are the names of a scope to choose from.
func kinds(chosen recall.EntityType) []option {
	var all []option
	for _, known := range []recall.EntityType{recall.User, recall.Agent, recall.Run, recall.App} {
		all = append(all, option{string(known), string(known) + " id", known == chosen})
	}
	return all
}

// cursorOf is the cursor of the address, nil without one.
func cursorOf(v *frame.Visit) *string { return present(v.Query("cursor")) }
