package memories

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

//go:embed pages/*.html
var pages embed.FS

// Reader reads records. Fault MEMORY_NOT_FOUND.
type Reader interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (memory.Record, error)
	List(ctx context.Context, workspace uuid.UUID, query recall.MemoryQuery) (recall.MemoryPage, error)
	History(ctx context.Context, workspace uuid.UUID, query recall.HistoryQuery) (recall.History, error)
}

// Searcher finds records.
type Searcher interface {
	Search(ctx context.Context, workspace uuid.UUID, query recall.SearchQuery) ([]memory.Record, error)
}

// Entities lists who has records.
type Entities interface {
	List(ctx context.Context, workspace uuid.UUID, query recall.EntityQuery) (recall.EntityPage, error)
}

// Records names the records of a scope, so many at most.
type Records interface {
	Searched(ctx context.Context, workspace uuid.UUID, within recall.Searched) ([]recall.Ref, error)
}

// Finder finds the events of a scope.
type Finder interface {
	FoundEvents(ctx context.Context, workspace uuid.UUID, filter recall.EventFilter) (recall.EventPage, error)
}

// Eraser removes everything of a scope.
type Eraser interface {
	Erase(ctx context.Context, caller access.Caller, key *command.Key, scope memory.Scope) (write.Erased, error)
}

// Deps are what the section needs, all of it.
type Deps struct {
	Reader   Reader
	Searcher Searcher
	Entities Entities
	Records  Records
	Finder   Finder
	Eraser   Eraser
}

type section struct{ deps Deps }

// Page returns the section.
func Page(deps Deps) (frame.Page, error) {
	if deps.Reader == nil || deps.Searcher == nil || deps.Entities == nil || deps.Records == nil || deps.Finder == nil || deps.Eraser == nil {
		return frame.Page{}, errors.New("console: memories: all dependencies are required")
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
		Name: "Memories", Key: "m", Needs: access.MemoryRead, Templates: templates, Routes: []frame.Route{
			route(http.MethodGet, "/memories", access.MemoryRead, s.list),
			route(http.MethodGet, "/memories/{id}", access.MemoryRead, s.show),
			route(http.MethodGet, "/erase", access.Admin, s.askErase),
			route(http.MethodPost, "/erase", access.Admin, s.erase),
		},
	}, nil
}
