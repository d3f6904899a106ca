package mem0

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// said is a message as a command takes it.
type said struct {
	Role    json.RawMessage `json:"role,omitempty"`
	Name    json.RawMessage `json:"name,omitempty"`
	Content string          `json:"content"`
}

// messagesOf answers the messages as a command takes them: a text as it is, one message as a list of one. A message
// without content that only calls tools says nothing and is left out, like members that say nothing; content that is
// no text is refused.
func messagesOf(raw json.RawMessage) (json.RawMessage, error) {
	const pointer = "/messages"
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return nil, bad(pointer, "required")
	case raw[0] == '"':
		return raw, nil
	case raw[0] == '{':
		raw = append(append(json.RawMessage{'['}, raw...), ']')
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || len(items) == 0 {
		return nil, bad(pointer, "a string, a message or a list of messages")
	}
	messages := make([]said, 0, len(items))
	for i, item := range items {
		at := pointer + "/" + strconv.Itoa(i)
		members, err := object(at, item)
		if err != nil {
			return nil, err
		}
		if members["content"] == nil && members["tool_calls"] != nil {
			continue
		}
		content, err := contentOf(at+"/content", members["content"])
		if err != nil {
			return nil, err
		}
		messages = append(messages, said{Role: members["role"], Name: members["name"], Content: content})
	}
	if len(messages) == 0 {
		return nil, bad(pointer, "at least one message with a text")
	}
	plain, err := json.Marshal(messages)
	if err != nil {
		return nil, fault.Wrap(fault.InternalError, err)
	}
	return plain, nil
}

// contentOf answers the text of a message's content: a text, a part that is one, or a list of such parts.
func contentOf(pointer string, raw json.RawMessage) (string, error) {
	const rule = "a string, or parts of type text"
	var text *string
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "", bad(pointer, rule)
	case raw[0] == '{':
		return partOf(pointer, raw)
	case raw[0] != '[':
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", bad(pointer, rule)
		}
		return *text, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", bad(pointer, rule)
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		var err error
		if texts[i], err = partOf(pointer+"/"+strconv.Itoa(i), part); err != nil {
			return "", err
		}
	}
	return strings.Join(texts, "\n"), nil
}

func partOf(pointer string, raw json.RawMessage) (string, error) {
	var part struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &part); err != nil || part.Type != "text" || part.Text == nil {
		return "", bad(pointer, "of type text: nothing else is read here")
	}
	return *part.Text, nil
}
