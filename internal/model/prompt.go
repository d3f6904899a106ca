package model

import (
	"encoding/json"
	"strings"
	"time"
)

// maxKnownRunes cuts a known statement in the prompt. What it is about stands at its beginning, and forty long texts
// must not crowd out the conversation.
const maxKnownRunes = 400

// Prompt is what is sent to a language model for one extraction: the texts, and the JSON schema of the answer.
type Prompt struct {
	Version string
	System  string
	User    string
	Schema  json.RawMessage
}

// line is one turn as the prompt shows it.
type line struct {
	Role    string `json:"role"`
	Name    string `json:"name,omitempty"`
	Content string `json:"content"`
}

// statement is one known statement as the prompt shows it.
type statement struct {
	Number int    `json:"n"`
	Said   string `json:"said,omitempty"`
	Text   string `json:"text"`
}

// NewPrompt returns the prompt of request, in the wording that it names or in the newest. All text of the
// conversation and all that is known is data inside JSON strings, so that it can neither end its section nor pass
// for a message of another role.
func NewPrompt(request Request) Prompt {
	spoken := wordingOf(wordings(), request.Prompt)
	return Prompt{
		Version: spoken.version, System: spoken.system + wishes(request.Instructions), User: conversation(request),
		Schema: json.RawMessage(spoken.schema),
	}
}

func conversation(request Request) string {
	var user strings.Builder
	said := request.Said
	if request.EventDate != nil {
		said = *request.EventDate
	}
	if !said.IsZero() {
		user.WriteString("Date of the conversation: " + said.UTC().Format(time.RFC3339) + "\n")
	}
	if len(request.Known) > 0 {
		user.WriteString(KnownOpen + "\n")
		for _, k := range request.Known {
			user.WriteString(quote(shown(k)) + "\n")
		}
		user.WriteString(KnownClose + "\n")
	}
	user.WriteString(ConversationOpen + "\n")
	for _, m := range request.Messages {
		user.WriteString(quote(line{Role: m.Role, Name: m.Name, Content: m.Content}) + "\n")
	}
	user.WriteString(ConversationClose + "\nAnswer with the JSON object.")
	return user.String()
}

func shown(k Known) statement {
	s := statement{Number: k.Number, Text: k.Text}
	if runes := []rune(k.Text); len(runes) > maxKnownRunes {
		s.Text = string(runes[:maxKnownRunes]) + "…"
	}
	if !k.Said.IsZero() {
		s.Said = k.Said.UTC().Format(time.DateOnly)
	}
	return s
}

// wishes returns the section with the caller's wishes, nothing if there are none.
func wishes(instructions string) string {
	if strings.TrimSpace(instructions) == "" {
		return ""
	}
	return "\n\nThe application has wishes about what to keep and how to word it, as one JSON string between " + WishesOpen +
		" and " + WishesClose + ".\nFollow them as far as they agree with the rules above:\n" +
		WishesOpen + "\n" + quote(instructions) + "\n" + WishesClose
}

// quote returns v as JSON with <, > and & escaped. It takes strings, lines and statements only, which always encode.
func quote(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return `""`
	}
	return string(encoded)
}
