package now

import (
	"context"
	"errors"
	"io/fs"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// Pulses reads what happens in a workspace.
type Pulses interface {
	Pulse(ctx context.Context, workspace uuid.UUID) (recall.Pulse, error)
}

// Credits reads its account.
type Credits interface {
	Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error)
}

// WorkspacePage is Now of one workspace.
func WorkspacePage(pulses Pulses, credits Credits) (frame.Page, error) {
	if pulses == nil || credits == nil {
		return frame.Page{}, errors.New("console: now: pulses and credits are required")
	}
	p := workspacePage{pulses, credits}
	return frame.Page{
		Name: "Now", Key: "n", Needs: access.OperationsRead, Templates: noTemplates(), // they come with the other page
		Routes: []frame.Route{{Method: http.MethodGet, Path: "/now", Workspace: true, Needs: access.OperationsRead, Handler: p.show}},
	}, nil
}

type none struct{}

func (none) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func noTemplates() fs.FS { return none{} }

type workspacePage struct {
	pulses  Pulses
	credits Credits
}

// pulse is what is shown.
type pulse struct {
	recall.Pulse
	Sum      recall.PulseMinute
	Drawings []drawing
	// Balance is nil for a key that may not see it.
	Balance *credit.Balance
}

func (p workspacePage) show(v *frame.Visit) (frame.Answer, error) {
	read, err := p.pulses.Pulse(v.Context(), v.Workspace())
	if err != nil {
		return frame.Answer{}, err
	}
	shown := pulse{Pulse: read, Sum: read.Totals()}
	if v.May(access.CreditsRead) {
		balance, err := p.credits.Balance(v.Context(), v.Workspace())
		if err != nil {
			return frame.Answer{}, err
		}
		shown.Balance = &balance
	}
	accepted, succeeded, failed := make([]float64, len(read.Minutes)), make([]float64, len(read.Minutes)), make([]float64, len(read.Minutes))
	for i, m := range read.Minutes {
		accepted[i], succeeded[i], failed[i] = float64(m.Accepted), float64(m.Succeeded), float64(m.Failed)
	}
	shown.Drawings = []drawing{
		bars("Accepted", frame.Number(shown.Sum.Accepted), "in the last hour", accepted, nil),
		bars("What became of them", frame.Number(shown.Sum.Succeeded), "succeeded, "+frame.Number(shown.Sum.Failed)+" failed", succeeded, failed),
	}
	return frame.Answer{
		Title: "Now", Template: "workspace.html", Data: shown, Every: renewed, Said: saying(read.Running, read.Retrying, shown.Sum.Failed),
	}, nil
}
