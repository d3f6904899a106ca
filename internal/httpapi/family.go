package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// What the handlers of mounts share with the routes. Its functions of a context take that of a mount's request.

// Refuse answers a mount's request with the problem document of err.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if s := callOf(r.Context()).server; s != nil {
		s.problem(w, r, err)
		return
	}
	w.WriteHeader(statusOf(faultOf(err).Code))
}

// Refusal returns the fault in err, for a protocol that has its own form of refusals. A failure of ours is logged
// here, unless the client has gone.
func Refusal(ctx context.Context, err error) *fault.Error {
	f := faultOf(err)
	if kind := f.Kind(); (kind == fault.Internal || kind == fault.Unavailable) && !callOf(ctx).left() {
		logFailure(zerolog.Ctx(ctx), f, err)
	}
	return f
}

// AwaitEvent answers an event of the caller's workspace once it has ended, or as it is when wait has passed or the
// server stops. Like a long-poll it counts as waiting and not as working, and where too many wait already it answers
// at once.
func AwaitEvent(ctx context.Context, id uuid.UUID, wait time.Duration) (recall.Event, error) {
	s := callOf(ctx).server
	if s == nil {
		return recall.Event{}, fault.New(fault.InternalError)
	}
	event, _, err := s.await(ctx, id, min(wait, maxWait), nil)
	return event, err
}

// EventOf is the representation of an event.
func EventOf(event recall.Event) contract.Event { return eventOf(event) }

// ParseEventID reads an event's id with its prefix or bare; false for anything else.
func ParseEventID(text string) (uuid.UUID, bool) { return parseID(eventPrefix, text) }

// SealPlace returns the cursor of a place in a list, nil at the list's end. It opens only for the same workspace,
// list and query.
func SealPlace(workspace access.Workspace, list string, query any, place *recall.Place) (*string, error) {
	return listing{workspace: workspace, endpoint: list, query: query}.next(place)
}

// OpenPlace returns the place of a cursor, nil without one, and a fault INVALID_CURSOR for a cursor that was not made
// for this workspace, list and query.
func OpenPlace(workspace access.Workspace, list string, query any, cursor *string) (*recall.Place, error) {
	at, err := listing{workspace: workspace, endpoint: list, query: query}.open(cursor)
	if err != nil || at == nil {
		return nil, err
	}
	place := at.place()
	return &place, nil
}
