package recovery

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/write"
)

//go:embed pages/*.html
var pages embed.FS

// Bulk retries and cancels many events.
type Bulk interface {
	Preview(ctx context.Context, workspace uuid.UUID, choice write.BulkChoice) (write.BulkPreview, error)
	Run(ctx context.Context, workspace, id uuid.UUID, choice write.BulkChoice, after *write.BulkPlace) (write.BulkDone, error)
}

// Balances reads what a workspace may spend.
type Balances interface {
	Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error)
}

// Deps are what the section needs, all of it.
type Deps struct {
	Bulk     Bulk
	Balances Balances
}

type section struct{ deps Deps }

// Page returns the section.
func Page(deps Deps) (frame.Page, error) {
	if deps.Bulk == nil || deps.Balances == nil {
		return frame.Page{}, errors.New("console: recovery: all dependencies are required")
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	s := section{deps}
	return frame.Page{
		Name: "Recovery", Key: "r", Templates: templates, Routes: []frame.Route{
			{Method: http.MethodGet, Path: "/recovery", Workspace: true, Operators: true, Handler: s.ask},
			{Method: http.MethodPost, Path: "/recovery", Workspace: true, Operators: true, Handler: s.run},
		},
	}, nil
}
