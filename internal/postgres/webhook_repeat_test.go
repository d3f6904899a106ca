package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// unheard loses the answer to the first COMMIT of each change.
type unheard struct {
	*postgres.DB
	heard bool
}

func (u *unheard) lose(err error) error {
	if err == nil && !u.heard {
		err = fmt.Errorf("commit: %w", fault.ErrCommitUnknown)
	}
	u.heard = !u.heard
	return err
}

func (u *unheard) CreateEndpoint(ctx context.Context, e endpoint.Endpoint, secret endpoint.Secret) (endpoint.Endpoint, error) {
	made, err := u.DB.CreateEndpoint(ctx, e, secret)
	return made, u.lose(err)
}

func (u *unheard) ChangeEndpoint(ctx context.Context, workspace, id uuid.UUID, change endpoint.Change) (endpoint.Endpoint, error) {
	changed, err := u.DB.ChangeEndpoint(ctx, workspace, id, change)
	return changed, u.lose(err)
}

func (u *unheard) RotateSecret(ctx context.Context, workspace, id uuid.UUID, secret endpoint.Secret) (endpoint.Endpoint, error) {
	changed, err := u.DB.RotateSecret(ctx, workspace, id, secret)
	return changed, u.lose(err)
}

func (u *unheard) DeleteEndpoint(ctx context.Context, workspace, id uuid.UUID) error {
	return u.lose(u.DB.DeleteEndpoint(ctx, workspace, id))
}

func (u *unheard) Replay(ctx context.Context, workspace, id uuid.UUID, which endpoint.Selection, after *write.ReplayPlace, limit int) (write.Replayed, error) {
	done, err := u.DB.Replay(ctx, workspace, id, which, after, limit)
	return done, u.lose(err)
}

func TestEndpointsRepeated(t *testing.T) {
	t.Parallel()
	t.Run("AnAnswerThatGotLostIsAskedForOnceMore", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		store := &unheard{DB: w.db}
		deaf, err := write.NewEndpoints(store, store, anyURL{})
		if err != nil {
			t.Fatal(err)
		}
		for range endpoint.MaxEndpoints - 1 {
			w.hook(wanted(endpoint.Succeeded))
		}
		made, first, err := deaf.Create(t.Context(), w.caller, wanted(endpoint.Succeeded))
		if err != nil {
			t.Fatalf("the last one that there may be: %v", err)
		}
		name := "again"
		if changed, err := deaf.Change(t.Context(), w.caller, made.ID, endpoint.Change{Name: &name}); err != nil || changed.Name != name {
			t.Fatal(changed, err)
		}
		_, second, err := deaf.Rotate(t.Context(), w.caller, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		tested, err := w.endpoints().Test(t.Context(), w.caller, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		parcel, err := w.db.Parcel(t.Context(), w.carry(tested.TaskID))
		if err != nil || len(parcel.Secrets) != 2 || parcel.Secrets[0] != second || parcel.Secrets[1] != first {
			t.Fatal("a receiver that knows the secret before the rotation refuses the message", err)
		}
		long := time.Now().Add(-time.Hour)
		if done, err := deaf.Replay(t.Context(), w.caller, made.ID, endpoint.Selection{Since: &long}, nil); err != nil || done.Count != 1 {
			t.Fatal(done, err)
		}
		if err := deaf.Delete(t.Context(), w.caller, made.ID); err != nil {
			t.Fatal(err)
		}
		if all, err := w.db.Endpoints(t.Context(), w.caller.Workspace.ID); err != nil || len(all) != endpoint.MaxEndpoints-1 {
			t.Fatal(len(all), err)
		}
		if err := w.endpoints().Delete(t.Context(), w.caller, made.ID); !fault.Is(err, fault.WebhookNotFound) {
			t.Fatal(err)
		}
	})
}
