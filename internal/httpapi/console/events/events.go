package events

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

//go:embed pages/*.html
var pages embed.FS

// Reader reads events. Fault EVENT_NOT_FOUND.
type Reader interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (recall.Event, error)
	ByKey(ctx context.Context, workspace uuid.UUID, keyHash [sha256.Size]byte) (recall.Event, bool, error)
}

// Finder finds events by what a person knows of them.
type Finder interface {
	FoundEvents(ctx context.Context, workspace uuid.UUID, filter recall.EventFilter) (recall.EventPage, error)
}

// Lives reads how an event came about. Fault EVENT_NOT_FOUND.
type Lives interface {
	Life(ctx context.Context, workspace, id uuid.UUID) (recall.Life, error)
}

// Balances reads a workspace's account.
type Balances interface {
	Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error)
}

// Retrier authorises a new run of a failed event.
type Retrier interface {
	Retry(ctx context.Context, caller access.Caller, event uuid.UUID, generation *int, key *command.Key) (replayed bool, err error)
}

// Canceller ends an event before it commits.
type Canceller interface {
	Cancel(ctx context.Context, caller access.Caller, event uuid.UUID) error
}

// Deps are what the section needs, all of it.
type Deps struct {
	Reader    Reader
	Finder    Finder
	Lives     Lives
	Balances  Balances
	Retrier   Retrier
	Canceller Canceller
	Prices    credit.Prices
}

type section struct{ deps Deps }

// Page returns the section.
func Page(deps Deps) (frame.Page, error) {
	if deps.Reader == nil || deps.Finder == nil || deps.Lives == nil || deps.Balances == nil || deps.Retrier == nil || deps.Canceller == nil {
		return frame.Page{}, errors.New("console: events: all dependencies are required")
	}
	if err := deps.Prices.Validate(); err != nil {
		return frame.Page{}, err
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	s := section{deps}
	route := func(method, path string, needs access.Permission, handler func(*frame.Visit) (frame.Answer, error)) frame.Route {
		return frame.Route{Method: method, Path: path, Workspace: true, Needs: needs, Handler: handler}
	}
	return frame.Page{
		Name: "Events", Key: "e", Needs: access.OperationsRead, Templates: templates, Routes: []frame.Route{
			route(http.MethodGet, "/events", access.OperationsRead, s.list),
			route(http.MethodGet, "/events/{id}", access.OperationsRead, s.show),
			route(http.MethodGet, "/events/{id}/retry", access.OperationsRetry, s.askRetry),
			route(http.MethodPost, "/events/{id}/retry", access.OperationsRetry, s.retry),
			route(http.MethodGet, "/events/{id}/cancel", access.OperationsRetry, s.askCancel),
			route(http.MethodPost, "/events/{id}/cancel", access.OperationsRetry, s.cancel),
		},
	}, nil
}
