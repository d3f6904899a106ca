package command

import (
	"encoding/json"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// Mem0 turns exported memories of mem0 into memories of a snapshot.
type Mem0 struct {
	// DefaultUser is whose the memories without any entity are; without one they are refused.
	DefaultUser string
	// Now bounds when a memory may have been made.
	Now time.Time
}

// mem0Record is what is read of an exported memory. What isn't named here is left out: hashes, scores and the like.
type mem0Record struct {
	ID             json.RawMessage `json:"id"`
	Memory         json.RawMessage `json:"memory"`
	Text           json.RawMessage `json:"text"`
	UserID         json.RawMessage `json:"user_id"`
	AgentID        json.RawMessage `json:"agent_id"`
	AppID          json.RawMessage `json:"app_id"`
	RunID          json.RawMessage `json:"run_id"`
	SessionID      json.RawMessage `json:"session_id"`
	Metadata       json.RawMessage `json:"metadata"`
	Categories     json.RawMessage `json:"categories"`
	CreatedAt      json.RawMessage `json:"created_at"`
	UpdatedAt      json.RawMessage `json:"updated_at"`
	EventDate      json.RawMessage `json:"event_date"`
	ExpirationDate json.RawMessage `json:"expiration_date"`
	ReplacedBy     json.RawMessage `json:"replaced_by"`
}

// Convert returns the memory and the one change that its history is: that it was added. Both follow from the record
// alone, so that the same export is the same snapshot. An error is a fault with the place and the broken rule, never
// the value.
func (m Mem0) Convert(raw []byte) (SnapshotMemory, SnapshotHistory, error) {
	raw, err := ReadJSON(raw)
	if err != nil {
		return SnapshotMemory{}, SnapshotHistory{}, err
	}
	var r mem0Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return SnapshotMemory{}, SnapshotHistory{}, mem0Fault("", "an object")
	}
	var out SnapshotMemory
	for _, take := range []func(mem0Record, *SnapshotMemory) error{takeMem0Text, m.takeScope, m.takeTimes, takeMem0Rest} {
		if err := take(r, &out); err != nil {
			return SnapshotMemory{}, SnapshotHistory{}, err
		}
	}
	out.Version = 1
	out.Event = uuid.NewSHA1(out.ID, []byte("event"))
	text := out.Text
	return out, SnapshotHistory{
		ID: uuid.NewSHA1(out.ID, []byte("added")), MemoryID: out.ID, Event: out.Event, Change: string(memory.Added),
		Version: 1, NewText: &text, At: out.CreatedAt,
	}, nil
}

func mem0Fault(pointer, rule string) error { return fault.At(fault.InvalidRequest, pointer, rule) }

func takeMem0Text(r mem0Record, out *SnapshotMemory) error {
	id, err := mem0Text("/id", r.ID)
	if err != nil {
		return err
	}
	if id == nil {
		return mem0Fault("/id", "required")
	}
	if out.ID, err = uuid.Parse(*id); err != nil || out.ID == uuid.Nil {
		return mem0Fault("/id", "a UUID")
	}
	text, err := mem0Text("/memory", r.Memory)
	if text == nil && err == nil {
		text, err = mem0Text("/text", r.Text)
	}
	if err != nil {
		return err
	}
	if text == nil || Blank(*text) {
		return mem0Fault("/memory", "a text that says something")
	}
	out.Text = *text
	return nil
}

