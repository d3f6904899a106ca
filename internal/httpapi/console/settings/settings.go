package settings

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

//go:embed pages/*.html
var pages embed.FS

// Policies changes how the conversations of a workspace are read.
type Policies interface {
	Change(ctx context.Context, caller access.Caller, change command.PolicyChange) (command.ExtractionPolicy, error)
}

// Workspaces reads workspaces and changes their state and limits. Fault WORKSPACE_NOT_FOUND.
type Workspaces interface {
	Workspace(ctx context.Context, idOrName string) (operator.Workspace, error)
	SuspendWorkspace(ctx context.Context, idOrName string, suspended bool) (operator.Workspace, error)
	PauseWorkspace(ctx context.Context, idOrName string, paused bool) (operator.Workspace, error)
	LimitWorkspace(ctx context.Context, idOrName string, limits operator.Limits) (operator.Workspace, error)
}

// Service is what holds for workspaces without limits of their own, and for all. A limit of 0 is none.
type Service struct {
	MaxPending, RateLimit, LeaseCap int
	Prices                          credit.Prices
	// FailedInput is how long the input of a failed event is kept, Keys how long an idempotency key is known at least,
	// Acts how long the log of acts is kept.
	FailedInput, Keys, Acts time.Duration
}

// Deps are what the section needs, all of it.
type Deps struct {
	Policies   Policies
	Workspaces Workspaces
	Service    Service
}

type section struct{ deps Deps }

// Page returns the section.
func Page(deps Deps) (frame.Page, error) {
	if deps.Policies == nil || deps.Workspaces == nil {
		return frame.Page{}, errors.New("console: settings: all dependencies are required")
	}
	if err := deps.Service.Prices.Validate(); err != nil {
		return frame.Page{}, err
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	s := section{deps}
	route := func(method, path string, needs access.Permission, handler func(*frame.Visit) (frame.Answer, error)) frame.Route {
		return frame.Route{Method: method, Path: "/settings" + path, Workspace: true, Needs: needs, Handler: handler}
	}
	return frame.Page{
		Name: "Settings", Key: "s", Needs: access.MemoryRead, Templates: templates, Routes: []frame.Route{
			route(http.MethodGet, "", access.MemoryRead, s.show),
			route(http.MethodPost, "/policy", access.Admin, s.changePolicy),
			route(http.MethodPost, "/limits", access.Admin, operated(s.limit)),
			route(http.MethodGet, "/state/{state}", access.Admin, operated(s.askState)),
			route(http.MethodPost, "/state/{state}", access.Admin, operated(s.changeState)),
		},
	}, nil
}

// operated keeps what only operators may do from keys, those with every permission too.
func operated(handler func(*frame.Visit) (frame.Answer, error)) func(*frame.Visit) (frame.Answer, error) {
	return func(v *frame.Visit) (frame.Answer, error) {
		if !v.Operator() {
			return frame.Answer{}, fault.New(fault.InsufficientPermission)
		}
		return handler(v)
	}
}
