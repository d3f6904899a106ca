package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

// RetryEvent authorises a new run of a failed event.
func (s *Server) RetryEvent(ctx context.Context, request contract.RetryEventRequestObject) (contract.RetryEventResponseObject, error) {
	return s.retry(ctx, request.Id, request.Body)
}

// RetryOperation does the same under the general name.
func (s *Server) RetryOperation(ctx context.Context, request contract.RetryOperationRequestObject) (contract.RetryOperationResponseObject, error) {
	return s.retry(ctx, request.Id, request.Body)
}

func (s *Server) retry(ctx context.Context, text string, body *contract.RetryRequest) (answer, error) {
	id, err := uuid.Parse(text) // the guard has left a plain UUID here
	if err != nil {
		return answer{}, fault.New(fault.EventNotFound)
	}
	this := callOf(ctx)
	var generation *int
	if body != nil {
		generation = body.Generation
	}
	replayed, err := s.deps.Retrier.Retry(ctx, this.caller, id, generation, this.key)
	if err != nil {
		return answer{}, err
	}
	reply, err := s.accepted(ctx, id)
	if err == nil && replayed {
		reply.header[replayedHeader] = "true"
	}
	return reply, err
}

// CancelEvent ends an event before it commits.
func (s *Server) CancelEvent(ctx context.Context, request contract.CancelEventRequestObject) (contract.CancelEventResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.EventNotFound)
	}
	if err := s.deps.Canceller.Cancel(ctx, callOf(ctx).caller, id); err != nil {
		return nil, err
	}
	return s.accepted(ctx, id)
}

// accepted answers 202 with the event as it is now. What was asked for has been committed: when the event can't be
// read, the caller must not be told that nothing was kept.
func (s *Server) accepted(ctx context.Context, id uuid.UUID) (answer, error) {
	event, err := s.deps.Events.Get(ctx, callOf(ctx).caller.Workspace.ID, id)
	if err != nil {
		return answer{}, fault.Wrap(fault.AcceptanceUnknown, err)
	}
	header := map[string]string{"Location": "/v1/events/" + eventID(id)}
	if !event.Status.Terminal() {
		header["Retry-After"] = pollAfter(event)
	}
	return answer{status: http.StatusAccepted, header: header, body: eventOf(event)}, nil
}
