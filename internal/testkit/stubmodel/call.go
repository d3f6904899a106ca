package stubmodel

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// Endpoint names what was called.
type Endpoint string

// The endpoints. Extraction stands for chat and messages, Everything for all of them; both only match.
const (
	Chat       Endpoint = "chat"
	Messages   Endpoint = "messages"
	Embeddings Endpoint = "embeddings"
	Models     Endpoint = "models"
	Extraction Endpoint = ""
	Everything Endpoint = "*"
)

// Call is one request as it arrived.
type Call struct {
	Number   int // from 1, over all endpoints
	Endpoint Endpoint
	At       time.Time
	Header   http.Header
	Body     []byte
	// System is the system prompt, Conversation and Known what stood in the prompt's sections, Inputs the texts to
	// embed.
	System       string
	Conversation []model.Message
	Known        []model.Known
	Inputs       []string
}

// Contains tells whether a turn, the caller's wishes or a text to embed contains marker. The fixed words of the
// prompt and what is known don't count.
func (c Call) Contains(marker string) bool {
	if _, wishes, ok := strings.Cut(c.System, "\n"+model.WishesOpen+"\n"); ok && strings.Contains(wishes, marker) {
		return true
	}
	for _, turn := range c.Conversation {
		if strings.Contains(turn.Content, marker) || strings.Contains(turn.Name, marker) {
			return true
		}
	}
	for _, input := range c.Inputs {
		if strings.Contains(input, marker) {
			return true
		}
	}
	return false
}

// Match selects calls: those of the endpoint whose text contains the marker. The zero Match selects every
// extraction.
type Match struct {
	Endpoint Endpoint
	Marker   string
}

// With matches extractions whose text contains marker.
func With(marker string) Match { return Match{Marker: marker} }

// At matches the calls of an endpoint.
func At(endpoint Endpoint) Match { return Match{Endpoint: endpoint} }

func (m Match) fits(call Call) bool {
	switch m.Endpoint {
	case Everything:
	case Extraction:
		if call.Endpoint != Chat && call.Endpoint != Messages {
			return false
		}
	case Chat, Messages, Embeddings, Models:
		if call.Endpoint != m.Endpoint {
			return false
		}
	}
	return m.Marker == "" || call.Contains(m.Marker)
}

func newCall(endpoint Endpoint, header http.Header, body []byte) Call {
	call := Call{Endpoint: endpoint, At: time.Now(), Header: header.Clone(), Body: body}
	var request struct {
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(body, &request) != nil {
		return call // a body of another form has no text to match
	}
	call.System = textOf(request.System)
	for _, message := range request.Messages {
		text := textOf(message.Content)
		if message.Role == "system" || message.Role == "developer" {
			call.System += text
			continue
		}
		call.Conversation = append(call.Conversation, turnsOf(text)...)
		call.Known = append(call.Known, knownOf(text)...)
	}
	var one string
	if json.Unmarshal(request.Input, &call.Inputs) != nil && json.Unmarshal(request.Input, &one) == nil {
		call.Inputs = []string{one}
	}
	return call
}

// textOf reads content that is a string or a list of text parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	for _, part := range parts {
		text += part.Text
	}
	return text
}

// turnsOf reads the section of a prompt that holds the conversation; other text is one turn of the user.
func turnsOf(text string) []model.Message {
	_, rest, found := strings.Cut(text, model.ConversationOpen+"\n")
	if !found {
		return []model.Message{{Role: "user", Content: text}}
	}
	section, _, _ := strings.Cut(rest, model.ConversationClose)
	var turns []model.Message
	for row := range strings.Lines(section) {
		var turn struct{ Role, Name, Content string }
		if json.Unmarshal([]byte(row), &turn) == nil {
			turns = append(turns, model.Message(turn))
		}
	}
	return turns
}

// knownOf reads the section of a prompt that holds what is known already.
func knownOf(text string) []model.Known {
	_, rest, found := strings.Cut(text, model.KnownOpen+"\n")
	if !found {
		return nil
	}
	section, _, _ := strings.Cut(rest, model.KnownClose)
	var known []model.Known
	for row := range strings.Lines(section) {
		var statement struct {
			N    int
			Text string
			Said string
		}
		if json.Unmarshal([]byte(row), &statement) != nil {
			continue
		}
		said, err := time.Parse(time.DateOnly, statement.Said)
		if err != nil {
			said = time.Time{}
		}
		known = append(known, model.Known{Number: statement.N, Text: statement.Text, Said: said})
	}
	return known
}
