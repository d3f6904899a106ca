package recall

import (
	"time"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// History is what became of one record, oldest change first. It survives the record's end.
type History struct {
	Entries []memory.HistoryEntry
}

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
