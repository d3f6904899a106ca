package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
)

// scoped names whose memories are meant.
type scoped struct {
	UserID  string `name:"user-id" help:"The user."`
	AgentID string `name:"agent-id" help:"The agent."`
	RunID   string `name:"run-id" help:"The run or session."`
	AppID   string `name:"app-id" help:"The application."`
}

func (s scoped) into(body map[string]any) {
	for name, value := range map[string]string{"user_id": s.UserID, "agent_id": s.AgentID, "run_id": s.RunID, "app_id": s.AppID} {
		if value != "" {
			body[name] = value
		}
	}
}

type addCommand struct {
	remote
	scoped
	Text           string        `arg:"" optional:"" help:"The text; - reads a conversation from standard input."`
	File           string        `short:"f" env:"-" placeholder:"PATH" help:"A conversation: JSON messages with role and content, or plain text."`
	IdempotencyKey string        `name:"idempotency-key" env:"-" placeholder:"KEY" help:"The same key and request are one write, however often they are sent. One is made, and printed, when none is given."`
	NoInfer        bool          `name:"no-infer" env:"-" help:"Store each message as it is, at once."`
	Metadata       string        `env:"-" placeholder:"JSON" help:"A JSON object that is kept with each memory."`
	Instructions   string        `env:"-" help:"Wishes for the extraction."`
	EventDate      string        `name:"event-date" env:"-" placeholder:"RFC3339" help:"When it took place."`
	Unordered      bool          `env:"-" help:"Don't wait for earlier writes of the same scope."`
	Wait           time.Duration `env:"-" placeholder:"30s" help:"Wait that long for the end of the event."`
}

// Run sends the write. The key is printed before, so that a request without an answer can be sent again.
func (c *addCommand) Run(s *session) error {
	body, err := c.body(s)
	if err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	key := c.IdempotencyKey
	if key == "" {
		key = "cli-" + rand.Text()
		fmt.Fprintf(s.err, "idempotency key: %s\n", key)
	}
	got, err := api.call(s.ctx, http.MethodPost, "/v1/memories", key, body)
	if err != nil {
		return err
	}
	if c.NoInfer {
		return s.printStored(got)
	}
	var receipt struct {
		EventID string `json:"event_id"`
		Status  string `json:"status"`
	}
	if err := got.read(&receipt); err != nil {
		return err
	}
	if c.Wait > 0 {
		return s.wait(api, receipt.EventID, c.Wait)
	}
	if s.json {
		return s.raw(got.body)
	}
	replayed := ""
	if got.header.Get("Idempotent-Replayed") == "true" {
		replayed = "  (sent before: the same receipt)"
	}
	return s.show(nil, "%s  %s%s\n", receipt.EventID, receipt.Status, replayed)
}

func (c *addCommand) body(s *session) (map[string]any, error) {
	messages, err := c.messages(s)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"messages": messages}
	c.into(body)
	if c.NoInfer {
		body["infer"] = false
	}
	if c.Unordered {
		body["ordered"] = false
	}
	if c.Instructions != "" {
		body["instructions"] = c.Instructions
	}
	if c.EventDate != "" {
		body["event_date"] = c.EventDate
	}
	if c.Metadata != "" {
		if !json.Valid([]byte(c.Metadata)) {
			return nil, exitf(app.ExitUsage, "--metadata is no JSON")
		}
		body["metadata"] = json.RawMessage(c.Metadata)
	}
	return body, nil
}

func (c *addCommand) messages(s *session) ([]message, error) {
	switch {
	case c.File != "" && c.Text != "":
		return nil, exitf(app.ExitUsage, "give a text or a file")
	case c.File != "":
		found, err := readConversation(c.File, s.in)
		return found.messages, err
	case c.Text == "-" || c.Text == "" && piped(s.in):
		found, err := readConversation("-", s.in)
		return found.messages, err
	case strings.TrimSpace(c.Text) == "":
		return nil, exitf(app.ExitUsage, "give a text, a file with --file, or a conversation on standard input")
	}
	return []message{{Role: "user", Content: c.Text}}, nil
}

// printStored prints what a verbatim add did.
func (s *session) printStored(got answer) error {
	if s.json {
		return s.raw(got.body)
	}
	var stored struct {
		Results []result `json:"results"`
	}
	if err := got.read(&stored); err != nil {
		return err
	}
	return s.printResults(stored.Results)
}
