package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// MaxReplay bounds the deliveries that one call sends again; the next call goes on behind them.
const MaxReplay = 500

// EndpointStore keeps webhooks. An unknown or deleted one is a fault WEBHOOK_NOT_FOUND. Each change may be repeated with
// the same arguments when its outcome is unknown (fault.ErrCommitUnknown).
type EndpointStore interface {
	// CreateEndpoint keeps a new webhook that is told of what ends from now on, or answers TOO_MANY_WEBHOOKS.
	CreateEndpoint(ctx context.Context, e endpoint.Endpoint, secret endpoint.Secret) (endpoint.Endpoint, error)
	ChangeEndpoint(ctx context.Context, workspace, id uuid.UUID, change endpoint.Change) (endpoint.Endpoint, error)
	// DeleteEndpoint ends a webhook: nothing more is delivered, and its deliveries are removed soon.
	DeleteEndpoint(ctx context.Context, workspace, id uuid.UUID) error
	// RotateSecret signs with secret from now on, and for a while with the one before too.
	RotateSecret(ctx context.Context, workspace, id uuid.UUID, secret endpoint.Secret) (endpoint.Endpoint, error)
}

// DeliveryStore makes deliveries that were asked for.
type DeliveryStore interface {
	// TestDelivery makes a delivery that tells nothing.
	TestDelivery(ctx context.Context, workspace, id uuid.UUID) (endpoint.Delivery, error)
	// Replay sends deliveries again, the oldest first, behind a place and at most limit.
	Replay(ctx context.Context, workspace, id uuid.UUID, which endpoint.Selection, after *ReplayPlace, limit int) (Replayed, error)
}

// ReplayPlace is the last delivery that was looked at.
type ReplayPlace struct {
	At time.Time
	ID uuid.UUID
}

// Replayed is what one call of a replay came to. Next is nil when nothing is left.
type Replayed struct {
	Count int
	Next  *ReplayPlace
}

// URLs says which URLs may be called: a fault WEBHOOK_URL_REFUSED for the others.
type URLs interface {
	Check(url string) error
}

// Endpoints manages a workspace's webhooks.
type Endpoints struct {
	store      EndpointStore
	deliveries DeliveryStore
	urls       URLs
}

// NewEndpoints returns an Endpoints.
func NewEndpoints(store EndpointStore, deliveries DeliveryStore, urls URLs) (*Endpoints, error) {
	if store == nil || deliveries == nil || urls == nil {
		return nil, errors.New("endpoints: stores and a check of URLs are required")
	}
	return &Endpoints{store: store, deliveries: deliveries, urls: urls}, nil
}

// Create makes a webhook and answers its secret, which is shown this once. URL and types are required. Faults:
// INVALID_REQUEST, WEBHOOK_URL_REFUSED, TOO_MANY_WEBHOOKS, INSUFFICIENT_PERMISSION.
func (e *Endpoints) Create(ctx context.Context, caller access.Caller, wanted endpoint.Change) (endpoint.Endpoint, endpoint.Secret, error) {
	if wanted.URL == nil {
		return endpoint.Endpoint{}, endpoint.Secret{}, fault.At(fault.InvalidRequest, "/url", "required")
	}
	if wanted.Types == nil {
		return endpoint.Endpoint{}, endpoint.Secret{}, fault.At(fault.InvalidRequest, "/event_types", "required")
	}
	if err := e.check(caller, wanted); err != nil {
		return endpoint.Endpoint{}, endpoint.Secret{}, err
	}
	secret, err := endpoint.NewSecret()
	if err != nil {
		return endpoint.Endpoint{}, secret, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return endpoint.Endpoint{}, secret, fmt.Errorf("make webhook id: %w", err)
	}
	made := endpoint.Endpoint{ID: id, WorkspaceID: caller.Workspace.ID, URL: *wanted.URL, Types: *wanted.Types, Active: true}
	if wanted.Name != nil {
		made.Name = *wanted.Name
	}
	if wanted.Kinds != nil {
		made.Kinds = *wanted.Kinds
	}
	made, err = repeated(ctx, func(ctx context.Context) (endpoint.Endpoint, error) {
		return e.store.CreateEndpoint(ctx, made, secret)
	})
	return made, secret, err
}

