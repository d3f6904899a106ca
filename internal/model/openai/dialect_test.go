package openai_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/openai"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClient(t *testing.T, stub *stubmodel.Server) *openai.Client {
	t.Helper()
	client, err := openai.New(openai.Config{BaseURL: stub.OpenAIURL(), Model: "stub", Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func said(content string) model.Request {
	return model.Request{Messages: []model.Message{{Role: "user", Content: content}}}
}

// sent is what a request asked for.
type sent struct {
	ResponseFormat struct {
		Type string `json:"type"`
	} `json:"response_format"`
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
}

func readSent(t *testing.T, body []byte) sent {
	t.Helper()
	var s sent
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// knowing answers like a server that knows these parameters and formats only.
func knowing(t *testing.T, status int, known ...string) stubmodel.Behavior {
	t.Helper()
	knows := map[string]bool{}
	for _, name := range known {
		knows[name] = true
	}
	return func(call stubmodel.Call) stubmodel.Answer {
		var s sent
		if err := json.Unmarshal(call.Body, &s); err != nil {
			return stubmodel.BadRequest("body")
		}
		refuse := func(words string) stubmodel.Answer {
			answer := stubmodel.BadRequest(words)
			answer.Status = status
			return answer
		}
		switch {
		case s.ResponseFormat.Type != "" && !knows[s.ResponseFormat.Type]:
			return refuse("'response_format.type' is not supported")
		case s.MaxTokens > 0 && !knows["max_tokens"]:
			return stubmodel.UnknownParameter("max_tokens")
		case s.MaxCompletionTokens > 0 && !knows["max_completion_tokens"]:
			return stubmodel.UnknownParameter("max_completion_tokens")
		}
		return stubmodel.FactLines(call)
	}
}

func TestDialect(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		status int
		known  []string
		calls  int
		format string
		limit  string
	}{
		{"SchemaIsKept", 400, []string{"json_schema", "json_object", "max_tokens"}, 1, "json_schema", "max_tokens"},
		{"ObjectWithout400", 400, []string{"json_object", "max_tokens"}, 2, "json_object", "max_tokens"},
		{"ObjectWithout404", 404, []string{"json_object", "max_tokens"}, 2, "json_object", "max_tokens"},
		{"ObjectWithout422", 422, []string{"json_object", "max_tokens"}, 2, "json_object", "max_tokens"},
		{"NoFormatAtAll", 400, []string{"max_tokens"}, 3, "", "max_tokens"},
		{"TheOtherLimit", 400, []string{"json_schema", "max_completion_tokens"}, 2, "json_schema", "max_completion_tokens"},
		{"NothingKnown", 400, nil, 5, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stub := stubmodel.New(t)
			stub.Always(stubmodel.At(stubmodel.Chat), knowing(t, c.status, c.known...))
			client := newClient(t, stub)
			got, err := client.Extract(t.Context(), said("FACT: one"))
			if err != nil || len(got.Facts) != 1 {
				t.Fatalf("got %d facts and %v", len(got.Facts), err)
			}
			if got.Usage.Calls != c.calls || stub.Count(stubmodel.Match{}) != c.calls {
				t.Fatalf("%d calls counted, %d arrived, want %d", got.Usage.Calls, stub.Count(stubmodel.Match{}), c.calls)
			}
			again, err := client.Extract(t.Context(), said("FACT: two"))
			if err != nil || again.Usage.Calls != 1 {
				t.Fatalf("what works was not remembered: %d calls, %v", again.Usage.Calls, err)
			}
			calls := stub.Calls(stubmodel.Match{})
			last := readSent(t, calls[len(calls)-1].Body)
			limit := ""
			switch {
			case last.MaxTokens > 0:
				limit = "max_tokens"
			case last.MaxCompletionTokens > 0:
				limit = "max_completion_tokens"
			}
			if last.ResponseFormat.Type != c.format || limit != c.limit {
				t.Fatalf("settled on %q and %q, want %q and %q", last.ResponseFormat.Type, limit, c.format, c.limit)
			}
		})
	}
}

func TestDialectIsNotLearnedFromFailures(t *testing.T) {
	t.Parallel()
	stub := stubmodel.New(t)
	stub.Queue(stubmodel.Match{}, stubmodel.Reply(stubmodel.BadRequest("response_format")), stubmodel.Reply(stubmodel.Refuse(503, "")))
	client := newClient(t, stub)
	_, err := client.Extract(t.Context(), said("x"))
	var failure *model.Error
	if !errors.As(err, &failure) || failure.Class != task.ProviderUnavailable || failure.Usage.Calls != 2 {
		t.Fatalf("got %v", err)
	}
	if _, err := client.Extract(t.Context(), said("x")); err != nil {
		t.Fatal(err)
	}
	calls := stub.Calls(stubmodel.Match{})
	if got := readSent(t, calls[2].Body).ResponseFormat.Type; got != "json_schema" {
		t.Fatalf("the next call asked for %q", got)
	}
}

func TestDialectIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	stub := stubmodel.New(t)
	stub.Always(stubmodel.At(stubmodel.Chat), knowing(t, 400, "json_object", "max_tokens"))
	client := newClient(t, stub)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if got, err := client.Extract(t.Context(), said("FACT: one")); err != nil || len(got.Facts) != 1 {
				t.Errorf("got %d facts and %v", len(got.Facts), err)
			}
		})
	}
	group.Wait()
}

func TestGatewayErrorInsideASuccess(t *testing.T) {
	t.Parallel()
	stub := stubmodel.New(t)
	stub.Queue(stubmodel.Match{}, stubmodel.Reply(stubmodel.Raw(`{"error":{"code":502,"message":"upstream"}}`)))
	_, err := newClient(t, stub).Extract(t.Context(), said("x"))
	var failure *model.Error
	if !errors.As(err, &failure) || failure.Class != task.ProviderUnavailable {
		t.Fatalf("got %v", err)
	}
}

func TestRefusalInAnotherForm(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"ErrorIsAString":    `{"error":"model context length exceeded"}`,
		"MessageAtTheTop":   `{"object":"error","message":"This model's maximum context length is 4096 tokens","code":400}`,
		"PlainText":         `the input exceeds the context window`,
		"NumberInPlaceOfIt": `{"error":{"code":400,"message":"context length"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub := stubmodel.New(t)
			stub.Queue(stubmodel.Match{}, stubmodel.Reply(stubmodel.Answer{Status: 400, Body: body}))
			_, err := newClient(t, stub).Extract(t.Context(), said("x"))
			var failure *model.Error
			if !errors.As(err, &failure) || failure.Class != task.ExtractionRejected || failure.Reason != "too long" {
				t.Fatalf("got %v", err)
			}
		})
	}
}
