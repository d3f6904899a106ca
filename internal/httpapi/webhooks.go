package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const webhookPrefix = "whk_"

// Webhooks manages webhooks. A secret is answered when it is made, and never again.
type Webhooks interface {
	Create(ctx context.Context, caller access.Caller, wanted endpoint.Change) (endpoint.Endpoint, endpoint.Secret, error)
	Change(ctx context.Context, caller access.Caller, id uuid.UUID, change endpoint.Change) (endpoint.Endpoint, error)
	Delete(ctx context.Context, caller access.Caller, id uuid.UUID) error
	Rotate(ctx context.Context, caller access.Caller, id uuid.UUID) (endpoint.Endpoint, endpoint.Secret, error)
}

// Replayer makes deliveries that are asked for.
type Replayer interface {
	Test(ctx context.Context, caller access.Caller, id uuid.UUID) (endpoint.Delivery, error)
	Replay(ctx context.Context, caller access.Caller, id uuid.UUID, which endpoint.Selection, after *write.ReplayPlace) (write.Replayed, error)
}

// WebhookReader reads webhooks and what was sent to them.
type WebhookReader interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (endpoint.Endpoint, error)
	List(ctx context.Context, workspace uuid.UUID) ([]endpoint.Endpoint, error)
	Deliveries(ctx context.Context, workspace, id uuid.UUID, after *recall.Place, limit int) (recall.DeliveryPage, error)
}

// CreateWebhook makes a webhook and shows its secret.
func (s *Server) CreateWebhook(ctx context.Context, request contract.CreateWebhookRequestObject) (contract.CreateWebhookResponseObject, error) {
	body := request.Body
	types := typesOf(body.EventTypes)
	made, secret, err := s.deps.Webhooks.Create(ctx, callOf(ctx).caller, endpoint.Change{
		Name: body.Name, URL: &body.Url, Types: &types, Kinds: kindsOf(body.Kinds),
	})
	if err != nil {
		return nil, err
	}
	shown := webhookOf(made)
	return answer{
		status: http.StatusCreated, header: map[string]string{"Location": "/v1/webhooks/" + shown.Id},
		body: withSecret(shown, secret),
	}, nil
}

// ListWebhooks answers all webhooks.
func (s *Server) ListWebhooks(ctx context.Context, _ contract.ListWebhooksRequestObject) (contract.ListWebhooksResponseObject, error) {
	all, err := s.deps.WebhookReader.List(ctx, callOf(ctx).caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	shown := contract.WebhookList{Results: make([]contract.Webhook, len(all))}
	for i, e := range all {
		shown.Results[i] = webhookOf(e)
	}
	return ok(shown), nil
}

// GetWebhook answers one webhook.
func (s *Server) GetWebhook(ctx context.Context, request contract.GetWebhookRequestObject) (contract.GetWebhookResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.WebhookNotFound)
	}
	e, err := s.deps.WebhookReader.Get(ctx, callOf(ctx).caller.Workspace.ID, id)
	if err != nil {
		return nil, err
	}
	return ok(webhookOf(e)), nil
}

// ChangeWebhook changes the members that are given.
func (s *Server) ChangeWebhook(ctx context.Context, request contract.ChangeWebhookRequestObject) (contract.ChangeWebhookResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.WebhookNotFound)
	}
	body := request.Body
	change := endpoint.Change{Name: body.Name, URL: body.Url, Kinds: kindsOf(body.Kinds), Active: body.Active}
	if body.EventTypes != nil {
		types := typesOf(*body.EventTypes)
		change.Types = &types
	}
	e, err := s.deps.Webhooks.Change(ctx, callOf(ctx).caller, id, change)
	if err != nil {
		return nil, err
	}
	return ok(webhookOf(e)), nil
}

// DeleteWebhook ends a webhook with its deliveries.
func (s *Server) DeleteWebhook(ctx context.Context, request contract.DeleteWebhookRequestObject) (contract.DeleteWebhookResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.WebhookNotFound)
	}
	if err := s.deps.Webhooks.Delete(ctx, callOf(ctx).caller, id); err != nil {
		return nil, err
	}
	return ok(contract.WebhookDeleted{Id: endpoint.PublicID(id), Deleted: true}), nil
}

// RotateWebhookSecret gives a webhook a new secret and shows it.
func (s *Server) RotateWebhookSecret(ctx context.Context, request contract.RotateWebhookSecretRequestObject) (contract.RotateWebhookSecretResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.WebhookNotFound)
	}
	e, secret, err := s.deps.Webhooks.Rotate(ctx, callOf(ctx).caller, id)
	if err != nil {
		return nil, err
	}
	return ok(withSecret(webhookOf(e), secret)), nil
}

// TestWebhook sends a message that tells nothing.
func (s *Server) TestWebhook(ctx context.Context, request contract.TestWebhookRequestObject) (contract.TestWebhookResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.WebhookNotFound)
	}
	d, err := s.deps.Replayer.Test(ctx, callOf(ctx).caller, id)
	if err != nil {
		return nil, err
	}
	shown := deliveryOf(d)
	header := map[string]string{"Location": "/v1/events/" + shown.Id, "Retry-After": seconds(retrySoon)}
	return answer{status: http.StatusAccepted, header: header, body: shown}, nil
}

