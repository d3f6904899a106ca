package command

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// MaxBatch is how many records one batch may name.
const MaxBatch = 1_000

// Change asks for a change of one record, or for its end. What is nil stays as it is.
type Change struct {
	ID       uuid.UUID       `json:"id"`
	Delete   bool            `json:"delete,omitempty"`
	Content  *string         `json:"content,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// EventDate sets when it was said.
	EventDate *time.Time `json:"event_date,omitempty"`
	// ExpiresAt sets the record's expiry, NeverExpires clears it.
	ExpiresAt    *time.Time `json:"expires_at,omitempty"`
	NeverExpires bool       `json:"never_expires,omitempty"`
	// Version is the version that the record must have, nil for any.
	Version *int `json:"version,omitempty"`
}

// Batch asks for changes of many records, all of them updates or all of them ends.
type Batch struct {
	Delete  bool     `json:"delete,omitempty"`
	Changes []Change `json:"changes"`
}

// Erase asks to remove everything of a scope: every record and command whose scope matches all its values.
type Erase struct {
	Scope memory.Scope `json:"scope"`
}
