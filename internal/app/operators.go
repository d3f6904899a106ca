package app

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/admin"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// newAdmin builds the operators' API.
func (c *core) newAdmin() (httpapi.Mount, error) {
	o := operated{c}
	health, err := recall.NewHealth(c.watched, c.wakeups.healthy)
	if err != nil {
		return httpapi.Mount{}, err
	}
	bulk, err := c.newBulk()
	if err != nil {
		return httpapi.Mount{}, err
	}
	return admin.New(admin.Deps{
		Operators: c.db, Workspaces: o, Deleter: o, Granter: o, Keys: o, Acts: c.db, Health: health, Work: c.watched, Bulk: bulk, Pauses: o,
	})
}

// operated is the store as the operators' API needs it: what there is not is a fault with a public code.
type operated struct{ core *core }

func public(err error) error {
	switch {
	case errors.Is(err, postgres.ErrNoWorkspace):
		return fault.Wrap(fault.WorkspaceNotFound, err)
	case errors.Is(err, postgres.ErrNoKey):
		return fault.Wrap(fault.RouteNotFound, err)
	}
	return err
}

func (o operated) ListWorkspaces(ctx context.Context) ([]operator.Workspace, error) {
	return o.core.db.ListWorkspaces(ctx)
}

func (o operated) Workspace(ctx context.Context, idOrName string) (operator.Workspace, error) {
	w, err := o.core.db.Workspace(ctx, idOrName)
	return w, public(err)
}

func (o operated) CreateWorkspace(ctx context.Context, name string, metered bool) (operator.Workspace, bool, error) {
	made, err := o.core.db.CreateWorkspace(ctx, name, metered)
	if errors.Is(err, postgres.ErrWorkspaceExists) {
		made, err = o.core.db.WorkspaceByName(ctx, name)
		return made, false, public(err)
	}
	return made, err == nil, public(err)
}

func (o operated) SuspendWorkspace(ctx context.Context, idOrName string, suspended bool) (operator.Workspace, error) {
	w, err := o.core.db.SuspendWorkspace(ctx, idOrName, suspended)
	return w, public(err)
}

func (o operated) LimitWorkspace(ctx context.Context, idOrName string, limits operator.Limits) (operator.Workspace, error) {
	w, err := o.core.db.LimitWorkspace(ctx, idOrName, limits)
	return w, public(err)
}

func (o operated) DeleteWorkspace(ctx context.Context, idOrName string) (operator.Workspace, error) {
	w, hint, err := o.core.db.DeleteWorkspace(ctx, idOrName)
	if hint != nil {
		o.core.wakeups.Publish(ctx, *hint)
	}
	return w, public(err)
}

func (o operated) Grant(ctx context.Context, workspace uuid.UUID, reference string, amount credit.Amount) (bool, error) {
	granted, err := o.core.db.Grant(ctx, workspace, reference, amount)
	return granted, public(err)
}

func (o operated) ListKeys(ctx context.Context, workspace uuid.UUID) ([]operator.Key, error) {
	return o.core.db.ListKeys(ctx, workspace)
}

func (o operated) CreateKeyOnce(ctx context.Context, workspace uuid.UUID, ask operator.KeyAsk) (operator.Key, *access.Key, error) {
	made, secret, err := o.core.db.CreateKeyOnce(ctx, workspace, ask)
	return made, secret, public(err)
}

func (o operated) RevokeKey(ctx context.Context, workspace uuid.UUID, id string) error {
	return public(o.core.db.RevokeKey(ctx, workspace, id))
}
