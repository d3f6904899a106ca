package recall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// EntityType names one of the four scope columns.
type EntityType string

// The types of entities.
const (
	User  EntityType = "user"
	Agent EntityType = "agent"
	Run   EntityType = "run"
	App   EntityType = "app"
)

// ScopeOf returns the scope that names the entity alone; false for an unknown type.
func (t EntityType) ScopeOf(id string) (memory.Scope, bool) {
	switch t {
	case User:
		return memory.Scope{UserID: id}, true
	case Agent:
		return memory.Scope{AgentID: id}, true
	case Run:
		return memory.Scope{RunID: id}, true
	case App:
		return memory.Scope{AppID: id}, true
	}
	return memory.Scope{}, false
}

// Entity is a user, agent, run or app that has live records.
type Entity struct {
	Type      EntityType
	ID        string
	Memories  int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// EntityPlace is a position in the list of entities: by type, then by id.
type EntityPlace struct {
	Type EntityType
	ID   string
}

// EntityPage is one page; Next is nil at the end.
type EntityPage struct {
	Entities []Entity
	Next     *EntityPlace
}

// EntityQuery selects entities of one workspace. An empty Type is all types.
type EntityQuery struct {
	Type  EntityType
	After *EntityPlace
	Limit int
}

// EntityStore reads who has live records.
type EntityStore interface {
	Entities(ctx context.Context, workspace uuid.UUID, query EntityQuery) (EntityPage, error)
	// Entity answers one entity or a fault MEMORY_NOT_FOUND.
	Entity(ctx context.Context, workspace uuid.UUID, kind EntityType, id string) (Entity, error)
}

// EntityTypes returns every type in the order of lists.
func EntityTypes() []EntityType { return []EntityType{Agent, App, Run, User} }

// Entities reads who has live records.
type Entities struct{ store EntityStore }

// NewEntities returns a reader of entities.
func NewEntities(store EntityStore) (*Entities, error) {
	if store == nil {
		return nil, errors.New("entities: a store is required")
	}
	return &Entities{store: store}, nil
}

// List answers one page of entities, by type and then by id.
func (e *Entities) List(ctx context.Context, workspace uuid.UUID, query EntityQuery) (EntityPage, error) {
	page, err := e.store.Entities(ctx, workspace, query)
	if err != nil {
		return EntityPage{}, fmt.Errorf("list entities: %w", err)
	}
	return page, nil
}

// Get answers one entity, a fault MEMORY_NOT_FOUND if it has no live records.
func (e *Entities) Get(ctx context.Context, workspace uuid.UUID, kind EntityType, id string) (Entity, error) {
	entity, err := e.store.Entity(ctx, workspace, kind, id)
	if err != nil {
		return Entity{}, fmt.Errorf("get entity: %w", err)
	}
	return entity, nil
}
