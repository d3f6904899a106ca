package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type webhookCommands struct {
	List       webhookList       `cmd:"" help:"List webhooks."`
	Create     webhookCreate     `cmd:"" help:"Tell a receiver of what ends, and show the secret that signs, once."`
	Delete     webhookDelete     `cmd:"" help:"Delete a webhook with its deliveries."`
	Deliveries webhookDeliveries `cmd:"" help:"Show what was sent to a webhook, newest first."`
	Replay     webhookReplay     `cmd:"" help:"Send deliveries again, under the ids they had."`
}

// webhook is what is printed of one.
type webhook struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	URL        string   `json:"url"`
	EventTypes []string `json:"event_types"`
	Active     bool     `json:"active"`
	Reason     *string  `json:"disabled_reason"`
	Secret     string   `json:"secret"`
}

// state is how the webhook is, in one word.
func (w webhook) state() string {
	if w.Active || w.Reason == nil {
		return "active"
	}
	return "disabled:" + *w.Reason
}

type webhookList struct{ remote }

func (c *webhookList) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	got, err := api.call(s.ctx, http.MethodGet, "/v1/webhooks", "", nil)
	if err != nil {
		return err
	}
	if s.json {
		return s.raw(got.body)
	}
	var page struct {
		Results []webhook `json:"results"`
	}
	if err := got.read(&page); err != nil {
		return err
	}
	rows := make([]string, len(page.Results))
	for i, w := range page.Results {
		rows[i] = strings.Join([]string{w.ID, w.state(), strings.Join(w.EventTypes, ","), w.URL, w.Name}, "\t")
	}
	return s.table("id\tstate\ttold of\turl\tname", rows)
}

type webhookCreate struct {
	remote
	URL    string   `arg:"" help:"Where the messages are sent."`
	Name   string   `env:"-" help:"A name for people."`
	Events []string `env:"-" default:"event.succeeded,event.failed" help:"What it is told of: event.succeeded, event.failed."`
	Kinds  []string `env:"-" help:"Only of these kinds of work, such as memory_infer."`
}

func (c *webhookCreate) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	body := map[string]any{"url": c.URL, "name": c.Name, "event_types": c.Events}
	if len(c.Kinds) > 0 {
		body["kinds"] = c.Kinds
	}
	got, err := api.call(s.ctx, http.MethodPost, "/v1/webhooks", "", body)
	if err != nil {
		return err
	}
	if s.json {
		return s.raw(got.body)
	}
	var made webhook
	if err := got.read(&made); err != nil {
		return err
	}
	return s.show(nil, "%s\nIts secret, which is not shown again: %s\n", made.ID, made.Secret)
}

type webhookDelete struct {
	remote
	ID string `arg:"" help:"The webhook's id."`
}

func (c *webhookDelete) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	got, err := api.call(s.ctx, http.MethodDelete, "/v1/webhooks/"+url.PathEscape(c.ID), "", nil)
	if err != nil {
		return err
	}
	if s.json {
		return s.raw(got.body)
	}
	return s.show(nil, "Deleted. Nothing more is sent to it.\n")
}

type webhookDeliveries struct {
	remote
	ID     string `arg:"" help:"The webhook's id."`
	Limit  int    `default:"20" env:"-" help:"How many at most."`
	Cursor string `env:"-" help:"The next_cursor of the page before."`
}

func (c *webhookDeliveries) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if c.Cursor != "" {
		query.Set("cursor", c.Cursor)
	}
	got, err := api.call(s.ctx, http.MethodGet, "/v1/webhooks/"+url.PathEscape(c.ID)+"/deliveries?"+query.Encode(), "", nil)
	if err != nil {
		return err
	}
	if s.json {
		return s.raw(got.body)
	}
	var page struct {
		Results []struct {
			ID         string    `json:"id"`
			Type       string    `json:"type"`
			EventID    *string   `json:"event_id"`
			Status     string    `json:"status"`
			Attempts   int       `json:"attempts"`
			LastStatus *int      `json:"last_status"`
			LastError  *string   `json:"last_error"`
			CreatedAt  time.Time `json:"created_at"`
		} `json:"results"`
		NextCursor *string `json:"next_cursor"`
	}
	if err := got.read(&page); err != nil {
		return err
	}
	rows := make([]string, len(page.Results))
	for i, d := range page.Results {
		last := "-"
		if d.LastStatus != nil {
			last = strconv.Itoa(*d.LastStatus)
		}
		if d.LastError != nil {
			last += " " + *d.LastError
		}
		about := "-"
		if d.EventID != nil {
			about = *d.EventID
		}
		rows[i] = fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", d.ID, d.CreatedAt.Format(time.RFC3339), d.Type, d.Status, d.Attempts, last, about)
	}
	if err := s.table("delivery\tmade\ttype\tstatus\tattempts\tlast answer\tevent", rows); err != nil {
		return err
	}
	if page.NextCursor != nil {
		return s.show(nil, "more: --cursor %s\n", *page.NextCursor)
	}
	return nil
}

type webhookReplay struct {
	remote
	ID         string    `arg:"" help:"The webhook's id."`
	Since      time.Time `env:"-" placeholder:"TIME" help:"Deliveries that were made then or later, as 2026-01-02T15:04:05Z."`
	Until      time.Time `env:"-" placeholder:"TIME" help:"Deliveries that were made before."`
	FailedOnly bool      `name:"failed-only" env:"-" help:"Only those that failed for good."`
}

// maxReplays bounds the calls of one replay: with 500 deliveries each, half a million.
const maxReplays = 1_000

func (c *webhookReplay) Run(s *session) error {
	if c.Since.IsZero() && c.Until.IsZero() && !c.FailedOnly {
		return exitf(app.ExitUsage, "say which: --since, --until or --failed-only")
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	body := map[string]any{"failed_only": c.FailedOnly}
	for name, at := range map[string]time.Time{"since": c.Since, "until": c.Until} {
		if !at.IsZero() {
			body[name] = at.UTC().Format(time.RFC3339)
		}
	}
	total := 0
	for range maxReplays {
		got, err := api.call(s.ctx, http.MethodPost, "/v1/webhooks/"+url.PathEscape(c.ID)+"/replay", "", body)
		if err != nil {
			return err
		}
		var page struct {
			Replayed   int     `json:"replayed"`
			NextCursor *string `json:"next_cursor"`
		}
		if err := got.read(&page); err != nil {
			return err
		}
		total += page.Replayed
		if page.NextCursor == nil {
			break
		}
		body["cursor"] = *page.NextCursor
	}
	return s.show(map[string]any{"replayed": total}, "%d deliveries are sent again.\n", total)
}
