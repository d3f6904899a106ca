package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// GetEvent answers one event, after a wait if the caller asked for one.
func (s *Server) GetEvent(ctx context.Context, request contract.GetEventRequestObject) (contract.GetEventResponseObject, error) {
	p := request.Params
	return s.readEvent(ctx, request.Id, p.Wait, p.Prefer, p.IfNoneMatch)
}

// GetOperation does the same under the general name.
func (s *Server) GetOperation(ctx context.Context, request contract.GetOperationRequestObject) (contract.GetOperationResponseObject, error) {
	p := request.Params
	return s.readEvent(ctx, request.Id, p.Wait, p.Prefer, p.IfNoneMatch)
}

func (s *Server) readEvent(ctx context.Context, text string, query *int, prefer, ifNoneMatch *string) (answer, error) {
	id, err := uuid.Parse(text) // the guard has left a plain UUID here
	if err != nil {
		return answer{}, fault.New(fault.EventNotFound)
	}
	wait, err := waitOf(query, prefer)
	if err != nil {
		return answer{}, err
	}
	event, waited, err := s.await(ctx, id, wait, ifNoneMatch)
	if err != nil {
		return answer{}, err
	}
	raw, err := encode(eventOf(event))
	if err != nil {
		return answer{}, err
	}
	tag := etagOf(raw)
	header := map[string]string{"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
	if !event.Status.Terminal() {
		header["Retry-After"] = pollAfter(event)
	}
	if waited && query == nil {
		header["Preference-Applied"] = "wait=" + seconds(wait)
	}
	if matches(ifNoneMatch, tag) {
		return answer{status: http.StatusNotModified, header: header}, nil
	}
	return answer{status: http.StatusOK, header: header, raw: raw}, nil
}

// await reads the event, or waits until it is terminal or, with a tag, other than the tag says. A wait gives its
// place among the working requests to others, and ends early when the server stops. It tells whether it would have
// waited.
func (s *Server) await(ctx context.Context, id uuid.UUID, wait time.Duration, ifNoneMatch *string) (event recall.Event, waited bool, err error) {
	this := callOf(ctx)
	workspace := this.caller.Workspace.ID
	if wait == 0 {
		event, err = s.deps.Events.Get(ctx, workspace, id)
		return event, false, err
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default: // too many wait already: this one asks again after Retry-After
		event, err = s.deps.Events.Get(ctx, workspace, id)
		return event, false, err
	}
	this.leave()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.draining:
			cancel()
		case <-waiting.Done():
		}
	}()
	event, err = s.deps.Events.Wait(waiting, workspace, id, wait, func(e recall.Event) bool {
		if ifNoneMatch == nil {
			return false
		}
		raw, err := encode(eventOf(e))
		return err != nil || !matches(ifNoneMatch, etagOf(raw))
	})
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		event, err = s.deps.Events.Get(ctx, workspace, id) // the stop met a read of the wait
	}
	return event, true, err
}

// pollAfter tells when to ask again: in a second, or when a waiting retry is due. It is advice only, so this
// process's clock will do.
func pollAfter(event recall.Event) string {
	after := retrySoon
	if event.NextAttemptAt != nil {
		after = min(max(time.Until(*event.NextAttemptAt), retrySoon), maxWait)
	}
	return seconds(after)
}
