package playground

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/events"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

//go:embed pages/*.html
var pages embed.FS

// Accepter accepts inferred adds.
type Accepter interface {
	Accept(ctx context.Context, caller access.Caller, key command.Key, add command.Add) (write.Receipt, error)
}

// Writer stores messages as they are.
type Writer interface {
	Write(ctx context.Context, caller access.Caller, key *command.Key, add command.Add) (write.Stored, error)
}

// Searcher finds records.
type Searcher interface {
	Search(ctx context.Context, workspace uuid.UUID, query recall.SearchQuery) ([]memory.Record, error)
}

// Events looks at one event. Fault EVENT_NOT_FOUND.
type Events interface {
	Look(v *frame.Visit, id uuid.UUID) (events.Glance, error)
}

// Deps are what the section needs, all of it.
type Deps struct {
	Accepter Accepter
	Writer   Writer
	Searcher Searcher
	Events   Events
	Prices   credit.Prices
}

type section struct{ deps Deps }

// Page returns the section.
func Page(deps Deps) (frame.Page, error) {
	if deps.Accepter == nil || deps.Writer == nil || deps.Searcher == nil || deps.Events == nil {
		return frame.Page{}, errors.New("console: playground: all dependencies are required")
	}
	if err := deps.Prices.Validate(); err != nil {
		return frame.Page{}, err
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	s := section{deps}
	return frame.Page{
		Name: "Playground", Key: "p", Needs: access.MemoryWrite, Templates: templates, Routes: []frame.Route{
			{Method: http.MethodGet, Path: "/playground", Workspace: true, Needs: access.MemoryWrite, Handler: s.show},
			{Method: http.MethodPost, Path: "/playground", Workspace: true, Needs: access.MemoryWrite, Handler: s.send},
		},
	}, nil
}
