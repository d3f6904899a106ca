package holdfast

import (
	"encoding/json"
	"time"
)

// Scope says whose memories. At least one of its ids is needed; several are met together.
type Scope struct {
	UserID  string `json:"user_id,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	AppID   string `json:"app_id,omitempty"`
}

// User is the scope of one user.
func User(id string) Scope { return Scope{UserID: id} }

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	// Name tells several speakers of a role apart.
	Name string `json:"name,omitempty"`
}

// Category is a subject that memories may be filed under.
type Category struct {
	Name string `json:"name"`
	// Description says what belongs to it.
	Description string `json:"description,omitempty"`
}

// Receipt is the answer to a write that was accepted. The event tells what becomes of it.
type Receipt struct {
	EventID string      `json:"event_id"`
	Status  EventStatus `json:"status"`
	Message string      `json:"message"`
	// Key is the Idempotency-Key that it was accepted under.
	Key string `json:"-"`
	// Replayed tells that the key was known and nothing new was written.
	Replayed bool `json:"-"`
}

// Memory is one record. Ids that it doesn't have are empty, times nil.
type Memory struct {
	ID           string          `json:"id"`
	Memory       string          `json:"memory"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	UserID       string          `json:"user_id"`
	AgentID      string          `json:"agent_id"`
	RunID        string          `json:"run_id"`
	AppID        string          `json:"app_id"`
	ItemID       string          `json:"item_id"`
	Categories   []string        `json:"categories"` // names of those that it was read with
	Metadata     json.RawMessage `json:"metadata"`   // value for value as it was given
	EventDate    *time.Time      `json:"event_date"`
	Version      int             `json:"version"`
	ValidFrom    time.Time       `json:"valid_from"`
	ValidTo      *time.Time      `json:"valid_to"`
	SupersededBy string          `json:"superseded_by"`
	ExpiresAt    *time.Time      `json:"expires_at"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	// Score is how well it answers a search, from 0 to 1; 0 elsewhere.
	Score   float64      `json:"score"`
	Explain *Explanation `json:"explain"`
}

// Explanation has the parts of a score, nil for what one way did not find.
type Explanation struct {
	Lexical  *ScorePart `json:"lexical"`
	Semantic *ScorePart `json:"semantic"`
}

// ScorePart is what one way of searching found.
type ScorePart struct {
	Score float64 `json:"score"`
	Rank  int     `json:"rank"`
}

// Result is what a write did to one memory.
type Result struct {
	ID string `json:"id"`
	// Event is ADD, UPDATE, DELETE, INVALIDATE or NONE.
	Event string `json:"event"`
	// Memory is the text as it is now, nil once the memory is gone.
	Memory *string `json:"memory"`
	// Error is why one item of a batch did nothing.
	Error *ResultError `json:"error"`
}

// ResultError is why one item of a batch did nothing.
type ResultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// EventStatus is where an event is.
type EventStatus string

// The statuses of an event. The last two are final.
const (
	Pending   EventStatus = "PENDING"
	Running   EventStatus = "RUNNING"
	Retrying  EventStatus = "RETRYING"
	Succeeded EventStatus = "SUCCEEDED"
	Failed    EventStatus = "FAILED"
)

// Outcomes of an event that succeeded.
const (
	Stored    = "STORED"
	Unchanged = "UNCHANGED" // all of it was known
	NoMemory  = "NO_MEMORY" // nothing worth keeping was said
	Partial   = "PARTIAL"   // some items of a batch
)

// Event tells what has become of a write.
type Event struct {
	ID     string      `json:"id"`
	Type   string      `json:"event_type"`
	Status EventStatus `json:"status"`
	// Scope is nil once erased.
	Scope  *Scope `json:"scope"`
	Erased bool   `json:"erased"`
	// Outcome is Stored, Unchanged, NoMemory or Partial; empty until it succeeds.
	Outcome string `json:"outcome"`
	// Results has every memory that the write touched; empty until it succeeds.
	Results     []Result `json:"results"`
	Attempts    int      `json:"attempts"`
	MaxAttempts int      `json:"max_attempts"`
	// Generation counts the runs that were authorised; Retry takes it.
	Generation    int         `json:"generation"`
	Error         *EventError `json:"error"`
	Usage         Usage       `json:"usage"`
	CreatedAt     time.Time   `json:"created_at"`
	UpdatedAt     time.Time   `json:"updated_at"`
	StartedAt     *time.Time  `json:"started_at"`
	CommittedAt   *time.Time  `json:"committed_at"`
	CompletedAt   *time.Time  `json:"completed_at"`
	NextAttemptAt *time.Time  `json:"next_attempt_at"`
	LatencyMS     *int64      `json:"latency_ms"`
	// Progress is of work in pieces, nil elsewhere.
	Progress *Progress `json:"progress"`
	// Key is that of the write where the call knows it: AddAndWait and ByKey.
	Key string `json:"-"`
}

// Ended tells whether the event has succeeded or failed.
func (e *Event) Ended() bool { return e.Status == Succeeded || e.Status == Failed }

// EventError is the last failure of an event's generation.
type EventError struct {
	Code      string `json:"code"`
	Class     string `json:"class"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	Action    string `json:"action"`
}

// Usage is what the present generation cost, in credits and in calls of the model.
type Usage struct {
	Reserved      int64 `json:"reserved"`
	Settled       int64 `json:"settled"`
	Released      int64 `json:"released"`
	ProviderCalls int   `json:"provider_calls"`
	TokensIn      int64 `json:"tokens_in"`
	TokensOut     int64 `json:"tokens_out"`
}

// Progress is how far work in pieces is.
type Progress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
	// Line is the first wrong line of an import, from 1.
	Line int64 `json:"line"`
}
