package httpapi

import (
	"context"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// ListEntities answers one page of who has live records.
func (s *Server) ListEntities(ctx context.Context, request contract.ListEntitiesRequestObject) (contract.ListEntitiesResponseObject, error) {
	p := request.Params
	workspace := callOf(ctx).caller.Workspace
	query := recall.EntityQuery{Type: recall.EntityType(or(p.Type, "")), Limit: or(p.Limit, defaultPage)}
	here := listing{workspace: workspace, endpoint: "entities", query: query.Type}
	at, err := here.open(p.Cursor)
	if err != nil {
		return nil, err
	}
	if at != nil {
		query.After = &recall.EntityPlace{Type: recall.EntityType(at.Type), ID: at.Name}
	}
	found, err := s.deps.Entities.List(ctx, workspace.ID, query)
	if err != nil {
		return nil, err
	}
	page := contract.EntityPage{Results: make([]contract.Entity, len(found.Entities))}
	for i, entity := range found.Entities {
		page.Results[i] = entityOf(entity)
	}
	if found.Next != nil {
		next, err := here.seal(position{Version: cursorVersion, Type: credit.EntryType(found.Next.Type), Name: found.Next.ID})
		if err != nil {
			return nil, err
		}
		page.NextCursor = &next
	}
	return ok(page), nil
}

// GetEntity answers one entity.
func (s *Server) GetEntity(ctx context.Context, request contract.GetEntityRequestObject) (contract.GetEntityResponseObject, error) {
	kind := recall.EntityType(request.Type)
	scope, err := entityScope(kind, request.Id)
	if err != nil {
		return nil, err
	}
	entity, err := s.deps.Entities.Get(ctx, callOf(ctx).caller.Workspace.ID, kind, nameOf(scope))
	if err != nil {
		return nil, err
	}
	return ok(entityOf(entity)), nil
}

// entityScope returns the scope of one entity, its id read as a write reads it. An id that no write takes is an
// unknown one.
func entityScope(kind recall.EntityType, id string) (memory.Scope, error) {
	given, known := kind.ScopeOf(id)
	if !known {
		return memory.Scope{}, in("path", "/type", "one of user, agent, run, app")
	}
	scope, err := command.NewScope(present(given.UserID), present(given.AgentID), present(given.RunID), present(given.AppID))
	if err != nil {
		return memory.Scope{}, fault.New(fault.MemoryNotFound)
	}
	return scope, nil
}

// nameOf returns the one id of an entity's scope.
func nameOf(scope memory.Scope) string {
	return scope.UserID + scope.AgentID + scope.RunID + scope.AppID
}

func entityOf(e recall.Entity) contract.Entity {
	return contract.Entity{
		Type: contract.EntityType(e.Type), Id: e.ID, TotalMemories: e.Memories, CreatedAt: e.CreatedAt.UTC(),
		UpdatedAt: e.UpdatedAt.UTC(),
	}
}
