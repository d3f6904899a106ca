package httpapi

import (
	"context"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// ListEvents answers one page of events, or what became of an idempotency key.
func (s *Server) ListEvents(ctx context.Context, request contract.ListEventsRequestObject) (contract.ListEventsResponseObject, error) {
	p := request.Params
	this := callOf(ctx)
	if this.key != nil {
		if p.Status != nil || p.Type != nil || p.Cursor != nil {
			return nil, inQuery("", "no status, type or cursor beside an Idempotency-Key")
		}
		return s.eventOfKey(ctx, this.caller.Workspace, *this.key)
	}
	ask := eventList{endpoint: "events", kinds: []task.Kind{task.Infer}, status: p.Status, cursor: p.Cursor, limit: p.Limit}
	if p.Type != nil {
		ask.kinds = []task.Kind{task.Kind(*p.Type)}
	}
	return s.listEvents(ctx, this.caller.Workspace, ask)
}

// ListOperations answers one page of durable work of all kinds.
func (s *Server) ListOperations(ctx context.Context, request contract.ListOperationsRequestObject) (contract.ListOperationsResponseObject, error) {
	p := request.Params
	ask := eventList{
		endpoint: "operations", kinds: task.Kinds(), status: p.Status, cursor: p.Cursor, limit: p.Limit,
	}
	if p.Type != nil {
		ask.kinds = []task.Kind{task.Kind(*p.Type)}
	}
	return s.listEvents(ctx, callOf(ctx).caller.Workspace, ask)
}

// eventList is a request for a page of either list.
type eventList struct {
	endpoint string
	kinds    []task.Kind
	status   *contract.EventStatus
	cursor   *string
	limit    *int
}

func (s *Server) listEvents(ctx context.Context, workspace access.Workspace, ask eventList) (answer, error) {
	query := recall.EventQuery{
		Kinds: ask.kinds, Status: task.EventStatus(or(ask.status, "")), Limit: or(ask.limit, defaultPage),
	}
	here := listing{workspace: workspace, endpoint: ask.endpoint, query: []any{query.Kinds, query.Status}}
	at, err := here.open(ask.cursor)
	if err != nil {
		return answer{}, err
	}
	if at != nil {
		place := at.place()
		query.After = &place
	}
	page, err := s.deps.Events.List(ctx, workspace.ID, query)
	if err != nil {
		return answer{}, err
	}
	next, err := here.next(page.Next)
	if err != nil {
		return answer{}, err
	}
	results := make([]contract.Event, len(page.Events))
	for i, event := range page.Events {
		results[i] = eventOf(event)
	}
	return ok(contract.EventPage{Results: results, NextCursor: next}), nil
}

func (s *Server) eventOfKey(ctx context.Context, workspace access.Workspace, key command.Key) (answer, error) {
	event, found, err := s.deps.Events.ByKey(ctx, workspace.ID, key.Hash())
	if err != nil {
		return answer{}, err
	}
	page := contract.EventPage{Results: []contract.Event{}}
	if found {
		page.Results = append(page.Results, eventOf(event))
	}
	return ok(page), nil
}
