package holdfast

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxAnswer bounds an answer in memory: a page of a hundred memories of the greatest size stays below.
	maxAnswer = 64 << 20
	// maxProblem bounds a refusal; what a proxy says beyond it helps nobody.
	maxProblem = 1 << 20
)

// failure is how one attempt ended without a 2xx that can be read.
type failure struct {
	err   error         // an *Error, or the network's
	doubt bool          // the service may have carried it out
	again bool          // another attempt may end better
	floor time.Duration // and not before
}

// attempt sends a call once.
func (c *Client) attempt(ctx context.Context, r *call) (*reply, *failure) {
	bound := c.boundOf(r)
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(bound, cancel)
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	request, err := c.request(traced, r)
	if err != nil {
		cancel()
		return nil, &failure{err: err}
	}
	response, err := c.http.Do(request)
	if err != nil {
		late := !timer.Stop()
		cancel()
		return nil, &failure{err: plain(err, late, bound), doubt: connected.Load() || !unsent(err), again: true}
	}
	got := &reply{status: response.StatusCode, header: response.Header}
	if r.stream && got.status == http.StatusOK {
		timer.Stop() // the rest may take as long as the caller reads
		got.rest = &rest{response.Body, cancel}
		return got, nil
	}
	defer cancel()
	defer response.Body.Close()
	if got.status < 200 || got.status > 299 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem)) // a reason that breaks off is no reason
		return nil, c.refusal(r, got, text)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		late := !timer.Stop()
		return nil, &failure{err: fmt.Errorf("the answer broke off: %w", plain(err, late, bound)), doubt: true, again: true}
	case len(text) > maxAnswer:
		return nil, &failure{err: fmt.Errorf("the answer is larger than %d bytes", maxAnswer), doubt: true}
	}
	if !whole(text) {
		return nil, &failure{err: errors.New("the answer is not the service's, or not whole"), doubt: true, again: true}
	}
	if err := json.Unmarshal(text, r.into); err != nil { // its text may quote the answer
		return nil, &failure{err: errors.New("the answer has another form than this client knows"), doubt: true}
	}
	return got, nil
}

// boundOf is how long one attempt may take.
func (c *Client) boundOf(r *call) time.Duration {
	if r.bound > 0 {
		return r.bound
	}
	return c.attemptTime + r.wait
}

// whole tells whether an answer is one object. A proxy may cut it where nothing but its form shows it.
func whole(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Valid(text)
}

// refusal reads an answer that isn't 2xx.
func (c *Client) refusal(r *call, got *reply, text []byte) *failure {
	e := &Error{Op: r.op, Status: got.status, RequestID: got.header.Get("X-Request-Id"), RetryAfter: retryAfter(got.header, c.clock.now())}
	var problem struct {
		Code      string         `json:"code"`
		Message   string         `json:"message"`
		RequestID string         `json:"request_id"`
		Retryable bool           `json:"retryable"`
		Details   map[string]any `json:"details"`
	}
	if json.Unmarshal(text, &problem) == nil && problem.Code != "" {
		e.Code, e.Message, e.Retryable, e.Details = problem.Code, problem.Message, problem.Retryable, problem.Details
		if problem.RequestID != "" {
			e.RequestID = problem.RequestID
		}
	} else {
		e.Message = "the answer gives no reason"
		if got.status >= 300 && got.status <= 399 {
			e.Message = "redirects are not followed"
		}
		e.Retryable = gateway(got.status) || got.status == http.StatusTooManyRequests
	}
	// 402 may succeed later, after a top-up, not after a pause.
	again := e.Retryable && e.Status != http.StatusPaymentRequired
	return &failure{err: e, doubt: doubtful(e), again: again, floor: e.RetryAfter}
}

// gateway tells whether a status is what proxies answer for a service that they can't hear.
func gateway(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// doubtful tells whether a refusal leaves open what became of the request. The service's own 503 UNAVAILABLE does not: it
// has kept nothing.
func doubtful(e *Error) bool {
	switch {
	case e.Status >= 500:
		return e.Code != "UNAVAILABLE" && e.Code != "NOT_IMPLEMENTED"
	case e.Status < 400: // whoever redirects may have passed it on
		return e.Code == ""
	}
	return false
}

// settles tells whether a refusal also answers for the keyed attempts before it: the service looks at the key first, so
// that an accepted write would have been answered with its receipt. Who may call, and how often, it looks at before the key.
func settles(e *Error) bool {
	if e.Code == "" || e.Retryable && e.Status != http.StatusPaymentRequired {
		return false
	}
	return e.Status >= 400 && e.Status <= 499 && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden &&
		e.Code != "ROUTE_NOT_FOUND" && e.Code != "METHOD_NOT_ALLOWED"
}

// unsent tells whether an error says that there was no connection to send anything on.
func unsent(err error) bool {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &certificate)
}

// plain takes the URL off an error, which holds ids of the caller's, and says it when the attempt's own time was up.
// Then it is not the context's error: the caller's has time left.
func plain(err error, late bool, bound time.Duration) error {
	if late {
		return fmt.Errorf("no answer within %s", bound)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if strings.Contains(err.Error(), "Client.Timeout") { // the given http.Client's own, which calls itself the context's
		return errors.New("no answer within the time-out of the http.Client")
	}
	return err
}

// rest is the body of a stream.
type rest struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (r *rest) Close() error {
	err := r.ReadCloser.Close()
	r.cancel()
	return err
}
