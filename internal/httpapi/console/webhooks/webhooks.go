package webhooks

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

//go:embed pages/*.html
var pages embed.FS

// Reader reads webhooks and what was sent to them. Fault WEBHOOK_NOT_FOUND.
type Reader interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (endpoint.Endpoint, error)
	List(ctx context.Context, workspace uuid.UUID) ([]endpoint.Endpoint, error)
	Deliveries(ctx context.Context, workspace, id uuid.UUID, after *recall.Place, limit int) (recall.DeliveryPage, error)
}

// Changer changes webhooks.
type Changer interface {
	Change(ctx context.Context, caller access.Caller, id uuid.UUID, change endpoint.Change) (endpoint.Endpoint, error)
	Rotate(ctx context.Context, caller access.Caller, id uuid.UUID) (endpoint.Endpoint, endpoint.Secret, error)
}

// Replayer makes deliveries that are asked for.
type Replayer interface {
	Test(ctx context.Context, caller access.Caller, id uuid.UUID) (endpoint.Delivery, error)
	Replay(ctx context.Context, caller access.Caller, id uuid.UUID, which endpoint.Selection, after *write.ReplayPlace) (write.Replayed, error)
}

// Deps are what the section needs, all of it.
type Deps struct {
	Reader   Reader
	Changer  Changer
	Replayer Replayer
}

type section struct{ deps Deps }

// Page returns the section.
func Page(deps Deps) (frame.Page, error) {
	if deps.Reader == nil || deps.Changer == nil || deps.Replayer == nil {
		return frame.Page{}, errors.New("console: webhooks: all dependencies are required")
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	s := section{deps}
	route := func(method, path string, handler func(*frame.Visit) (frame.Answer, error)) frame.Route {
		return frame.Route{Method: method, Path: "/webhooks" + path, Workspace: true, Needs: access.Admin, Handler: handler}
	}
	return frame.Page{
		Name: "Webhooks", Key: "h", Needs: access.Admin, Templates: templates, Routes: []frame.Route{
			route(http.MethodGet, "", s.list),
			route(http.MethodGet, "/{id}", s.show),
			route(http.MethodPost, "/{id}/active", s.activate),
			route(http.MethodPost, "/{id}/test", s.test),
			route(http.MethodGet, "/{id}/rotate", s.askRotate),
			route(http.MethodPost, "/{id}/rotate", s.rotate),
			route(http.MethodGet, "/{id}/replay", s.askReplay),
			route(http.MethodPost, "/{id}/replay", s.replay),
			route(http.MethodPost, "/{id}/deliveries/{message}/replay", s.replayOne),
		},
	}, nil
}
