package recall

import (
	"time"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// EventFilter selects events of one workspace for a person who looks for something, newest first. Kinds is never empty.
type EventFilter struct {
	Kinds  []task.Kind
	Status task.EventStatus // empty: all
	// Within is how long ago they may have been accepted, zero for any time.
	Within time.Duration
	// By and Value select one value of a scope, with an empty By any.
	By    EntityType
	Value string
	After *Place
	Limit int
}
