package admin

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// workspace is one as it is shown.
type workspace struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Status      string     `json:"status"`
	Metered     bool       `json:"metered"`
	Available   int64      `json:"available"`
	Held        int64      `json:"held"`
	Limits      limits     `json:"limits"`
	CreatedAt   time.Time  `json:"created_at"`
	SuspendedAt *time.Time `json:"suspended_at"`
	PausedAt    *time.Time `json:"paused_at"`
	DeletedAt   *time.Time `json:"deleted_at"`
	// EventID is the event that deletes the workspace.
	EventID string `json:"event_id,omitempty"`
}

// limits are limits of a workspace's own, 0 for the service's.
type limits struct {
	MaxPending *int `json:"max_pending"`
	RateLimit  *int `json:"rate_limit"`
	LeaseCap   *int `json:"lease_cap"`
}

func workspaceOf(w operator.Workspace) workspace {
	shown := workspace{
		ID: workspaceID(w.ID), Name: w.Name, Status: w.Status(), Metered: w.Metered, Available: w.Available, Held: w.Held,
		Limits: limits{&w.MaxPending, &w.RateLimit, &w.LeaseCap}, CreatedAt: w.CreatedAt, SuspendedAt: w.SuspendedAt,
		PausedAt: w.PausedAt, DeletedAt: w.DeletedAt,
	}
	if w.Deletion != nil {
		shown.EventID = httpapi.EventID(*w.Deletion)
	}
	return shown
}

func workspaceID(id uuid.UUID) string { return "ws_" + id.String() }

func (a *api) listWorkspaces(r *http.Request) (int, any, error) {
	found, err := a.deps.Workspaces.ListWorkspaces(r.Context())
	if err != nil {
		return 0, nil, err
	}
	shown := make([]workspace, len(found))
	for i, w := range found {
		shown[i] = workspaceOf(w)
	}
	return http.StatusOK, map[string]any{"workspaces": shown}, nil
}

// answered shows a workspace that a call led to.
func answered(status int, w operator.Workspace, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return status, workspaceOf(w), nil
}

func (a *api) createWorkspace(r *http.Request) (int, any, error) {
	var body struct {
		Metered *bool `json:"metered"`
	}
	if err := read(r, &body); err != nil {
		return 0, nil, err
	}
	metered := body.Metered == nil || *body.Metered
	w, created, err := a.deps.Workspaces.CreateWorkspace(r.Context(), r.PathValue("workspace"), metered)
	switch {
	case err != nil:
		return 0, nil, err
	case created:
		return answered(http.StatusCreated, w, nil)
	case w.Metered != metered || w.Deletion != nil:
		return 0, nil, fault.New(fault.IdempotencyConflict)
	}
	return answered(http.StatusOK, w, nil)
}

func (a *api) readWorkspace(r *http.Request) (int, any, error) {
	w, err := a.deps.Workspaces.Workspace(r.Context(), r.PathValue("workspace"))
	return answered(http.StatusOK, w, err)
}

func (a *api) deleteWorkspace(r *http.Request) (int, any, error) {
	w, err := a.deps.Deleter.DeleteWorkspace(r.Context(), r.PathValue("workspace"))
	return answered(http.StatusAccepted, w, err)
}

func (a *api) limitWorkspace(r *http.Request) (int, any, error) {
	var body limits
	if err := read(r, &body); err != nil {
		return 0, nil, err
	}
	w, err := a.deps.Workspaces.LimitWorkspace(r.Context(), r.PathValue("workspace"), operator.Limits(body))
	return answered(http.StatusOK, w, err)
}

func (a *api) suspend(r *http.Request) (int, any, error) {
	w, err := a.deps.Workspaces.SuspendWorkspace(r.Context(), r.PathValue("workspace"), true)
	return answered(http.StatusOK, w, err)
}

func (a *api) resume(r *http.Request) (int, any, error) {
	w, err := a.deps.Workspaces.SuspendWorkspace(r.Context(), r.PathValue("workspace"), false)
	return answered(http.StatusOK, w, err)
}

func (a *api) grant(r *http.Request) (int, any, error) {
	var body struct {
		Amount credit.Amount `json:"amount"`
	}
	if err := read(r, &body); err != nil {
		return 0, nil, err
	}
	ctx, reference := r.Context(), r.PathValue("reference")
	w, err := a.deps.Workspaces.Workspace(ctx, r.PathValue("workspace"))
	if err != nil {
		return 0, nil, err
	}
	granted, err := a.deps.Granter.Grant(ctx, w.ID, reference, body.Amount)
	if err != nil {
		return 0, nil, err
	}
	if w, err = a.deps.Workspaces.Workspace(ctx, workspaceID(w.ID)); err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if granted {
		status = http.StatusCreated
	}
	return status, map[string]any{
		"workspace": workspaceID(w.ID), "reference": reference, "amount": body.Amount, "granted": granted, "available": w.Available, "held": w.Held,
	}, nil
}
