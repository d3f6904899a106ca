package mem0

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Browser reads single records, those that lists don't show any more too, and pages of lists with their totals.
type Browser interface {
	Memory(ctx context.Context, workspace, id uuid.UUID) (recall.Kept, error)
	Memories(ctx context.Context, workspace uuid.UUID, query recall.BrowseQuery) (recall.Browsed, error)
	Entities(ctx context.Context, workspace uuid.UUID, page recall.PageQuery) (recall.BrowsedEntities, error)
	Events(ctx context.Context, workspace uuid.UUID, kinds []task.Kind, page recall.PageQuery) (recall.BrowsedEvents, error)
}

// Deps are the use cases that the dialect serves, all of them required.
type Deps struct {
	Accepter      httpapi.Accepter
	Writer        httpapi.Writer
	Changer       httpapi.Changer
	Batcher       httpapi.Batcher
	Eraser        httpapi.Eraser
	Events        httpapi.Events
	Memories      httpapi.Memories
	Entities      httpapi.Entities
	Searcher      httpapi.Searcher
	Browser       Browser
	Policies      httpapi.Policies
	Feedbacks     httpapi.Feedbacks
	ExportDefiner ExportDefiner
	ExportReader  ExportReader
	Webhooks      httpapi.Webhooks
	WebhookReader httpapi.WebhookReader
}

// New returns the dialect, to be invited into an httpapi.Server.
func New(deps Deps) (httpapi.Guest, error) {
	if deps.Accepter == nil || deps.Writer == nil || deps.Changer == nil || deps.Batcher == nil || deps.Eraser == nil {
		return httpapi.Guest{}, errors.New("mem0: accepter, writer, changer, batcher and eraser are required")
	}
	if deps.Events == nil || deps.Memories == nil || deps.Entities == nil || deps.Searcher == nil || deps.Browser == nil {
		return httpapi.Guest{}, errors.New("mem0: events, memories, entities, searcher and browser are required")
	}
	if deps.Policies == nil || deps.Feedbacks == nil || deps.ExportDefiner == nil || deps.ExportReader == nil {
		return httpapi.Guest{}, errors.New("mem0: policies, feedbacks, export definer and export reader are required")
	}
	if deps.Webhooks == nil || deps.WebhookReader == nil {
		return httpapi.Guest{}, errors.New("mem0: webhooks and a reader of webhooks are required")
	}
	h := handlers{deps}
	return httpapi.Guest{Scheme: "Token", Routes: h.routes(), Refuse: refusal}, nil
}

type handlers struct{ deps Deps }