// Change changes the members that are given. Faults: those of Create and WEBHOOK_NOT_FOUND.
func (e *Endpoints) Change(ctx context.Context, caller access.Caller, id uuid.UUID, change endpoint.Change) (endpoint.Endpoint, error) {
	if err := e.check(caller, change); err != nil {
		return endpoint.Endpoint{}, err
	}
	return repeated(ctx, func(ctx context.Context) (endpoint.Endpoint, error) {
		return e.store.ChangeEndpoint(ctx, caller.Workspace.ID, id, change)
	})
}

// Delete ends a webhook with its deliveries. A suspended workspace may delete.
func (e *Endpoints) Delete(ctx context.Context, caller access.Caller, id uuid.UUID) error {
	unknown := false
	_, err := repeated(ctx, func(ctx context.Context) (struct{}, error) {
		err := e.store.DeleteEndpoint(ctx, caller.Workspace.ID, id)
		if unknown && fault.Is(err, fault.WebhookNotFound) { // it was deleted, as was wanted
			err = nil
		}
		unknown = errors.Is(err, fault.ErrCommitUnknown)
		return struct{}{}, err
	})
	return err
}

// Rotate gives the webhook a new secret, which is shown this once.
func (e *Endpoints) Rotate(ctx context.Context, caller access.Caller, id uuid.UUID) (endpoint.Endpoint, endpoint.Secret, error) {
	if err := caller.Writable(); err != nil {
		return endpoint.Endpoint{}, endpoint.Secret{}, err
	}
	secret, err := endpoint.NewSecret()
	if err != nil {
		return endpoint.Endpoint{}, secret, err
	}
	changed, err := repeated(ctx, func(ctx context.Context) (endpoint.Endpoint, error) {
		return e.store.RotateSecret(ctx, caller.Workspace.ID, id, secret)
	})
	return changed, secret, err
}

// Test sends a delivery that tells nothing, to a disabled webhook too.
func (e *Endpoints) Test(ctx context.Context, caller access.Caller, id uuid.UUID) (endpoint.Delivery, error) {
	if err := caller.Writable(); err != nil {
		return endpoint.Delivery{}, err
	}
	return repeated(ctx, func(ctx context.Context) (endpoint.Delivery, error) {
		return e.deliveries.TestDelivery(ctx, caller.Workspace.ID, id)
	})
}

// Replay sends deliveries again under their ids, at most MaxReplay in one call. What waits for its next attempt is sent
// at once.
func (e *Endpoints) Replay(ctx context.Context, caller access.Caller, id uuid.UUID, which endpoint.Selection, after *ReplayPlace) (Replayed, error) {
	if err := caller.Writable(); err != nil {
		return Replayed{}, err
	}
	return repeated(ctx, func(ctx context.Context) (Replayed, error) {
		return e.deliveries.Replay(ctx, caller.Workspace.ID, id, which, after, MaxReplay)
	})
}

// repeated makes a change that doesn't end with the client's connection, and once more when the answer to its COMMIT was
// lost: ACCEPTANCE_UNKNOWN if that fails too.
func repeated[T any](ctx context.Context, change func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	var changed T
	answer := resolve(func() (a Accepted) {
		changed, a.Refused = change(ctx)
		return a
	})
	return changed, answer.Refused
}

func (e *Endpoints) check(caller access.Caller, change endpoint.Change) error {
	if err := caller.Writable(); err != nil {
		return err
	}
	if err := change.Check(); err != nil {
		return err
	}
	if change.URL != nil {
		return e.urls.Check(*change.URL)
	}
	return nil
}
