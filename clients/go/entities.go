package holdfast

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Entities lists and erases users, agents, runs and apps.
type Entities struct{ c *Client }

// EntityType is the kind of an entity.
type EntityType string

// The types of entities.
const (
	UserEntity  EntityType = "user"
	AgentEntity EntityType = "agent"
	RunEntity   EntityType = "run"
	AppEntity   EntityType = "app"
)

// Entity is a user, agent, run or app that has live memories.
type Entity struct {
	Type          EntityType `json:"type"`
	ID            string     `json:"id"`
	TotalMemories int64      `json:"total_memories"`
	// CreatedAt is when its oldest live memory was stored, UpdatedAt when one of them last changed.
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// List reads one page of entities of a type, of all types if it is empty.
func (e *Entities) List(ctx context.Context, kind EntityType, page PageOptions) (*Page[Entity], error) {
	query := page.query()
	if kind != "" {
		query.Set("type", string(kind))
	}
	return list[Entity](ctx, e.c, "list entities", "/v1/entities", query)
}

// All goes through the entities of a type, of all types if it is empty. It ends after an error.
func (e *Entities) All(ctx context.Context, kind EntityType) iter.Seq2[Entity, error] {
	return each(func(at PageOptions) (*Page[Entity], error) { return e.List(ctx, kind, at) })
}

// Get reads one entity, and is refused with 404 if it has no live memories.
func (e *Entities) Get(ctx context.Context, kind EntityType, id string) (*Entity, error) {
	path, err := entityPath("get entity", kind, id)
	if err != nil {
		return nil, err
	}
	return answer[Entity](ctx, e.c, read("get entity", path, nil))
}

// Erase removes everything of one entity, as [Memories.EraseScope] does for the scope that names only this one.
func (e *Entities) Erase(ctx context.Context, kind EntityType, id string, opts ...CallOption) (*Erasure, error) {
	path, err := entityPath("erase entity", kind, id)
	if err != nil {
		return nil, err
	}
	w, err := keyedWrite("erase entity", http.MethodDelete, path, nil, opts)
	if err != nil {
		return nil, err
	}
	return e.c.erase(ctx, w)
}

func entityPath(op string, kind EntityType, id string) (string, error) {
	first, err := segment(op, string(kind))
	if err != nil {
		return "", err
	}
	second, err := segment(op, id)
	return "/v1/entities/" + first + "/" + second, err
}
