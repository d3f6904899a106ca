package model

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/memory"
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
	prompt := Prompt{
		Version: spoken.version, System: spoken.system, User: conversation(request), Schema: json.RawMessage(spoken.schema),
	}
	if len(request.Categories) > 0 {
		prompt.System += spoken.categories + "\n" + listed(request.Categories)
		prompt.Schema = json.RawMessage(strings.Replace(spoken.filed, namesMarker, quote(namesOf(request.Categories)), 1))
	}
	prompt.System += wishes(request.Instructions)
	return prompt
}

// listed shows the categories, one JSON object a line.
func listed(categories []memory.Category) string {
	lines := CategoriesOpen + "\n"
	for _, c := range categories {
		lines += quote(c) + "\n"
	}
	return lines + CategoriesClose
}

func namesOf(categories []memory.Category) []string {
	names := make([]string, len(categories))
	for i, c := range categories {
		names[i] = c.Name
	}
	return names
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

// quote returns v as JSON with <, > and & escaped. It takes strings and what is made of them only, which always encode.
func quote(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return `""`
	}
	return string(encoded)
}
