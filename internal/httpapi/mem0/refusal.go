package mem0

import (
	"maps"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

// problem is a refusal with the members that the different clients read.
type problem struct {
	Detail    string         `json:"detail"`
	Error     string         `json:"error"`
	Message   string         `json:"message"`
	Code      string         `json:"code"`
	RequestID string         `json:"request_id"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details,omitempty"`
}

// refusal is the form of refusals.
func refusal(p contract.Problem) any {
	shown := problem{
		Detail: p.Detail, Error: p.Detail, Message: p.Detail, Code: p.Code, RequestID: p.RequestId, Retryable: p.Retryable,
	}
	switch p.Code {
	case string(fault.MemoryNotFound):
		shown.say(notFound)
	case string(fault.EventNotFound):
		shown.say(eventNotFound)
	}
	if p.Details != nil {
		shown.Details = maps.Clone(*p.Details)
	}
	if own, said := shown.Details[words].(string); said {
		shown.say(own)
		delete(shown.Details, words)
	}
	return shown
}

func (p *problem) say(text string) { p.Detail, p.Error, p.Message = text, text, text }

// words is the detail under which a fault brings its own words along.
const words = "words"

// What a missing memory and a missing event are called where the clients come from.
const (
	notFound      = "Memory not found!"
	eventNotFound = "Event not found or not of this workspace."
)
