package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// call is one request as it is sent, once or several times.
type call struct {
	op     string // names it in errors
	method string
	path   string // escaped
	query  url.Values
	header map[string]string
	body   []byte
	upload *upload // in place of body
	into   any     // what a 2xx is decoded into

	key    string // of the write, empty without one
	keyed  bool   // the key goes out as it is, or is made if it is empty
	write  bool   // it may change something: without an answer its outcome is unknown
	repeat bool   // sent again it does no harm
	once   bool   // but not once it may have arrived

	wait   time.Duration // what the service is asked to wait
	bound  time.Duration // of one attempt, in place of the client's
	stream bool          // the answer's body is handed over unread
}

// reply is a 2xx.
type reply struct {
	status int
	header http.Header
	rest   io.ReadCloser // of a stream
}

// replayed tells whether the service knew the key.
func (r *reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// read is a call that changes nothing.
func read(op, path string, query url.Values) call {
	return call{op: op, method: http.MethodGet, path: path, query: query, repeat: true}
}

// ask is a read with a question in its body.
func ask(op, path string, body any) (call, error) {
	text, err := encode(op, body)
	return call{op: op, method: http.MethodPost, path: path, body: text, repeat: true}, err
}

// keyedWrite is a write under a key: that of an option, or else a new one.
func keyedWrite(op, method, path string, body any, opts []CallOption) (call, error) {
	w := call{op: op, method: method, path: path, write: true, repeat: true}
	for _, opt := range opts {
		opt(&w)
	}
	if !w.keyed {
		w.key, w.keyed = NewKey(), true
	}
	if err := checkKey(w.key); err != nil {
		return w, err
	}
	w.header = map[string]string{"Idempotency-Key": headerKey(w.key)}
	if body == nil {
		return w, nil
	}
	var err error
	w.body, err = encode(op, body)
	return w, err
}

// encode writes a body once, so that every attempt has the same bytes.
func encode(op string, body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the service bounds bytes, and <, > and & would count as six
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("holdfast: %s: encode request: %w", op, err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// request makes the request of one attempt.
func (c *Client) request(ctx context.Context, r *call) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var body io.Reader
	contentType := "application/json"
	switch {
	case r.upload != nil:
		again, err := r.upload.open()
		if err != nil {
			return nil, err
		}
		body, contentType = again, "application/x-ndjson"
	case r.body != nil:
		body = bytes.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil { // its text has the path, and with it ids of the caller's
		return nil, errors.New("the request cannot be made of these ids")
	}
	c.authorize(request.Header)
	request.Header.Set("User-Agent", c.agent)
	request.Header.Set("Accept", "application/json, application/x-ndjson, application/problem+json")
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	for name, value := range r.header {
		request.Header.Set(name, value)
	}
	return request, nil
}

// segment escapes an id as one segment of a path. An id of dots would be taken for a step in the tree, and an empty one
// would address what is above it.
func segment(op, id string) (string, error) {
	if id == "" {
		return "", fmt.Errorf("holdfast: %s: the id is empty", op)
	}
	if strings.Trim(id, ".") == "" {
		return strings.ReplaceAll(id, ".", "%2E"), nil
	}
	return url.PathEscape(id), nil
}

// retryAfter reads the header of that name: seconds or a date. A day bounds what a wrong value can do.
func retryAfter(header http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(most/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), most)
	}
	return 0
}
