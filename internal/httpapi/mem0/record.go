package mem0

import (
	"encoding/json"
	"time"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// record is a memory as the clients know it. The run is called session_id in some of their answers and run_id in
// others; both are there.
type record struct {
	ID                   string          `json:"id"`
	Memory               string          `json:"memory"`
	UserID               *string         `json:"user_id"`
	AgentID              *string         `json:"agent_id"`
	AppID                *string         `json:"app_id"`
	RunID                *string         `json:"run_id"`
	SessionID            *string         `json:"session_id"`
	Metadata             json.RawMessage `json:"metadata"`
	Categories           []string        `json:"categories"`
	CreatedAt            time.Time       `json:"created_at"`
	UpdatedAt            time.Time       `json:"updated_at"`
	EventDate            *time.Time      `json:"event_date"`
	ExpirationDate       *string         `json:"expiration_date"`
	StructuredAttributes any             `json:"structured_attributes"`
	ReplacedBy           *string         `json:"replaced_by"`
	Synthesized          bool            `json:"synthesized"`
	LifecycleState       string          `json:"lifecycle_state"`
	Score                *float64        `json:"score,omitempty"`
	ScoreBreakdown       *breakdown      `json:"score_breakdown,omitempty"`
}

// breakdown is the parts of a score; there is none of entities here.
type breakdown struct {
	Semantic float64 `json:"semantic"`
	BM25     float64 `json:"bm25"`
	Entity   float64 `json:"entity"`
}

func recordOf(r memory.Record) record {
	shown := record{
		ID: r.ID.String(), Memory: r.Text, UserID: present(r.Scope.UserID), AgentID: present(r.Scope.AgentID),
		AppID: present(r.Scope.AppID), RunID: present(r.Scope.RunID), SessionID: present(r.Scope.RunID), Metadata: r.Metadata,
		Categories: append([]string{}, r.Categories...), CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		EventDate: r.EventDate, ExpirationDate: lastDay(r.ExpiresAt), LifecycleState: "active",
	}
	if len(shown.Metadata) == 0 {
		shown.Metadata = json.RawMessage("{}")
	}
	if r.SupersededBy != nil {
		shown.ReplacedBy = present(r.SupersededBy.String())
	}
	if r.ValidTo != nil {
		shown.LifecycleState = "superseded"
	}
	return shown
}

func recordsOf(records []memory.Record) []record {
	shown := make([]record, len(records))
	for i, r := range records {
		shown[i] = recordOf(r)
	}
	return shown
}

// foundOf shows records with their scores.
func foundOf(records []memory.Record) []record {
	shown := recordsOf(records)
	for i, r := range records {
		shown[i].Score = &r.Score
		if r.Explain != nil {
			shown[i].ScoreBreakdown = &breakdown{Semantic: r.Explain.SemanticScore, BM25: r.Explain.LexicalScore}
		}
	}
	return shown
}

// present returns nil for the empty text.
func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
