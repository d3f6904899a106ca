package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxConversation is a little more than the API takes, so that its own refusal tells what is wrong.
const maxConversation = 1 << 20

// message is one turn in the common chat format.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Name    string `json:"name,omitempty"`
}

// conversation is what was said, and how many of its messages have no text: calls of tools and pictures.
type conversation struct {
	messages []message
	leftOut  int
}

// readConversation reads a file, or with "-" everything that in has.
func readConversation(path string, in io.Reader) (conversation, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return conversation{}, fmt.Errorf("read conversation: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxConversation+1))
	if err != nil {
		return conversation{}, fmt.Errorf("read conversation: %w", err)
	}
	if len(text) > maxConversation {
		return conversation{}, fmt.Errorf("the conversation is larger than %d bytes; the API takes 250,000", maxConversation)
	}
	return parseConversation(text)
}

// parseConversation reads a list of {"role", "content"}, an object with such a list under "messages", one JSON object
// a line, or plain text, which is one message of the user. Content may be a list of parts; their text counts.
func parseConversation(text []byte) (conversation, error) {
	var found conversation
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if len(text) == 0 {
		return found, errors.New("the conversation is empty")
	}
	if !utf8.Valid(text) {
		return found, errors.New("the conversation is not UTF-8 text")
	}
	if text[0] != '{' && text[0] != '[' {
		return conversation{messages: []message{{Role: "user", Content: string(text)}}}, nil
	}
	turns, err := parseTurns(text)
	if err != nil {
		return found, err
	}
	for i, t := range turns {
		content, err := t.text()
		if err != nil {
			return found, fmt.Errorf("message %d: %w", i+1, err)
		}
		if strings.TrimSpace(content) == "" {
			found.leftOut++
			continue
		}
		if t.Role == "" {
			return found, fmt.Errorf(`message %d has no "role"`, i+1)
		}
		found.messages = append(found.messages, message{Role: t.Role, Content: content, Name: t.Name})
	}
	if len(found.messages) == 0 {
		return found, errors.New("the conversation has no message with text")
	}
	return found, nil
}

// turn is a message as applications write it.
type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Name    string          `json:"name"`
}

func parseTurns(text []byte) ([]turn, error) {
	var turns []turn
	if text[0] == '[' {
		if err := json.Unmarshal(text, &turns); err != nil {
			return nil, fmt.Errorf("the conversation is no list of messages: %w", err)
		}
		return turns, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.More() {
		var line struct {
			turn
			Messages []turn `json:"messages"`
		}
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("the conversation is no JSON: %w", err)
		}
		if line.Messages != nil {
			turns = append(turns, line.Messages...)
		} else {
			turns = append(turns, line.turn)
		}
	}
	return turns, nil
}

// text is the content, or the text of its parts.
func (t turn) text() (string, error) {
	var plain string
	if len(t.Content) == 0 || string(t.Content) == "null" {
		return "", nil
	}
	if json.Unmarshal(t.Content, &plain) == nil {
		return plain, nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(t.Content, &parts); err != nil {
		return "", errors.New("its content is neither text nor a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}
