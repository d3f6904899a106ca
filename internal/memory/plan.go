package memory

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Planned is one record that a plan wants to add. Its id is final: the record that the commit writes has it.
type Planned struct {
	ID        uuid.UUID       `json:"id"`
	Text      string          `json:"text"`
	Type      FactType        `json:"type,omitempty"`
	Role      string          `json:"role,omitempty"`
	EventDate *time.Time      `json:"event_date,omitempty"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	// Categories are the names of what the record is filed under.
	Categories []string `json:"categories,omitempty"`
	// Supersedes is the record that this one takes the place of, as it was when the plan was made. A target that has
	// changed or gone since makes this a plain addition.
	Supersedes *Target `json:"supersedes,omitempty"`
	// Verbatim records are stored even if they repeat a live one; inferred facts are not.
	Verbatim bool `json:"verbatim,omitempty"`
}

// Target is a record at one version.
type Target struct {
	ID      uuid.UUID `json:"id"`
	Version int       `json:"version"`
}

// Plan is the frozen list of record changes of one task, in the order of its ordinals.
type Plan struct {
	Records []Planned `json:"records"`
}

// Encode returns the plan's body as stored.
func (p Plan) Encode() ([]byte, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	return body, nil
}

// Result is what the commit did for one ordinal of a plan.
type Result struct {
	Ordinal  int
	RecordID uuid.UUID
	Change   Change
	// Text is the record's current text, nil once it is gone.
	Text *string
	// Error is the public code of why one item of a batch did nothing, empty otherwise.
	Error string
}
