package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// MaxInstructions is the greatest length of a command's instructions in characters.
const MaxInstructions = 5_000

// AddInput is the body of an add as it was sent, read by ReadJSON already. Absent members are nil.
type AddInput struct {
	Messages     json.RawMessage // a string, or an array of {role, content, name?}
	Content      *string         // short for one user message
	UserID       *string
	AgentID      *string
	RunID        *string
	AppID        *string
	Infer        *bool
	Metadata     json.RawMessage
	EventDate    *string
	ExpiresAt    *string
	Instructions *string
	Ordered      *bool
	Categories   []memory.Category
}

// NewAdd returns the command that input asks for: ids trimmed, defaults filled in (infer and ordered are true),
// messages without anything visible left out, times in UTC to the microsecond, blank instructions and
// empty metadata as if absent. Content and metadata are kept as they are. Faults: INVALID_REQUEST with pointer
// and rule, SCOPE_REQUIRED.
func NewAdd(input AddInput) (Add, error) {
	messages, err := newMessages(input.Messages, input.Content)
	if err != nil {
		return Add{}, err
	}
	scope, err := NewScope(input.UserID, input.AgentID, input.RunID, input.AppID)
	if err != nil {
		return Add{}, err
	}
	add := Add{
		Scope: scope, Messages: messages,
		Infer: input.Infer == nil || *input.Infer, Ordered: input.Ordered == nil || *input.Ordered,
	}
	if add.Metadata, err = newMetadata(input.Metadata); err != nil {
		return Add{}, err
	}
	if add.EventDate, err = newTime("/event_date", input.EventDate); err != nil {
		return Add{}, err
	}
	if add.ExpiresAt, err = newTime("/expires_at", input.ExpiresAt); err != nil {
		return Add{}, err
	}
	if add.Categories, err = memory.NewCategories("/categories", input.Categories); err != nil {
		return Add{}, err
	}
	if input.Instructions != nil && !Blank(*input.Instructions) {
		if utf8.RuneCountInString(*input.Instructions) > MaxInstructions {
			return Add{}, fault.At(fault.InvalidRequest, "/instructions", "at most 5000 characters")
		}
		if !storable(*input.Instructions) {
			return Add{}, fault.At(fault.InvalidRequest, "/instructions", "valid UTF-8 without NUL")
		}
		add.Instructions = *input.Instructions
	}
	return add, nil
}

// newMetadata keeps an object as it is written.
func newMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, fault.At(fault.InvalidRequest, "/metadata", "an object")
	}
	if len(members) == 0 {
		return nil, nil
	}
	return bytes.Clone(raw), nil
}

// newTime reads an RFC 3339 time with its offset as an instant. The database keeps microseconds.
func newTime(pointer string, text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil
	}
	var date time.Time
	// UnmarshalText is stricter than time.Parse, but both take a comma before the fraction.
	if err := date.UnmarshalText([]byte(*text)); err != nil || strings.Contains(*text, ",") {
		return nil, fault.At(fault.InvalidRequest, pointer, "an RFC 3339 time with an offset")
	}
	date = date.UTC().Truncate(time.Microsecond)
	if date.Year() < 1 || date.Year() > 9999 {
		return nil, fault.At(fault.InvalidRequest, pointer, "a year from 1 to 9999")
	}
	return &date, nil
}
