package mem0

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

type feedback struct {
	ID       string           `json:"id"`
	Feedback *command.Verdict `json:"feedback"`
	Reason   *string          `json:"feedback_reason"`
}

// giveFeedback keeps what the caller says of a memory; feedback that is null takes back what was said. A memory has one
// feedback, so that its id is the memory's.
func (h handlers) giveFeedback(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	b, err := bodyOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	text, err := b.text("memory_id")
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if text == nil {
		return httpapi.GuestAnswer{}, bad("/memory_id", "required")
	}
	id, ok := httpapi.ParseMemoryID(*text)
	if !ok {
		return httpapi.GuestAnswer{}, bad("/memory_id", "a valid UUID")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(call.Body, &members) != nil || members["feedback"] == nil {
		return httpapi.GuestAnswer{}, bad("/feedback", "one of POSITIVE, NEGATIVE, VERY_NEGATIVE, or null")
	}
	verdict, err := b.text("feedback")
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if verdict != nil {
		upper := strings.ToUpper(*verdict)
		verdict = &upper
	}
	reason, err := b.text("feedback_reason")
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	given, err := command.NewFeedback(id, verdict, reason)
	if err != nil {
		return httpapi.GuestAnswer{}, renamed(err)
	}
	if _, err := h.deps.Feedbacks.Give(ctx, call.Caller, given); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: feedback{id.String(), given.Verdict, given.Reason}}, nil
}
