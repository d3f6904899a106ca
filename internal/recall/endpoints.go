package recall

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
)

// EndpointStore reads webhooks. An unknown or deleted one is a fault WEBHOOK_NOT_FOUND.
type EndpointStore interface {
	Endpoint(ctx context.Context, workspace, id uuid.UUID) (endpoint.Endpoint, error)
	Endpoints(ctx context.Context, workspace uuid.UUID) ([]endpoint.Endpoint, error)
	Deliveries(ctx context.Context, workspace, id uuid.UUID, after *Place, limit int) (DeliveryPage, error)
}

// DeliveryPage is one page of a webhook's deliveries, newest first; Next is nil at the end.
type DeliveryPage struct {
	Deliveries []endpoint.Delivery
	Next       *Place
}

// Endpoints reads webhooks and what was sent to them.
type Endpoints struct{ store EndpointStore }

// NewEndpoints returns a reader of webhooks.
func NewEndpoints(store EndpointStore) (*Endpoints, error) {
	if store == nil {
		return nil, errors.New("endpoints: a store is required")
	}
	return &Endpoints{store: store}, nil
}

// Get answers one webhook.
func (e *Endpoints) Get(ctx context.Context, workspace, id uuid.UUID) (endpoint.Endpoint, error) {
	return e.store.Endpoint(ctx, workspace, id)
}

// List answers all webhooks of the workspace, the oldest first: there are few.
func (e *Endpoints) List(ctx context.Context, workspace uuid.UUID) ([]endpoint.Endpoint, error) {
	return e.store.Endpoints(ctx, workspace)
}

// Deliveries answers one page of what was sent, newest first; what is sent meanwhile moves no page.
func (e *Endpoints) Deliveries(ctx context.Context, workspace, id uuid.UUID, after *Place, limit int) (DeliveryPage, error) {
	if _, err := e.store.Endpoint(ctx, workspace, id); err != nil {
		return DeliveryPage{}, err
	}
	return e.store.Deliveries(ctx, workspace, id, after, limit)
}
