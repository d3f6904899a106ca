package holdfast

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Change says what becomes of a memory. What is left out stays as it is.
type Change struct {
	// Content is the new text, kept byte for byte.
	Content string
	// Metadata takes the place of all metadata: anything that encodes to a JSON object.
	Metadata any
	// ExpiresAt is from when on it is not shown any more.
	ExpiresAt time.Time
	// NeverExpires takes an expiry away.
	NeverExpires bool
	// Version is the one that the memory must have, 0 for any: another one is VERSION_CONFLICT.
	Version int
}

// BatchChange is the change of one memory of a batch.
type BatchChange struct {
	ID string
	Change
}

type changeBody struct {
	ID        string          `json:"id,omitempty"`
	Content   string          `json:"content,omitempty"`
	Metadata  any             `json:"metadata,omitempty"`
	ExpiresAt json.RawMessage `json:"expires_at,omitempty"`
	Version   int             `json:"version,omitempty"`
}

func (c Change) body(id string) (changeBody, error) {
	body := changeBody{ID: id, Content: c.Content, Metadata: c.Metadata, Version: c.Version}
	switch {
	case c.NeverExpires:
		body.ExpiresAt = json.RawMessage("null")
	case !c.ExpiresAt.IsZero():
		body.ExpiresAt = json.RawMessage(`"` + c.ExpiresAt.Format(time.RFC3339Nano) + `"`)
	}
	return body, checkText(id, c.Content)
}

// Changed is what a change made of a memory.
type Changed struct {
	ID string `json:"id"`
	// Event is UPDATE or DELETE.
	Event string `json:"event"`
	// Memory is the text that the change gave or left, nil once erased and after a deletion.
	Memory *string `json:"memory"`
	// Version is the one that the memory got by it.
	Version int    `json:"version"`
	EventID string `json:"event_id"`
	// Key is the Idempotency-Key of the change.
	Key string `json:"-"`
	// Replayed tells that the key was known: this is the first result.
	Replayed bool `json:"-"`
}

// Update changes one memory, at once.
func (m *Memories) Update(ctx context.Context, id string, change Change, opts ...CallOption) (*Changed, error) {
	body, err := change.body("")
	if err != nil {
		return nil, err
	}
	return m.change(ctx, "update", http.MethodPut, id, body, opts)
}

// Delete deletes one memory. Its history stays until its scope is erased.
func (m *Memories) Delete(ctx context.Context, id string, opts ...CallOption) (*Changed, error) {
	return m.change(ctx, "delete", http.MethodDelete, id, nil, opts)
}

func (m *Memories) change(ctx context.Context, op, method, id string, body any, opts []CallOption) (*Changed, error) {
	at, err := segment(op, id)
	if err != nil {
		return nil, err
	}
	w, err := keyedWrite(op, method, "/v1/memories/"+at, body, opts)
	if err != nil {
		return nil, err
	}
	changed, got, err := send[Changed](ctx, m.c, w)
	if err != nil {
		return nil, err
	}
	changed.Key, changed.Replayed = w.key, got.replayed()
	return changed, nil
}

// UpdateBatch accepts up to 1,000 changes, each of another memory. The event's results name each memory in this order,
// with an error for one that could not be changed.
func (m *Memories) UpdateBatch(ctx context.Context, changes []BatchChange, opts ...CallOption) (*Receipt, error) {
	bodies := make([]changeBody, len(changes))
	for i, change := range changes {
		var err error
		if bodies[i], err = change.body(change.ID); err != nil {
			return nil, err
		}
	}
	w, err := keyedWrite("update batch", http.MethodPut, "/v1/memories/batch", map[string]any{"memories": bodies}, opts)
	if err != nil {
		return nil, err
	}
	return m.c.accept(ctx, w)
}

// DeleteBatch accepts the deletion of up to 1,000 memories, as UpdateBatch does changes.
func (m *Memories) DeleteBatch(ctx context.Context, ids []string, opts ...CallOption) (*Receipt, error) {
	if ids == nil {
		ids = []string{}
	}
	w, err := keyedWrite("delete batch", http.MethodDelete, "/v1/memories/batch", map[string]any{"ids": ids}, opts)
	if err != nil {
		return nil, err
	}
	return m.c.accept(ctx, w)
}