// ListDeliveries answers one page of what was sent.
func (s *Server) ListDeliveries(ctx context.Context, request contract.ListDeliveriesRequestObject) (contract.ListDeliveriesResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.WebhookNotFound)
	}
	workspace := callOf(ctx).caller.Workspace
	here := listing{workspace: workspace, endpoint: "deliveries", query: id}
	at, err := here.open(request.Params.Cursor)
	if err != nil {
		return nil, err
	}
	var after *recall.Place
	if at != nil {
		place := at.place()
		after = &place
	}
	page, err := s.deps.WebhookReader.Deliveries(ctx, workspace.ID, id, after, or(request.Params.Limit, defaultPage))
	if err != nil {
		return nil, err
	}
	next, err := here.next(page.Next)
	if err != nil {
		return nil, err
	}
	results := make([]contract.Delivery, len(page.Deliveries))
	for i, d := range page.Deliveries {
		results[i] = deliveryOf(d)
	}
	return ok(contract.DeliveryPage{Results: results, NextCursor: next}), nil
}

// ReplayWebhook sends deliveries again.
func (s *Server) ReplayWebhook(ctx context.Context, request contract.ReplayWebhookRequestObject) (contract.ReplayWebhookResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.WebhookNotFound)
	}
	this := callOf(ctx)
	body := request.Body
	which := endpoint.Selection{Since: body.Since, Until: body.Until, FailedOnly: or(body.FailedOnly, false)}
	if which.Since == nil && which.Until == nil && !which.FailedOnly {
		return nil, fault.At(fault.InvalidRequest, "", "at least one of since, until and failed_only")
	}
	here := listing{workspace: this.caller.Workspace, endpoint: "replay", query: []any{id, micros(which.Since), micros(which.Until), which.FailedOnly}}
	at, err := here.open(body.Cursor)
	if err != nil {
		return nil, err
	}
	var after *write.ReplayPlace
	if at != nil {
		after = &write.ReplayPlace{At: at.place().At, ID: at.ID}
	}
	done, err := s.deps.Replayer.Replay(ctx, this.caller, id, which, after)
	if err != nil {
		return nil, err
	}
	shown := contract.ReplayResult{Replayed: done.Count}
	if done.Next != nil {
		next, err := here.next(&recall.Place{At: done.Next.At, ID: done.Next.ID})
		if err != nil {
			return nil, err
		}
		shown.NextCursor = next
	}
	return answer{status: http.StatusAccepted, body: shown}, nil
}

// micros is a time in a cursor's binding, 0 for none.
func micros(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMicro()
}

func typesOf(given []contract.WebhookType) []endpoint.Type {
	types := make([]endpoint.Type, len(given))
	for i, t := range given {
		types[i] = endpoint.Type(t)
	}
	return types
}

func kindsOf(given *[]contract.WebhookKind) *[]task.Kind {
	if given == nil {
		return nil
	}
	kinds := make([]task.Kind, len(*given))
	for i, k := range *given {
		kinds[i] = task.Kind(k)
	}
	return &kinds
}

func webhookOf(e endpoint.Endpoint) contract.Webhook {
	shown := contract.Webhook{
		Id: endpoint.PublicID(e.ID), Name: e.Name, Url: e.URL, EventTypes: make([]contract.WebhookType, len(e.Types)),
		Kinds: make([]contract.WebhookKind, len(e.Kinds)), Active: e.Active, FailingSince: utc(e.FailingSince),
		CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(),
	}
	for i, t := range e.Types {
		shown.EventTypes[i] = contract.WebhookType(t)
	}
	for i, k := range e.Kinds {
		shown.Kinds[i] = contract.WebhookKind(k)
	}
	if e.Reason != "" {
		reason := contract.WebhookDisabledReason(e.Reason)
		shown.DisabledReason = &reason
	}
	return shown
}

func withSecret(w contract.Webhook, secret endpoint.Secret) contract.WebhookWithSecret {
	return contract.WebhookWithSecret{
		Id: w.Id, Name: w.Name, Url: w.Url, EventTypes: w.EventTypes, Kinds: w.Kinds, Active: w.Active,
		DisabledReason: w.DisabledReason, FailingSince: w.FailingSince, CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt,
		Secret: secret.Reveal(),
	}
}

func deliveryOf(d endpoint.Delivery) contract.Delivery {
	shown := contract.Delivery{
		Id: eventID(d.TaskID), MessageId: endpoint.MessageID(d.Message), Type: string(d.Type), Status: contract.EventStatus(d.Status),
		ErrorCode: present(string(d.ErrorCode)), Attempts: d.Attempts, CreatedAt: d.CreatedAt.UTC(), CompletedAt: utc(d.CompletedAt),
		NextAttemptAt: utc(d.NextAttemptAt), LastAttemptAt: utc(d.LastAt), LastStatus: d.LastStatus, LastError: present(string(d.LastError)),
	}
	if d.About != uuid.Nil {
		about := eventID(d.About)
		shown.EventId, shown.Generation = &about, &d.Generation
	}
	return shown
}

func (a answer) VisitCreateWebhookResponse(w http.ResponseWriter) error       { return a.write(w) }
func (a answer) VisitListWebhooksResponse(w http.ResponseWriter) error        { return a.write(w) }
func (a answer) VisitGetWebhookResponse(w http.ResponseWriter) error          { return a.write(w) }
func (a answer) VisitChangeWebhookResponse(w http.ResponseWriter) error       { return a.write(w) }
func (a answer) VisitDeleteWebhookResponse(w http.ResponseWriter) error       { return a.write(w) }
func (a answer) VisitRotateWebhookSecretResponse(w http.ResponseWriter) error { return a.write(w) }
func (a answer) VisitTestWebhookResponse(w http.ResponseWriter) error         { return a.write(w) }
func (a answer) VisitListDeliveriesResponse(w http.ResponseWriter) error      { return a.write(w) }
func (a answer) VisitReplayWebhookResponse(w http.ResponseWriter) error       { return a.write(w) }
