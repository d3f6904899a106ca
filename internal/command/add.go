package command

import (
	"encoding/json"
	"time"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// Message is one turn of a conversation as accepted. Content is kept byte for byte.
type Message struct {
	Role    string `json:"role"`
	Name    string `json:"name,omitempty"`
	Content string `json:"content"`
}

// Add asks to remember a conversation. Infer sends it through a model; otherwise each message becomes one
// record as it is. Ordered commands of one lane take effect in the order of their acceptance.
type Add struct {
	Scope     memory.Scope    `json:"scope"`
	Infer     bool            `json:"infer"`
	Messages  []Message       `json:"messages"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	EventDate *time.Time      `json:"event_date,omitempty"`
	// ExpiresAt is when the records of the command stop being shown. A time that has passed is taken too: a repeat of
	// the command must not depend on when it is sent.
	ExpiresAt    *time.Time `json:"expires_at,omitempty"`
	Instructions string     `json:"instructions,omitempty"`
	Ordered      bool       `json:"ordered"`
	// Categories take the place of the workspace's for this command, if there are any.
	Categories []memory.Category `json:"categories,omitempty"`
}
