//go:build cluster

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// write is one key with what callers were told of it.
type write struct {
	key      string
	event    string
	accepted time.Time
}

// callers write from several connections, each key until it is answered, at two APIs in turn.
type callers struct {
	t       *testing.T
	apis    []string
	key     string
	stop    chan struct{}
	running sync.WaitGroup
	retries atomic.Int64

	mu      sync.Mutex
	told    []write
	changed chan struct{}
}

const (
	callerCount = 4
	// callerPace keeps what has to end afterwards small; the faults are what is measured, not the throughput.
	callerPace = 25 * time.Millisecond
)

func startCallers(t *testing.T, key string, apis ...string) *callers {
	t.Helper()
	c := &callers{t: t, apis: apis, key: key, stop: make(chan struct{}), changed: make(chan struct{})}
	for i := range callerCount {
		c.running.Go(func() { c.run(i) })
	}
	return c
}

func (c *callers) run(number int) {
	pace := time.NewTicker(callerPace)
	defer pace.Stop()
	for n := 0; ; n++ {
		key := fmt.Sprintf("caller-%d-%d", number, n)
		for attempt := 0; ; attempt++ {
			event, err := c.post(key, c.apis[(n+attempt)%len(c.apis)])
			if err == nil {
				c.note(write{key, event, time.Now()})
				break
			}
			c.retries.Add(1)
			select {
			case <-pace.C:
			case <-c.stop:
				return
			}
		}
		select {
		case <-pace.C:
		case <-c.stop:
			return
		}
	}
}

// post writes once; an answer that is no receipt is an error.
func (c *callers) post(key, api string) (event string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"user_id": key, "messages": []map[string]string{{"role": "user", "content": "FACT: " + key}},
	})
	if err != nil {
		return "", err
	}
	var receipt struct {
		EventID string `json:"event_id"`
	}
	status, err := call(ctx, http.MethodPost, api+"/v1/memories", c.key, key, bytes.NewReader(body), &receipt)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("status %d", status)
	}
	return receipt.EventID, err
}

func (c *callers) note(w write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, w)
	close(c.changed)
	c.changed = make(chan struct{})
}

// acceptedAfter waits for n receipts from now on and returns when the first one came and its event.
func (c *callers) acceptedAfter(n int) write {
	c.t.Helper()
	deadline := time.After(patience)
	c.mu.Lock()
	from := len(c.told)
	c.mu.Unlock()
	for {
		c.mu.Lock()
		told, changed := c.told, c.changed
		c.mu.Unlock()
		if len(told) >= from+n {
			return told[from]
		}
		select {
		case <-changed:
		case <-deadline:
			c.t.Fatalf("%d of %d writes were accepted", len(told)-from, n)
		}
	}
}

// end stops writing and returns all receipts.
func (c *callers) end() []write {
	close(c.stop)
	c.running.Wait()
	return c.told
}

// call is one request; what is no refusal is read into answer.
func call(ctx context.Context, method, url, key, idempotency string, body *bytes.Reader, answer any) (status int, err error) {
	if body == nil {
		body = bytes.NewReader(nil)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if idempotency != "" {
		request.Header.Set("Idempotency-Key", idempotency)
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.NewDecoder(response.Body).Decode(answer)
}

// until looks every few milliseconds, with a bound, for what no signal tells.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long: %s", what)
		}
	}
}
