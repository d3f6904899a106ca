package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// Bulk retries and cancels many events.
type Bulk interface {
	Preview(ctx context.Context, workspace uuid.UUID, choice write.BulkChoice) (write.BulkPreview, error)
	Run(ctx context.Context, workspace, id uuid.UUID, choice write.BulkChoice, after *write.BulkPlace) (write.BulkDone, error)
}

// Pauses let work wait.
type Pauses interface {
	PauseWorkspace(ctx context.Context, idOrName string, paused bool) (operator.Workspace, error)
	PauseProvider(ctx context.Context, provider, reason string) error
	ResumeProvider(ctx context.Context, provider string) error
}

// choice is the body of a bulk, which is the same for its preview.
type choice struct {
	Act     write.BulkAct `json:"act"`
	Code    string        `json:"code"`
	Since   time.Time     `json:"since"`
	Until   time.Time     `json:"until"`
	UserID  string        `json:"user_id"`
	AgentID string        `json:"agent_id"`
	RunID   string        `json:"run_id"`
	AppID   string        `json:"app_id"`
	Cursor  string        `json:"cursor"`
}

func (c choice) meant() write.BulkChoice {
	return write.BulkChoice{
		Act: c.Act, Code: c.Code, Since: c.Since, Until: c.Until,
		Scope: memory.Scope{UserID: c.UserID, AgentID: c.AgentID, RunID: c.RunID, AppID: c.AppID},
	}
}

// chosen reads the body and whose workspace it is about.
func (a *api) chosen(r *http.Request) (operator.Workspace, choice, error) {
	var body choice
	if err := read(r, &body); err != nil {
		return operator.Workspace{}, body, err
	}
	w, err := a.deps.Workspaces.Workspace(r.Context(), r.PathValue("workspace"))
	return w, body, err
}

type bulkLine struct {
	Class   string `json:"class"`
	Count   int    `json:"count"`
	Credits int64  `json:"credits"`
}

func (a *api) previewBulk(r *http.Request) (int, any, error) {
	w, body, err := a.chosen(r)
	if err != nil {
		return 0, nil, err
	}
	p, err := a.deps.Bulk.Preview(r.Context(), w.ID, body.meant())
	if err != nil {
		return 0, nil, err
	}
	lines := make([]bulkLine, len(p.Lines))
	for i, l := range p.Lines {
		lines[i] = bulkLine{string(l.Class), l.Count, int64(l.Credits)}
	}
	return http.StatusOK, map[string]any{
		"act": body.Act, "until": p.Until, "count": p.Count, "credits": p.Credits, "available": w.Available, "input_gone": p.Gone,
		"classes": lines, "more": p.More,
	}, nil
}

func (a *api) runBulk(r *http.Request) (int, any, error) {
	w, body, err := a.chosen(r)
	if err != nil {
		return 0, nil, err
	}
	id, err := uuid.Parse(r.PathValue("bulk"))
	if err != nil {
		return 0, nil, fault.At(fault.InvalidRequest, "/bulk", "a UUID of the bulk's own")
	}
	var after *write.BulkPlace
	if body.Cursor != "" {
		place, ok := placeOf(body.Cursor)
		if !ok {
			return 0, nil, fault.New(fault.InvalidCursor)
		}
		after = &write.BulkPlace{At: place.At, ID: place.ID}
	}
	page, err := a.deps.Bulk.Run(r.Context(), w.ID, id, body.meant(), after)
	if err != nil {
		return 0, nil, err
	}
	var next *string
	if page.Next != nil {
		cursor := cursorOf(operator.ActPlace{At: page.Next.At, ID: page.Next.ID})
		next = &cursor
	}
	return http.StatusOK, map[string]any{"done": page.Done, "done_before": page.Before, "refused": page.Refused, "next_cursor": next}, nil
}

func (a *api) pauseWorkspace(r *http.Request) (int, any, error) {
	w, err := a.deps.Pauses.PauseWorkspace(r.Context(), r.PathValue("workspace"), true)
	return answered(http.StatusOK, w, err)
}

func (a *api) unpauseWorkspace(r *http.Request) (int, any, error) {
	w, err := a.deps.Pauses.PauseWorkspace(r.Context(), r.PathValue("workspace"), false)
	return answered(http.StatusOK, w, err)
}

func (a *api) pauseProvider(r *http.Request) (int, any, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := read(r, &body); err != nil {
		return 0, nil, err
	}
	return a.providerIs(r, true, a.deps.Pauses.PauseProvider(r.Context(), r.PathValue("provider"), body.Reason))
}

func (a *api) resumeProvider(r *http.Request) (int, any, error) {
	return a.providerIs(r, false, a.deps.Pauses.ResumeProvider(r.Context(), r.PathValue("provider")))
}

func (a *api) providerIs(r *http.Request, paused bool, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"provider": r.PathValue("provider"), "paused": paused}, nil
}
