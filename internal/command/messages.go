package command

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// MaxMessages is the greatest number of messages of one command.
	MaxMessages = 500
	// maxName is the greatest length of a speaker's name in characters.
	maxName = 128
	// userRole is whose message a bare string is.
	userRole = "user"
)

// newMessages reads the two ways to say something: messages (a string, or an array of messages) or content.
// Messages without anything visible say nothing and are left out; if none remains, that is a fault.
func newMessages(raw json.RawMessage, content *string) ([]Message, error) {
	switch {
	case raw == nil && content == nil:
		return nil, fault.At(fault.InvalidRequest, "/messages", "messages or content required")
	case raw != nil && content != nil:
		return nil, fault.At(fault.InvalidRequest, "/content", "messages or content, not both")
	case content != nil:
		return one("/content", *content)
	case len(raw) > 0 && raw[0] == '"':
		text, err := stringAt("/messages", raw)
		if err != nil {
			return nil, err
		}
		return one("/messages", text)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || len(items) == 0 || len(items) > MaxMessages {
		return nil, fault.At(fault.InvalidRequest, "/messages", "a string or an array of 1 to 500 messages")
	}
	messages := make([]Message, 0, len(items))
	for i, item := range items {
		message, err := newMessage("/messages/"+strconv.Itoa(i), item)
		if err != nil {
			return nil, err
		}
		if !Blank(message.Content) {
			messages = append(messages, message)
		}
	}
	if len(messages) == 0 {
		return nil, blankAt("/messages")
	}
	return messages, nil
}

func one(pointer, text string) ([]Message, error) {
	if Blank(text) {
		return nil, blankAt(pointer)
	}
	if !storable(text) {
		return nil, fault.At(fault.InvalidRequest, pointer, "valid UTF-8 without NUL")
	}
	return []Message{{Role: userRole, Content: text}}, nil
}

func blankAt(pointer string) error {
	return fault.At(fault.InvalidRequest, pointer, "at least one visible character")
}

func newMessage(pointer string, raw json.RawMessage) (Message, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return Message{}, fault.At(fault.InvalidRequest, pointer, "an object with role and content")
	}
	var message Message
	for name := range members {
		if name != "role" && name != "content" && name != "name" {
			return Message{}, fault.At(fault.InvalidRequest, pointer, "no unknown members")
		}
	}
	for _, member := range []struct {
		name     string
		field    *string
		required bool
	}{
		{"role", &message.Role, true}, {"content", &message.Content, true}, {"name", &message.Name, false},
	} {
		value, given := members[member.name]
		at := pointer + "/" + member.name
		if !given && member.required {
			return Message{}, fault.At(fault.InvalidRequest, at, "required")
		}
		if !given {
			continue
		}
		text, err := stringAt(at, value)
		if err != nil {
			return Message{}, err
		}
		*member.field = text
	}
	return message, checkMessage(pointer, message, members["name"] != nil)
}

func checkMessage(pointer string, m Message, named bool) error {
	if !validRole(m.Role) {
		return fault.At(fault.InvalidRequest, pointer+"/role", "1 to 64 letters, digits, dots, hyphens or underscores")
	}
	if named && (Blank(m.Name) || utf8.RuneCountInString(m.Name) > maxName) {
		return fault.At(fault.InvalidRequest, pointer+"/name", "1 to 128 characters")
	}
	return nil
}

func stringAt(pointer string, raw json.RawMessage) (string, error) {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return "", fault.At(fault.InvalidRequest, pointer, "a string")
	}
	if !storable(*text) {
		return "", fault.At(fault.InvalidRequest, pointer, "valid UTF-8 without NUL")
	}
	return *text, nil
}

func validRole(role string) bool {
	const maxRole = 64
	for _, c := range []byte(role) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return role != "" && len(role) <= maxRole
}
