package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-memory/holdfast/internal/write"
)

type eventCommands struct {
	Get    eventGet    `cmd:"" help:"Show one event."`
	Wait   eventWait   `cmd:"" help:"Wait for the end of an event."`
	List   eventList   `cmd:"" help:"List events, newest first."`
	Retry  eventRetry  `cmd:"" help:"Authorise a new run of a failed event, or of many."`
	Cancel eventCancel `cmd:"" help:"End an event, or many, before they store anything."`
}

// event is what is printed of one.
type event struct {
	ID         string   `json:"id"`
	Status     string   `json:"status"`
	Outcome    *string  `json:"outcome"`
	Results    []result `json:"results"`
	Attempts   int      `json:"attempts"`
	Generation int      `json:"generation"`
	Error      *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Action  string `json:"action"`
	} `json:"error"`
	Usage struct {
		Reserved      int64 `json:"reserved"`
		Settled       int64 `json:"settled"`
		Released      int64 `json:"released"`
		ProviderCalls int   `json:"provider_calls"`
	} `json:"usage"`
	CreatedAt time.Time `json:"created_at"`
	LatencyMS *int64    `json:"latency_ms"`
}

type result struct {
	ID     string  `json:"id"`
	Event  string  `json:"event"`
	Memory *string `json:"memory"`
}

func (e event) terminal() bool { return e.Status == "SUCCEEDED" || e.Status == "FAILED" }

type eventGet struct {
	remote
	ID string `arg:"" help:"The event's id."`
}

func (c *eventGet) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	got, err := api.call(s.ctx, http.MethodGet, "/v1/events/"+url.PathEscape(c.ID), "", nil)
	if err != nil {
		return err
	}
	return s.printEvent(got)
}

type eventWait struct {
	remote
	ID      string        `arg:"" help:"The event's id."`
	Timeout time.Duration `default:"5m" env:"-" help:"How long to wait at most."`
}

func (c *eventWait) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	return s.wait(api, c.ID, c.Timeout)
}

// wait prints the event at its end. A failed event and one that has not ended in time have exit codes of their own.
func (s *session) wait(api *client, id string, most time.Duration) error {
	deadline := time.Now().Add(most)
	for {
		step := min(waitStep, max(0, time.Until(deadline)))
		path := "/v1/events/" + url.PathEscape(id) + "?wait=" + strconv.Itoa(int(step.Seconds()+0.999))
		got, err := api.call(s.ctx, http.MethodGet, path, "", nil)
		if err != nil {
			return err
		}
		var e event
		if err := got.read(&e); err != nil {
			return err
		}
		over := !time.Now().Before(deadline)
		if !e.terminal() && !over {
			continue
		}
		if err := s.printEvent(got); err != nil {
			return err
		}
		switch {
		case e.Status == "FAILED":
			return &exitError{code: 1}
		case !e.terminal():
			return exitf(exitPending, "it has not ended after %s; nothing is lost, ask again", most)
		}
		return nil
	}
}

type eventList struct {
	remote
	Status         string `env:"-" enum:",PENDING,RUNNING,RETRYING,SUCCEEDED,FAILED" default:"" help:"Only PENDING, RUNNING, RETRYING, SUCCEEDED or FAILED ones."`
	Type           string `env:"-" enum:",memory_infer,memory_add" default:"" help:"memory_infer (the default) or memory_add."`
	IdempotencyKey string `name:"idempotency-key" env:"-" placeholder:"KEY" help:"Only the one of this key: what became of a request without an answer."`
	Limit          int    `default:"20" env:"-" help:"How many at most."`
	Cursor         string `env:"-" help:"The next_cursor of the page before."`
}

func (c *eventList) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	for name, value := range map[string]string{"status": c.Status, "type": c.Type, "cursor": c.Cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	got, err := api.call(s.ctx, http.MethodGet, "/v1/events?"+query.Encode(), c.IdempotencyKey, nil)
	if err != nil {
		return err
	}
	if s.json {
		return s.raw(got.body)
	}
	var page struct {
		Results    []event `json:"results"`
		NextCursor *string `json:"next_cursor"`
	}
	if err := got.read(&page); err != nil {
		return err
	}
	rows := make([]string, len(page.Results))
	for i, e := range page.Results {
		rows[i] = fmt.Sprintf("%s\t%s\t%s\t%d\t%s", e.ID, e.Status, e.what(), e.Attempts, e.CreatedAt.Format(time.RFC3339))
	}
	if err := s.table("id\tstatus\toutcome\tattempts\tcreated", rows); err != nil || page.NextCursor == nil {
		return err
	}
	return s.show(nil, "more: --cursor %s\n", *page.NextCursor)
}

// what is the outcome of a success, or the code of a failure.
func (e event) what() string {
	switch {
	case e.Outcome != nil:
		return *e.Outcome
	case e.Error != nil:
		return e.Error.Code
	}
	return "-"
}

type eventRetry struct {
	remote
	bulkFlags
	ID             string `arg:"" optional:"" help:"The event's id."`
	Generation     int    `env:"-" help:"The generation that was seen to fail (the present one)."`
	IdempotencyKey string `name:"idempotency-key" env:"-" placeholder:"KEY" help:"A key in place of the generation."`
}

func (c *eventRetry) Run(s *session) error {
	many, err := c.many(c.ID)
	if err != nil {
		return err
	}
	if many {
		return s.bulk(write.BulkRetry, &c.bulkFlags, c.StateDir)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	path := "/v1/events/" + url.PathEscape(c.ID)
	var body any
	if c.IdempotencyKey == "" {
		generation := c.Generation
		if generation == 0 {
			var seen event
			got, err := api.call(s.ctx, http.MethodGet, path, "", nil)
			if err != nil {
				return err
			}
			if err := got.read(&seen); err != nil {
				return err
			}
			generation = seen.Generation
		}
		body = map[string]int{"generation": generation}
	}
	got, err := api.call(s.ctx, http.MethodPost, path+"/retry", c.IdempotencyKey, body)
	if err != nil {
		return err
	}
	return s.printEvent(got)
}

type eventCancel struct {
	remote
	bulkFlags
	ID string `arg:"" optional:"" help:"The event's id."`
}

func (c *eventCancel) Run(s *session) error {
	many, err := c.many(c.ID)
	if err != nil {
		return err
	}
	if many {
		return s.bulk(write.BulkCancel, &c.bulkFlags, c.StateDir)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	got, err := api.call(s.ctx, http.MethodPost, "/v1/events/"+url.PathEscape(c.ID)+"/cancel", "", nil)
	if err != nil {
		return err
	}
	return s.printEvent(got)
}

func (s *session) printEvent(got answer) error {
	if s.json {
		return s.raw(got.body)
	}
	var e event
	if err := got.read(&e); err != nil {
		return err
	}
	took := ""
	if e.LatencyMS != nil {
		took = fmt.Sprintf("  after %d ms", *e.LatencyMS)
	}
	if err := s.show(nil, "%s  %s  %s  attempts %d  generation %d%s\n", e.ID, e.Status, e.what(), e.Attempts, e.Generation, took); err != nil {
		return err
	}
	if e.Error != nil {
		if err := s.show(nil, "  %s %s\n", e.Error.Message, e.Error.Action); err != nil {
			return err
		}
	}
	return s.printResults(e.Results)
}

func (s *session) printResults(results []result) error {
	for _, r := range results {
		text := "(gone)"
		if r.Memory != nil {
			text = *r.Memory
		}
		if err := s.show(nil, "  %-6s %s  %s\n", r.Event, r.ID, text); err != nil {
			return err
		}
	}
	return nil
}
