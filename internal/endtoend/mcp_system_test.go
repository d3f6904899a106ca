package endtoend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// agent is a client of the tools with a key and a scope.
type agent struct {
	s       *system
	session *sdk.ClientSession
}

// toolAnswer is what a tool said, in every form that the tools have.
type toolAnswer struct {
	isError        bool
	EventID        string  `json:"event_id"`
	Status         string  `json:"status"`
	Outcome        *string `json:"outcome"`
	IdempotencyKey string  `json:"idempotency_key"`
	Replayed       bool    `json:"replayed"`
	Deleted        bool    `json:"deleted"`
	Notice         string  `json:"notice"`
	Results        []struct {
		ID     string  `json:"id"`
		Event  string  `json:"event"`
		Memory *string `json:"memory"`
	} `json:"results"`
	Memories []struct {
		ID     string `json:"id"`
		Memory string `json:"memory"`
	} `json:"memories"`
	NextCursor *string `json:"next_cursor"`
	Error      struct {
		Code           string         `json:"code"`
		Message        string         `json:"message"`
		Action         string         `json:"action"`
		Retryable      bool           `json:"retryable"`
		IdempotencyKey string         `json:"idempotency_key"`
		Details        map[string]any `json:"details"`
	} `json:"error"`
}

// texts are the texts of found memories, in their order.
func (a toolAnswer) texts() string {
	texts := make([]string, len(a.Memories))
	for i, m := range a.Memories {
		texts[i] = m.Memory
	}
	return strings.Join(texts, "|")
}

// header is the key and a scope, given as header names without X-Holdfast- and -Id, and their values.
func (s *system) header(key string, scope ...string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + key}}
	for i := 0; i < len(scope); i += 2 {
		h.Add("X-Holdfast-"+scope[i]+"-Id", scope[i+1])
	}
	return h
}

// withHeader adds headers to every request.
type withHeader struct{ header http.Header }

func (t withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range t.header {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (s *system) dial(ctx context.Context, header http.Header) (*sdk.ClientSession, error) {
	return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.api + "/mcp", HTTPClient: &http.Client{Transport: withHeader{header}, Timeout: patience},
	}, nil)
}

// agent connects with the system's key.
func (s *system) agent(scope ...string) agent {
	s.t.Helper()
	return s.agentOf(s.key, scope...)
}

func (s *system) agentOf(key string, scope ...string) agent {
	s.t.Helper()
	session, err := s.dial(s.t.Context(), s.header(key, scope...))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return agent{s, session}
}

// call calls a tool, whose answer must be no error, or the error of that code.
func (a agent) call(code, tool string, arguments any) toolAnswer {
	a.s.t.Helper()
	said, err := a.try(tool, arguments)
	if err != nil {
		a.s.t.Fatalf("%s: %v", tool, err)
	}
	if said.Error.Code != code || said.isError != (code != "") {
		a.s.t.Fatalf("%s %v answers %+v, want the code %q", tool, arguments, said, code)
	}
	if code != "" && (said.Error.Message == "" || said.Error.Action == "") {
		a.s.t.Fatalf("%s refuses without saying what to do: %+v", tool, said)
	}
	return said
}

// try calls a tool and reads its answer, which must say the same in both of its forms.
func (a agent) try(tool string, arguments any) (toolAnswer, error) {
	result, err := a.session.CallTool(a.s.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return toolAnswer{}, err
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return toolAnswer{}, err
	}
	text := result.Content[0].(*sdk.TextContent).Text
	said, same := toolAnswer{isError: result.IsError}, toolAnswer{isError: result.IsError}
	if err := errors.Join(json.Unmarshal(structured, &said), json.Unmarshal([]byte(text), &same)); err != nil {
		return toolAnswer{}, err
	}
	if !reflect.DeepEqual(said, same) {
		return toolAnswer{}, fmt.Errorf("the answer is %s, and as text %s", structured, text)
	}
	return said, nil
}

// raw is an argument object as it is sent.
func raw(text string) json.RawMessage { return json.RawMessage(text) }

type object = map[string]any

// anotherWorkspace makes a workspace of its own and answers a key to it.
func (s *system) anotherWorkspace() string {
	s.t.Helper()
	db, err := postgres.Open(s.t.Context(), postgres.Config{URL: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	w, err := db.CreateWorkspace(s.t.Context(), uuid.NewString(), false)
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := db.CreateKey(s.t.Context(), w.ID, "other", access.Permissions(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return key.Reveal()
}

// keyWith makes a key to the system's workspace with these permissions.
func (s *system) keyWith(permissions ...access.Permission) string {
	s.t.Helper()
	db, err := postgres.Open(s.t.Context(), postgres.Config{URL: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	key, err := db.CreateKey(s.t.Context(), s.ws, uuid.NewString(), permissions, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return key.Reveal()
}

// newToolSystem starts an API and a worker for tests of the tools.
func newToolSystem(t *testing.T, url string) *system {
	t.Helper()
	s := newSystem(t, url)
	s.startAPI()
	s.startWorker()
	return s
}
