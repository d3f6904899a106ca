package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// reply is an answer that has been held against the document.
type reply struct {
	*httptest.ResponseRecorder
	problem problemBody
}

type problemBody struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Code      fault.Code     `json:"code"`
	Message   string         `json:"message"`
	RequestID string         `json:"request_id"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
}

func (r reply) into(t *testing.T, value any) {
	t.Helper()
	if err := json.Unmarshal(r.Body.Bytes(), value); err != nil {
		t.Fatalf("status %d: %v", r.Code, err)
	}
}

type option func(*http.Request)

func header(name string, values ...string) option {
	return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = values }
}

// do sends a request as the caller of that name ("" for none), and holds the answer against the document.
func (w *world) do(t *testing.T, name, method, target, body string, options ...option) reply {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request := httptest.NewRequest(method, target, reader)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if name != "" {
		request.Header.Set("Authorization", "Bearer "+w.keys[name].Reveal())
	}
	for _, change := range options {
		change(request)
	}
	recorder := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(recorder, request)
	answer := reply{ResponseRecorder: recorder}
	if recorder.Header().Get("X-Request-Id") == "" {
		t.Error("the answer has no request id")
	}
	if method != http.MethodHead && strings.HasPrefix(recorder.Header().Get("Content-Type"), problemType) {
		answer.into(t, &answer.problem)
		if answer.problem.Status != recorder.Code || answer.problem.RequestID != recorder.Header().Get("X-Request-Id") {
			t.Errorf("the problem disagrees with its answer: %+v", answer.problem)
		}
		if strings.Contains(recorder.Body.String(), canary) {
			t.Errorf("the problem quotes the caller: %s", recorder.Body)
		}
	}
	w.hold(t, request, recorder)
	return answer
}

// hold validates an answer against the document, if there is a route.
func (w *world) hold(t *testing.T, request *http.Request, recorder *httptest.ResponseRecorder) {
	t.Helper()
	op := w.operation(request)
	if op == nil {
		return
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, Route: op.route},
		Status:                 recorder.Code, Header: recorder.Header(),
		Body:    io.NopCloser(bytes.NewReader(recorder.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		t.Errorf("%s %s answers %d against its contract: %v", request.Method, op.route.Path, recorder.Code, err)
	}
}

// operation finds a request's operation apart from the server's own router, nil without one.
func (w *world) operation(request *http.Request) *operation {
	parts := strings.Split(request.URL.EscapedPath(), "/")
	for _, op := range w.server.operations {
		names := strings.Split(op.route.Path, "/")
		same := len(parts) == len(names) && op.route.Method == request.Method && parts[len(parts)-1] != ""
		for i := range min(len(parts), len(names)) {
			same = same && (names[i] == parts[i] || names[i] == "{id}" && parts[i] != "search" && parts[i] != "batch" && parts[i] != "stream" || names[i] == "{type}")
		}
		if same {
			return op
		}
	}
	return nil
}

func (r reply) want(t *testing.T, status int, code fault.Code) {
	t.Helper()
	if r.Code != status || r.problem.Code != code {
		t.Fatalf("got %d %s, want %d %s (%s)", r.Code, r.problem.Code, status, code, r.Body)
	}
}
