package mem0

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// body is the members of a request's body, those that are null left out: the clients send null for what their caller
// didn't say.
type body map[string]json.RawMessage

// bodyOf reads the object that a body has to be. A call without one has no members.
func bodyOf(call httpapi.GuestCall) (body, error) {
	if call.Body == nil {
		return body{}, nil
	}
	return object("", call.Body)
}

func object(pointer string, raw json.RawMessage) (body, error) {
	var members body
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, bad(pointer, "an object")
	}
	for name, value := range members {
		if string(bytes.TrimSpace(value)) == "null" {
			delete(members, name)
		}
	}
	return members, nil
}

func bad(pointer, rule string) error { return fault.At(fault.InvalidRequest, pointer, rule) }

// text answers a member that is a text, nil if it is absent.
func (b body) text(name string) (*string, error) {
	if b[name] == nil {
		return nil, nil
	}
	var text *string
	if err := json.Unmarshal(b[name], &text); err != nil {
		return nil, bad("/"+name, "a string")
	}
	return text, nil
}

// flag answers a member that is true or false, otherwise if it is absent.
func (b body) flag(name string, otherwise bool) (bool, error) {
	if b[name] == nil {
		return otherwise, nil
	}
	if err := json.Unmarshal(b[name], &otherwise); err != nil {
		return false, bad("/"+name, "true or false")
	}
	return otherwise, nil
}

// number answers a member that is a number, nil if it is absent.
func (b body) number(name string) (*float64, error) {
	if b[name] == nil {
		return nil, nil
	}
	var number *float64
	if err := json.Unmarshal(b[name], &number); err != nil {
		return nil, bad("/"+name, "a number")
	}
	return number, nil
}

// texts answers a member that is a list of texts, or one text.
func (b body) texts(name string) ([]string, error) {
	if b[name] == nil {
		return nil, nil
	}
	if text, err := b.text(name); err == nil {
		return []string{*text}, nil
	}
	var texts []*string
	if err := json.Unmarshal(b[name], &texts); err != nil || slices.Contains(texts, nil) {
		return nil, bad("/"+name, "a list of strings")
	}
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = *text
	}
	return list, nil
}

// list answers a member that is a list.
func (b body) list(name string) ([]json.RawMessage, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(b[name], &items); err != nil {
		return nil, bad("/"+name, "a list")
	}
	return items, nil
}

// hasNull tells whether an object has a member that is null.
func hasNull(raw []byte, name string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && string(bytes.TrimSpace(members[name])) == "null"
}

// refuse answers a fault for the first member of those names that is there and isn't false: what it asks for isn't done
// here, and leaving it out would be another request.
func (b body) refuse(names ...string) error {
	for _, name := range names {
		if value := b[name]; value != nil && string(bytes.TrimSpace(value)) != "false" {
			return bad("/"+name, "left out: this is not supported here")
		}
	}
	return nil
}

// keyOf answers the call's idempotency key: that of its header, or else the one in its body, which is where the
// clients put what their caller says. Old clients leave its name as their caller wrote it.
func keyOf(call httpapi.GuestCall, b body) (*command.Key, error) {
	if call.Key != nil {
		return call.Key, nil
	}
	text, err := b.text("idempotency_key")
	if err != nil {
		return nil, err
	}
	same, err := b.text("idempotencyKey")
	switch {
	case err != nil:
		return nil, err
	case text == nil:
		text = same
	case same != nil && *same != *text:
		return nil, bad("/idempotency_key", "one value")
	}
	if text == nil {
		return nil, nil
	}
	key, err := command.ParseKey([]string{*text})
	if f, isFault := errors.AsType[*fault.Error](err); isFault {
		return nil, fault.At(f.Code, "/idempotency_key", f.Rule)
	}
	return key, err
}

// scopeNames are the names of the four ids, as the clients send them and as their callers write them in filters, which
// no client converts.
func scopeName(name string) (memory.FilterField, bool) {
	switch name {
	case "user_id", "userId":
		return memory.FilterUser, true
	case "agent_id", "agentId":
		return memory.FilterAgent, true
	case "run_id", "runId":
		return memory.FilterRun, true
	case "app_id", "appId":
		return memory.FilterApp, true
	}
	return "", false
}

// ids are the four ids of a scope as they were given.
type ids map[memory.FilterField]*string

// take adds the ids among the members. One that is given twice has to be the same.
func (s ids) take(pointer string, b body) error {
	for name := range b {
		field, known := scopeName(name)
		if !known {
			continue
		}
		at := pointer + "/" + string(field)
		var text *string
		if err := json.Unmarshal(b[name], &text); err != nil {
			return bad(at, "a string")
		}
		if there := s[field]; there != nil && strings.TrimSpace(*there) != strings.TrimSpace(*text) {
			return bad(at, "one value")
		}
		s[field] = text
	}
	return nil
}

// scope answers the scope of the ids, a fault SCOPE_REQUIRED for none.
func (s ids) scope() (memory.Scope, error) {
	return command.NewScope(s[memory.FilterUser], s[memory.FilterAgent], s[memory.FilterRun], s[memory.FilterApp])
}
