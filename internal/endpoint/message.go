package endpoint

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Message is one thing that one endpoint is told. Its id and body are the same in all attempts and replays.
type Message struct {
	ID         uuid.UUID
	Type       Type
	About      uuid.UUID // the task, the zero id for a test
	Generation int
	Body       []byte
}

// Facts is what a message says of a task's run. Outcome and Code are empty when the run has been followed by another.
type Facts struct {
	Outcome task.Outcome
	Code    task.ErrorCode
}

// body is the thin body: what it leaves out is read from the event.
type body struct {
	Type      Type      `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	EventID    string           `json:"event_id,omitempty"`
	EventType  task.Kind        `json:"event_type,omitempty"`
	Status     task.EventStatus `json:"status,omitempty"`
	Outcome    task.Outcome     `json:"outcome,omitempty"`
	Generation int              `json:"generation,omitempty"`
	ErrorCode  task.ErrorCode   `json:"error_code,omitempty"`
	WebhookID  string           `json:"webhook_id"`
}

// NewMessage returns the message that tells endpoint of an entry of the feed. Made again it is the same.
func NewMessage(endpoint uuid.UUID, kind Type, entry task.FeedEntry, facts Facts) (Message, error) {
	d := data{
		EventID: "evt_" + entry.Place.TaskID.String(), EventType: entry.Kind, Status: task.EventSucceeded,
		Outcome: facts.Outcome, Generation: entry.Place.Generation, WebhookID: PublicID(endpoint),
	}
	if kind == Failed {
		d.Status, d.Outcome, d.ErrorCode = task.EventFailed, "", facts.Code
	}
	text, err := json.Marshal(body{Type: kind, Timestamp: entry.At.UTC(), Data: d})
	if err != nil {
		return Message{}, fmt.Errorf("encode webhook message: %w", err)
	}
	return Message{
		ID:   identity(endpoint, entry.Place.TaskID, entry.Place.Generation, kind),
		Type: kind, About: entry.Place.TaskID, Generation: entry.Place.Generation, Body: text,
	}, nil
}

// NewTest returns a message that tells nothing but that the endpoint is reached, another one each time.
func NewTest(endpoint uuid.UUID, at time.Time) (Message, error) {
	text, err := json.Marshal(body{Type: Test, Timestamp: at.UTC(), Data: data{WebhookID: PublicID(endpoint)}})
	if err != nil {
		return Message{}, fmt.Errorf("encode webhook test: %w", err)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return Message{}, fmt.Errorf("make message id: %w", err)
	}
	return Message{ID: id, Type: Test, Body: text}, nil
}

// identity names a message by what it tells whom, so that nothing is told as two messages.
func identity(endpoint, about uuid.UUID, generation int, kind Type) uuid.UUID {
	sum := sha256.Sum256(fmt.Appendf(nil, "webhook message/1 %s %s %d %s", endpoint, about, generation, kind))
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8: made by a rule of its owner
	return id
}

// MessageID is the webhook-id of a message.
func MessageID(id uuid.UUID) string { return "msg_" + id.String() }

// PublicID is an endpoint's id as callers see it.
func PublicID(id uuid.UUID) string { return "whk_" + id.String() }

// Lane is what the tasks of an endpoint's deliveries have in common. They are not in order; it keeps the endpoints
// apart. No scope's lane is the same: those are hashes of another text.
func Lane(endpoint uuid.UUID) memory.Lane {
	return sha256.Sum256(append([]byte("webhook lane/1 "), endpoint[:]...))
}
