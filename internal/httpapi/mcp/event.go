package mcp

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const eventSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["event_id"],
  "properties": {
    "event_id": {"type": "string", "minLength": 36, "maxLength": 40, "description": "The event_id of a receipt."},
    "wait": {"type": "integer", "minimum": 0, "maximum": 25, "description": "Seconds to wait for its end. Without it the answer comes at once."}
  }
}`

func eventTool(deps Deps) tool {
	return tool{
		name: "get_event", title: "What became of a write",
		description: "Tells what became of an accepted write: status PENDING, RUNNING or RETRYING while it is under way, SUCCEEDED " +
			"with its outcome and results, or FAILED with the reason. The outcome NO_MEMORY means that nothing worth " +
			"keeping was said. " + notice,
		schema: eventSchema, permission: access.OperationsRead, readOnly: true, idempotent: true,
		call: func(ctx context.Context, c call) (any, error) { return getEvent(ctx, deps, c) },
	}
}

func getEvent(ctx context.Context, deps Deps, c call) (any, error) {
	var given struct {
		EventID *string `json:"event_id"`
		Wait    *int    `json:"wait"`
	}
	if err := read(c.arguments, &given); err != nil {
		return nil, err
	}
	if given.EventID == nil {
		return nil, fault.At(fault.InvalidRequest, "/event_id", "required")
	}
	wait, err := waitOf(given.Wait)
	if err != nil {
		return nil, err
	}
	id, ok := httpapi.ParseEventID(*given.EventID)
	if !ok {
		return nil, fault.New(fault.EventNotFound)
	}
	event, err := visible(ctx, deps, c, id)
	if err != nil {
		return nil, err
	}
	if wait > 0 && !event.Status.Terminal() {
		if event, err = httpapi.AwaitEvent(ctx, id, time.Duration(wait)*time.Second); err != nil {
			return nil, err
		}
		if event.Scope == nil || event.Erased { // erased while it was waited for
			return nil, fault.New(fault.EventNotFound)
		}
	}
	return eventView(event), nil
}

// visible answers an event inside the connection's scope. One outside, one that concerns no scope and one whose scope
// has been erased are answered like one that there never was.
func visible(ctx context.Context, deps Deps, c call, id uuid.UUID) (recall.Event, error) {
	event, err := deps.Events.Get(ctx, c.caller.Workspace.ID, id)
	if err != nil {
		return recall.Event{}, err
	}
	if event.Erased || event.Scope == nil || !inside(c.scope, *event.Scope) {
		return recall.Event{}, fault.New(fault.EventNotFound)
	}
	return event, nil
}

// eventView is what a model needs to know of an event.
func eventView(event recall.Event) map[string]any {
	full := httpapi.EventOf(event)
	view := map[string]any{
		"event_id": full.Id, "status": full.Status, "outcome": full.Outcome, "results": full.Results,
		"created_at": full.CreatedAt, "completed_at": full.CompletedAt, "notice": notice,
	}
	if full.Error != nil {
		view["error"] = map[string]any{
			"code": full.Error.Code, "message": full.Error.Message, "retryable": full.Error.Retryable,
			"action": full.Error.Action,
		}
	}
	return view
}
