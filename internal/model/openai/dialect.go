package openai

import (
	"net/http"
	"sync"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// format is how strictly the server is asked for JSON, from strict to not at all.
type format int

const (
	formatSchema format = iota
	formatObject
	formatFree
)

// limit is the parameter that bounds the answer's length.
type limit int

const (
	limitCompletion limit = iota // max_completion_tokens: OpenAI's own, the only one its newer models take
	limitTokens                  // max_tokens: what every other server knows
	limitNone
)

// form is the shape of one request. There are nine, so leaving parameters out ends.
type form struct {
	format format
	limit  limit
	// switched tells that the other name of the limit was tried already.
	switched bool
}

// without returns the next simpler form if the server refused a parameter of this one.
func (f form) without(refusal model.Refusal) (form, bool) {
	switch refusal.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
	default:
		return f, false
	}
	if refusal.Filtered() || refusal.Code == "json_validate_failed" {
		return f, false
	}
	if f.format != formatFree && refusal.Mentions("response_format", "response format", "json_schema", "json schema", "json_object",
		"structured output", "grammar", "requested parameters") {
		f.format++
		return f, true
	}
	if f.limit != limitNone && (refusal.Param == "max_tokens" || refusal.Param == "max_completion_tokens" ||
		!refusal.TooLong() && refusal.Mentions("max_tokens", "max_completion_tokens")) {
		return f.withOtherLimit(), true
	}
	return f, false
}

func (f form) withOtherLimit() form {
	switch {
	case f.switched:
		f.limit = limitNone
	case f.limit == limitCompletion:
		f.limit, f.switched = limitTokens, true
	default:
		f.limit, f.switched = limitCompletion, true
	}
	return f
}

// dialect remembers the form that the server took last. It only ever changes to a form that worked.
type dialect struct {
	mu   sync.Mutex
	form form
}

func newDialect(official bool) *dialect {
	if official {
		return &dialect{form: form{limit: limitCompletion}}
	}
	return &dialect{form: form{limit: limitTokens}}
}

func (d *dialect) current() form {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.form
}

func (d *dialect) learn(worked form) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.form = worked
}
