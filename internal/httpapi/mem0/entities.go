package mem0

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// entity is a user, agent, run or app. Its id is its name: the clients use either to delete it.
type entity struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	TotalMemories int64           `json:"total_memories"`
	CreatedAt     time.Time       `json:"created_at"`
	UpdatedAt     time.Time       `json:"updated_at"`
	Owner         string          `json:"owner"`
	Organization  string          `json:"organization"`
	Metadata      json.RawMessage `json:"metadata"`
}

func entityOf(e recall.Entity, owner, organization string) entity {
	return entity{
		ID: e.ID, Name: e.ID, Type: string(e.Type), TotalMemories: e.Memories, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
		Owner: owner, Organization: organization, Metadata: json.RawMessage("{}"),
	}
}

// entitiesPage is a page of entities with the totals of each type.
type entitiesPage struct {
	listed
	TotalUsers  int64 `json:"total_users"`
	TotalAgents int64 `json:"total_agents"`
	TotalApps   int64 `json:"total_apps"`
	TotalRuns   int64 `json:"total_runs"`
}

// entities answers one page of who has live memories.
func (h handlers) entities(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	page, _, err := pageOf(call.Query)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	workspace := call.Caller.Workspace.ID
	found, err := h.deps.Browser.Entities(ctx, workspace, reached(page))
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	results := make([]entity, len(found.Entities))
	for i, e := range found.Entities {
		results[i] = entityOf(e, userEmail(workspace), orgID(workspace))
	}
	shown, err := answer(call, page, found.Total(), results)
	return httpapi.GuestAnswer{Body: entitiesPage{
		listed: shown, TotalUsers: found.Totals[recall.User], TotalAgents: found.Totals[recall.Agent],
		TotalApps: found.Totals[recall.App], TotalRuns: found.Totals[recall.Run],
	}}, err
}

// entity answers one of them, as a list.
func (h handlers) entity(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	scope, err := entityScope(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	workspace := call.Caller.Workspace.ID
	name := scope.UserID + scope.AgentID + scope.RunID + scope.AppID // one of them
	found, err := h.deps.Entities.Get(ctx, workspace, recall.EntityType(call.Param("type")), name)
	if fault.Is(err, fault.MemoryNotFound) {
		unknown := fault.New(fault.MemoryNotFound)
		unknown.Details = map[string]any{words: "Entity not found!"}
		return httpapi.GuestAnswer{}, unknown
	}
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: []entity{entityOf(found, userEmail(workspace), orgID(workspace))}}, nil
}

// entityFilters answers the types of events that a list of entities could be filtered by.
func (h handlers) entityFilters(context.Context, httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	return httpapi.GuestAnswer{Body: []string{
		"ADD", "UPDATE", "DELETE", "SEARCH", "GET_ALL", "GET", "DELETE_ALL", "DELETE_USER",
	}}, nil
}
