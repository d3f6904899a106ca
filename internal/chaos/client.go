package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	tryBound  = 4 * time.Second        // a frozen server must not hold a caller for long
	sendBound = 90 * time.Second       // outages last seconds, restarts of PostgreSQL on a busy machine tens of them
	sendPause = 150 * time.Millisecond // between two tries, doubled up to two seconds
	mostBytes = 4 << 20                // of an answer; the longest is a page of events
)

// request is one call of the API, as it is repeated.
type request struct {
	method, path, key string
	body              any
	raw               []byte // a snapshot, in place of body
	account           string // of the items dialect
	mem0              bool
	user              string // of a tool's connection; then body is a call of MCP
	bearer            string // in place of the workspace's key
}

// answer is the answer to a request. Sure tells that no earlier try can still take effect: there was none.
type answer struct {
	status int
	body   []byte
	sure   bool
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// code is the public code of a refusal.
func (a answer) code() string {
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(a.body, &problem) != nil {
		return ""
	}
	return problem.Code
}

// client repeats requests until their answer is definite, each time at one of the APIs.
type client struct {
	apis  []string
	http  *http.Client
	rand  *rand.Rand // where a request goes; not part of the plan
	notes *notes
}

// send returns the first definite answer: anything but 429, 5xx, a key that is in use, a suspended workspace, and no
// answer at all.
func (c *client) send(ctx context.Context, s *space, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, sendBound)
	defer cancel()
	rest, doubt := sendPause, false
	for {
		c.notes.mu.Lock()
		c.notes.tries++
		c.notes.mu.Unlock()
		got, err := c.try(ctx, s, r)
		suspended := err == nil && got.code() == "INSUFFICIENT_PERMISSION" // the keys have all: an operator has suspended it, for moments
		if err == nil && !suspended && got.status < 500 && got.status != http.StatusTooManyRequests && got.code() != "IDEMPOTENCY_IN_PROGRESS" {
			got.sure = !doubt
			return got, nil
		}
		doubt = doubt || !suspended
		if err == nil {
			err = fmt.Errorf("%d %s", got.status, got.code())
		}
		select {
		case <-ctx.Done():
			return answer{}, fmt.Errorf("%s %s: no definite answer: %w", r.method, r.path, errors.Join(err, ctx.Err()))
		case <-time.After(rest/2 + time.Duration(c.rand.Int64N(int64(rest)))):
			rest = min(2*rest, 2*time.Second)
		}
	}
}

func (c *client) try(ctx context.Context, s *space, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryBound)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(encoded)
	} else if r.raw != nil {
		body = bytes.NewReader(r.raw)
	}
	api := c.apis[c.rand.IntN(len(c.apis))]
	call, err := http.NewRequestWithContext(ctx, r.method, api+r.path, body)
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	scheme := "Bearer "
	if r.mem0 {
		scheme = "Token "
	}
	bearer := r.bearer
	if bearer == "" {
		bearer = s.key
	}
	call.Header.Set("Authorization", scheme+bearer)
	switch {
	case r.raw != nil:
		call.Header.Set("Content-Type", "application/x-ndjson")
	case body != nil:
		call.Header.Set("Content-Type", "application/json")
	}
	if r.user != "" {
		call.Header.Set("X-Holdfast-User-Id", r.user)
		call.Header.Set("Accept", "application/json, text/event-stream")
	}
	if r.key != "" {
		call.Header.Set("Idempotency-Key", r.key)
	}
	if r.account != "" {
		call.Header.Set("X-Twin-Account", r.account)
	}
	response, err := c.http.Do(call)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	got := answer{status: response.StatusCode, body: read}
	if err == nil && r.user != "" && got.ok() {
		return unpacked(got)
	}
	return got, err
}

// eventView is what a caller reads of an event.
type eventView struct {
	ID         string  `json:"id"`
	EventID    string  `json:"event_id"`
	Status     string  `json:"status"`
	Outcome    *string `json:"outcome"`
	Generation int     `json:"generation"`
	Results    []struct {
		ID    string `json:"id"`
		Event string `json:"event"`
	} `json:"results"`
	Error *struct {
		Code      string `json:"code"`
		Retryable bool   `json:"retryable"`
	} `json:"error"`
}

// receipt reads the event's id in any of the dialects, zero without one.
func (a answer) receipt() (uuid.UUID, eventView) {
	var view eventView
	if json.Unmarshal(a.body, &view) != nil {
		return uuid.Nil, view
	}
	text := view.EventID
	if text == "" {
		text = view.ID
	}
	id, err := uuid.Parse(strings.TrimPrefix(text, "evt_"))
	if err != nil {
		return uuid.Nil, view
	}
	return id, view
}

// event reads an event as a caller does.
func (c *client) event(ctx context.Context, s *space, id uuid.UUID) (eventView, int, error) {
	got, err := c.send(ctx, s, request{method: http.MethodGet, path: "/v1/events/" + id.String()})
	if err != nil || !got.ok() {
		return eventView{}, got.status, err
	}
	_, view := got.receipt()
	return view, got.status, nil
}