// takeScope reads whose the memory is. The run is called session_id in some of mem0's answers.
func (m Mem0) takeScope(r mem0Record, out *SnapshotMemory) error {
	var ids [4]*string
	var err error
	for i, field := range []struct {
		pointer string
		raw     json.RawMessage
	}{{"/user_id", r.UserID}, {"/agent_id", r.AgentID}, {"/run_id", r.RunID}, {"/app_id", r.AppID}} {
		if ids[i], err = mem0Text(field.pointer, field.raw); err != nil {
			return err
		}
	}
	if ids[2] == nil {
		if ids[2], err = mem0Text("/session_id", r.SessionID); err != nil {
			return err
		}
	}
	if ids == [4]*string{} && m.DefaultUser != "" {
		ids[0] = &m.DefaultUser
	}
	scope, err := NewScope(ids[0], ids[1], ids[2], ids[3])
	if fault.Is(err, fault.ScopeRequired) {
		return mem0Fault("", "user_id, agent_id, app_id or run_id required")
	}
	if err != nil {
		return err
	}
	out.UserID, out.AgentID, out.RunID, out.AppID = given(scope.UserID), given(scope.AgentID), given(scope.RunID), given(scope.AppID)
	return nil
}

func given(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

func (m Mem0) takeTimes(r mem0Record, out *SnapshotMemory) error {
	created, _, err := mem0Time("/created_at", r.CreatedAt)
	if err != nil {
		return err
	}
	if created == nil || created.After(m.Now) {
		return mem0Fault("/created_at", "a time that is not to come")
	}
	updated, _, err := mem0Time("/updated_at", r.UpdatedAt)
	if err != nil {
		return err
	}
	if updated == nil {
		updated = created
	}
	out.CreatedAt, out.UpdatedAt = *created, *updated
	out.AcceptedAt, out.SaidAt, out.ValidFrom = *created, *created, *created
	if out.EventDate, _, err = mem0Time("/event_date", r.EventDate); err != nil {
		return err
	}
	expires, day, err := mem0Time("/expiration_date", r.ExpirationDate)
	if err != nil {
		return err
	}
	if day { // the last one on which it is there
		end := expires.AddDate(0, 0, 1)
		expires = &end
	}
	out.ExpiresAt = expires
	if !dated(created, updated, out.EventDate, expires) {
		return mem0Fault("", "times within the years 1 to 9999")
	}
	return nil
}

func takeMem0Rest(r mem0Record, out *SnapshotMemory) error {
	if mem0Given(r.Metadata) {
		if r.Metadata[0] != '{' {
			return mem0Fault("/metadata", "an object")
		}
		out.Metadata = r.Metadata
	}
	if mem0Given(r.Categories) {
		if json.Unmarshal(r.Categories, &out.Categories) != nil || !out.filed() {
			return mem0Fault("/categories", "names, each once")
		}
	}
	replaced, err := mem0Text("/replaced_by", r.ReplacedBy)
	if err != nil || replaced == nil {
		return err
	}
	by, err := uuid.Parse(*replaced)
	if err != nil {
		return mem0Fault("/replaced_by", "a UUID")
	}
	ended := out.UpdatedAt
	out.SupersededBy, out.ValidTo = &by, &ended
	return nil
}

func mem0Given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// mem0Text reads a text; an absent one, null and an empty one are nil.
func mem0Text(pointer string, raw json.RawMessage) (*string, error) {
	if !mem0Given(raw) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, mem0Fault(pointer, "a text")
	}
	return given(text), nil
}

// mem0Time reads a time, in UTC if it says no other, or seconds since 1970, and tells whether it is a whole day.
func mem0Time(pointer string, raw json.RawMessage) (at *time.Time, day bool, err error) {
	if !mem0Given(raw) {
		return nil, false, nil
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil && math.Abs(seconds) < 1e12 {
		whole, fraction := math.Modf(seconds)
		read := time.Unix(int64(whole), int64(math.Round(fraction*1e6))*int64(time.Microsecond)).UTC()
		return &read, false, nil
	}
	text, err := mem0Text(pointer, raw)
	if err != nil {
		return nil, false, mem0Fault(pointer, "an RFC 3339 time")
	}
	if text == nil {
		return nil, false, nil
	}
	if read, err := time.Parse(time.DateOnly, *text); err == nil {
		return &read, true, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if read, err := time.Parse(layout, *text); err == nil {
			read = read.UTC()
			return &read, false, nil
		}
	}
	return nil, false, mem0Fault(pointer, "an RFC 3339 time")
}
