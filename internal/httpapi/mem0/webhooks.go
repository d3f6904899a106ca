package mem0

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	webhookUpdated = "Webhook updated successfully"
	webhookDeleted = "Webhook deleted successfully"
	hookTypesRule  = "one or several of memory_add, memory_update and memory_delete"
)

// hook is a webhook in the clients' words. Its secret is shown by the answer to its creation alone.
type hook struct {
	ID        string    `json:"webhook_id"`
	Name      string    `json:"name"`
	URL       string    `json:"url"`
	Types     []string  `json:"event_types"`
	Owner     *string   `json:"owner"`
	Active    bool      `json:"is_active"`
	Project   string    `json:"project"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Secret    string    `json:"secret,omitempty"`
}

// hookType is a type of this dialect and the kinds of work whose success it means.
type hookType struct {
	name  string
	kinds []task.Kind
}

func hookTypes() []hookType {
	return []hookType{
		{"memory_add", []task.Kind{task.Infer, task.Add, task.Item}},
		{"memory_update", []task.Kind{task.Update, task.BatchUpdate}},
		{"memory_delete", []task.Kind{task.Delete, task.BatchDelete, task.Erase}},
	}
}

func hookOf(e endpoint.Endpoint) hook {
	shown := hook{
		ID: e.ID.String(), Name: e.Name, URL: e.URL, Types: []string{}, Active: e.Active, Project: projectID(e.WorkspaceID),
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
	if !slices.Contains(e.Types, endpoint.Succeeded) { // it is told of failures, for which there is no word here
		return shown
	}
	for _, t := range hookTypes() {
		if len(e.Kinds) == 0 || slices.ContainsFunc(t.kinds, func(k task.Kind) bool { return slices.Contains(e.Kinds, k) }) {
			shown.Types = append(shown.Types, t.name)
		}
	}
	return shown
}

// webhooks answers all webhooks of the key's workspace.
func (h handlers) webhooks(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	if err := itsProject(call); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	all, err := h.deps.WebhookReader.List(ctx, call.Caller.Workspace.ID)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	shown := make([]hook, len(all))
	for i, e := range all {
		shown[i] = hookOf(e)
	}
	return httpapi.GuestAnswer{Body: shown}, nil
}

// createWebhook makes a webhook.
func (h handlers) createWebhook(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	if err := itsProject(call); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	wanted, err := hookChangeOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	made, secret, err := h.deps.Webhooks.Create(ctx, call.Caller, wanted)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	shown := hookOf(made)
	shown.Secret = secret.Reveal()
	return httpapi.GuestAnswer{Status: http.StatusCreated, Body: shown}, nil
}

// updateWebhook changes the members that are given.
func (h handlers) updateWebhook(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id, err := hookID(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	change, err := hookChangeOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if _, err := h.deps.Webhooks.Change(ctx, call.Caller, id, change); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: told{Message: webhookUpdated}}, nil
}

// deleteWebhook ends a webhook with its deliveries.
func (h handlers) deleteWebhook(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id, err := hookID(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if err := h.deps.Webhooks.Delete(ctx, call.Caller, id); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: told{Message: webhookDeleted}}, nil
}

func hookChangeOf(call httpapi.GuestCall) (endpoint.Change, error) {
	b, err := bodyOf(call)
	if err != nil {
		return endpoint.Change{}, err
	}
	var change endpoint.Change
	if change.Name, err = b.text("name"); err != nil {
		return endpoint.Change{}, err
	}
	if change.URL, err = b.text("url"); err != nil {
		return endpoint.Change{}, err
	}
	if b["is_active"] != nil {
		active, err := b.flag("is_active", true)
		if err != nil {
			return endpoint.Change{}, err
		}
		change.Active = &active
	}
	if b["event_types"] == nil {
		return change, nil
	}
	names, err := b.texts("event_types")
	if err != nil {
		return endpoint.Change{}, err
	}
	kinds, err := kindsOf(names)
	if err != nil {
		return endpoint.Change{}, err
	}
	change.Types, change.Kinds = &[]endpoint.Type{endpoint.Succeeded}, &kinds
	return change, nil
}

// kindsOf answers the kinds of work that types of this dialect mean. A type that means none here is refused: nobody
// should wait for what never comes.
func kindsOf(names []string) ([]task.Kind, error) {
	var kinds []task.Kind
	known := hookTypes()
	for _, name := range names {
		at := slices.IndexFunc(known, func(t hookType) bool { return t.name == name })
		if at < 0 {
			return nil, bad("/event_types", hookTypesRule)
		}
		if !slices.Contains(kinds, known[at].kinds[0]) {
			kinds = append(kinds, known[at].kinds...)
		}
	}
	if len(kinds) == 0 {
		return nil, bad("/event_types", hookTypesRule)
	}
	return kinds, nil
}

// itsProject refuses what is not the project of the key's workspace.
func itsProject(call httpapi.GuestCall) error {
	if call.Param("project") != projectID(call.Caller.Workspace.ID) {
		return inWords(fault.RouteNotFound, projectNotFound)
	}
	return nil
}

func hookID(call httpapi.GuestCall) (uuid.UUID, error) {
	id, err := uuid.Parse(strings.TrimPrefix(call.Param("id"), "whk_"))
	if err != nil {
		return uuid.Nil, fault.New(fault.WebhookNotFound)
	}
	return id, nil
}
