package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// remote says which API is called, and as whom.
type remote struct {
	API      string       `name:"api" placeholder:"URL" help:"The API's address. Otherwise what run.json in the state directory names."`
	APIKey   model.Secret `name:"api-key" placeholder:"KEY" help:"The API key. Otherwise what run.json names."`
	StateDir string       `name:"state-dir" placeholder:"DIR" help:"Where run.json is."`
}

const (
	// callBound is longer than the API takes to decide an acceptance.
	callBound = 30 * time.Second
	// waitStep is how long one long-poll asks to wait; proxies often cut at 30 s.
	waitStep = 20 * time.Second
	// maxAnswer bounds an answer: a page of a hundred memories with their metadata stays far below.
	maxAnswer = 64 << 20
)

// client calls one API.
type client struct {
	base string
	key  model.Secret
	http *http.Client
}

// client returns a client for the address and key that are given, or else in run.json.
func (r remote) client() (*client, error) {
	if r.API == "" || r.APIKey == "" {
		running, err := app.ReadRunning(r.StateDir)
		if err != nil {
			return nil, err
		}
		if running != nil && r.API == "" {
			r.API = running.API
		}
		if running != nil && r.APIKey == "" && r.API == running.API { // a key goes only to the API that it belongs to
			r.APIKey = model.Secret(running.Key)
		}
	}
	switch {
	case r.API == "":
		return nil, exitf(app.ExitUsage, "no API: set HOLDFAST_API, or start one with `holdfast up`")
	case r.APIKey == "":
		return nil, exitf(app.ExitUsage, "no API key: set HOLDFAST_API_KEY")
	}
	base, err := url.Parse(strings.TrimRight(r.API, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, exitf(app.ExitUsage, "the API's address must be like http://127.0.0.1:8765")
	}
	return newClient(base.String(), r.APIKey), nil
}

func newClient(base string, key model.Secret) *client {
	return &client{base: base, key: key, http: &http.Client{Timeout: callBound}}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// read decodes the body into value.
func (a answer) read(value any) error {
	if err := json.Unmarshal(a.body, value); err != nil {
		return fmt.Errorf("the API's answer cannot be read: %w", err)
	}
	return nil
}

// problem is the API's way to say no.
type problem struct {
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	RequestID string         `json:"request_id"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
}

// call sends one request, with an Idempotency-Key unless it is empty, and returns any 2xx. Other answers are errors
// with the exit code that tells what to do.
func (c *client) call(ctx context.Context, method, path, idempotencyKey string, body any) (answer, error) {
	got, err := c.send(ctx, method, path, idempotencyKey, body)
	if err != nil {
		return got, err
	}
	if got.status >= http.StatusOK && got.status < http.StatusMultipleChoices {
		return got, nil
	}
	return got, got.refusal()
}

// send sends one request and returns the answer whatever its status.
func (c *client) send(ctx context.Context, method, path, idempotencyKey string, body any) (answer, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, fmt.Errorf("encode request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key.Reveal())
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, c.unreachable(err, idempotencyKey != "" && method != http.MethodGet)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, c.unreachable(err, idempotencyKey != "" && method != http.MethodGet)
	}
	return answer{response.StatusCode, response.Header, bytes.TrimSpace(text)}, nil
}

// unreachable tells what to do after a request without an answer: keyed is a write with an Idempotency-Key.
func (c *client) unreachable(err error, keyed bool) error {
	if errors.Is(err, context.Canceled) {
		return exitf(exitInterrupted, "interrupted")
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if keyed {
		return exitf(exitTryAgain, "%s does not answer (%v): the same request with the same key may be sent again", c.base, err)
	}
	return exitf(exitTryAgain, "%s does not answer (%v)", c.base, err)
}

// refusal turns an answer that isn't 2xx into an error.
func (a answer) refusal() error {
	var p problem
	if json.Unmarshal(a.body, &p) != nil || p.Code == "" {
		return exitf(exitTryAgain, "the API answered %d without a reason", a.status)
	}
	code := exitRefused
	if p.Retryable && a.status != http.StatusPaymentRequired {
		code = exitTryAgain
	}
	text := fmt.Sprintf("%s (%d): %s", p.Code, a.status, p.Message)
	for _, name := range []string{"pointer", "rule", "required", "available"} {
		if value, ok := p.Details[name]; ok {
			text += fmt.Sprintf(" %s: %v.", name, value)
		}
	}
	if wait := a.header.Get("Retry-After"); wait != "" {
		text += fmt.Sprintf(" Retry after %s s.", wait)
	}
	return exitf(code, "%s (request %s)", text, p.RequestID)
}
