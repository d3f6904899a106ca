package command

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// ChangeInput is what was sent to change one record. Absent members are nil; EventDate is a time like that of an add,
// ExpiresAt a string or null.
type ChangeInput struct {
	ID        uuid.UUID
	Content   *string
	Metadata  json.RawMessage
	EventDate *string
	ExpiresAt json.RawMessage
	Version   *int
}

// NewChange returns the change that input asks for. Content and metadata are kept as they are, the metadata of a
// change replacing all that there was. Faults: INVALID_REQUEST at a pointer below within, also when nothing is
// to change.
func NewChange(within string, input ChangeInput) (Change, error) {
	if input.Content == nil && input.Metadata == nil && input.EventDate == nil && input.ExpiresAt == nil {
		return Change{}, fault.At(fault.InvalidRequest, within, "content, metadata or expires_at required")
	}
	change := Change{ID: input.ID, Content: input.Content, Version: input.Version}
	if input.Content != nil {
		if Blank(*input.Content) {
			return Change{}, blankAt(within + "/content")
		}
		if !storable(*input.Content) {
			return Change{}, fault.At(fault.InvalidRequest, within+"/content", "valid UTF-8 without NUL")
		}
	}
	if input.Metadata != nil {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(input.Metadata, &members); err != nil || members == nil {
			return Change{}, fault.At(fault.InvalidRequest, within+"/metadata", "an object")
		}
		change.Metadata = bytes.Clone(input.Metadata) // an empty object too: it takes the place of what there was
	}
	var err error
	if change.EventDate, err = newTime(within+"/event_date", input.EventDate); err != nil {
		return Change{}, err
	}
	if err := change.expire(within, input.ExpiresAt); err != nil {
		return Change{}, err
	}
	return change, checkVersion(within, input.Version)
}

// expire reads a time or null; nil changes nothing.
func (c *Change) expire(within string, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fault.At(fault.InvalidRequest, within+"/expires_at", "an RFC 3339 time with an offset, or null")
	}
	if text == nil {
		c.NeverExpires = true
		return nil
	}
	at, err := newTime(within+"/expires_at", text)
	c.ExpiresAt = at
	return err
}

func checkVersion(within string, version *int) error {
	if version != nil && *version < 1 {
		return fault.At(fault.InvalidRequest, within+"/version", "at least 1")
	}
	return nil
}

// NewBatch returns the batch of the changes, which all are updates or all are ends. Faults: INVALID_REQUEST for
// none, for more than MaxBatch, and for a record that is named twice.
func NewBatch(within string, ends bool, changes []Change) (Batch, error) {
	if len(changes) == 0 || len(changes) > MaxBatch {
		return Batch{}, fault.At(fault.InvalidRequest, within, "1 to 1000 memories")
	}
	seen := make(map[uuid.UUID]bool, len(changes))
	for i, c := range changes {
		if seen[c.ID] {
			return Batch{}, fault.At(fault.InvalidRequest, within+"/"+strconv.Itoa(i), "each memory once")
		}
		seen[c.ID] = true
		changes[i].Delete = ends
	}
	return Batch{Delete: ends, Changes: changes}, nil
}

// Encode returns the batch as stored, in Format.
func (b Batch) Encode() ([]byte, error) { return encode(b) }

// DecodeBatch reads a stored batch, as strictly as Decode does.
func DecodeBatch(format int, payload []byte) (Batch, error) {
	var batch Batch
	if err := decode(format, payload, &batch); err != nil {
		return Batch{}, err
	}
	if len(batch.Changes) == 0 || len(batch.Changes) > MaxBatch {
		return Batch{}, ErrUnreadable
	}
	return batch, nil
}
