// Package workspaces is the page on which an operator chooses a workspace in the console.
//
// Rules it guards: keys never see that there are others. It belongs to the httpapi family and may import the domain.
package workspaces

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

//go:embed pages/*.html
var pages embed.FS

// Lister lists all workspaces.
type Lister interface {
	ListWorkspaces(ctx context.Context) ([]operator.Workspace, error)
}

// row is a workspace with where it is looked at, empty for one that is being deleted.
type row struct {
	operator.Workspace
	Link string
	Tone string
}

// Page returns the page.
func Page(lister Lister) (frame.Page, error) {
	if lister == nil {
		return frame.Page{}, errors.New("console: workspaces: a lister is required")
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	return frame.Page{Name: "Workspaces", Key: "w", Templates: templates, Routes: []frame.Route{{
		Method: http.MethodGet, Path: "/workspaces", Handler: func(v *frame.Visit) (frame.Answer, error) {
			all, err := lister.ListWorkspaces(v.Context())
			rows := make([]row, len(all))
			for i, w := range all {
				rows[i] = row{Workspace: w, Tone: "good"}
				if w.Deletion == nil {
					rows[i].Link = frame.RootOf(w.ID) + "/now"
				}
				if w.Status() != "active" {
					rows[i].Tone = "warn"
				}
			}
			return frame.Answer{Title: "Workspaces", Template: "workspaces.html", Data: rows}, err
		},
	}}}, nil
}
