package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/anthropic"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ model.Extractor = (*anthropic.Client)(nil)

func newClient(t *testing.T, config anthropic.Config) *anthropic.Client {
	t.Helper()
	client, err := anthropic.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func said(content string) model.Request {
	return model.Request{Messages: []model.Message{{Role: "user", Content: content}}}
}

func answerWith(t *testing.T, body string) ([]model.Fact, error) {
	t.Helper()
	stub := stubmodel.New(t)
	stub.Queue(stubmodel.Match{}, stubmodel.Reply(stubmodel.Raw(body)))
	got, err := newClient(t, anthropic.Config{BaseURL: stub.URL()}).Extract(t.Context(), said("x"))
	return got.Facts, err
}

func messageWith(stop string, blocks ...string) string {
	return `{"id":"m","type":"message","role":"assistant","model":"stub","content":[` + strings.Join(blocks, ",") +
		`],"stop_reason":"` + stop + `","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":2}}`
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	const (
		thinking = `{"type":"thinking","thinking":"{\"facts\":[\"no\"]}","signature":"s"}`
		preface  = `{"type":"text","text":"I will remember {\"facts\":[\"no\"]}."}`
		useOne   = `{"type":"tool_use","id":"1","name":"remember","input":{"facts":["one"]}}`
		useTwo   = `{"type":"tool_use","id":"2","name":"remember","input":{"facts":["two"]}}`
		broken   = `{"type":"tool_use","id":"3","name":"remember","input":{"facts":[{"a":1}]}}`
		other    = `{"type":"tool_use","id":"4","name":"search","input":{"facts":["no"]}}`
		text     = `{"type":"text","text":"{\"facts\":[\"one\"]}"}`
		unknown  = `{"type":"something_new","data":"x"}`
	)
	taken := []struct {
		name   string
		blocks []string
		want   []string
	}{
		{"ToolUse", []string{useOne}, []string{"one"}},
		{"ThinkingFirst", []string{thinking, useOne}, []string{"one"}},
		{"TextFirst", []string{preface, useOne}, []string{"one"}},
		{"TextOnly", []string{thinking, text}, []string{"one"}},
		{"SplitAnswer", []string{useOne, useTwo}, []string{"one", "two"}},
		{"OtherToolIsIgnored", []string{other, useOne}, []string{"one"}},
		{"UnknownBlockIsIgnored", []string{unknown, useOne}, []string{"one"}},
	}
	for _, c := range taken {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			facts, err := answerWith(t, messageWith("tool_use", c.blocks...))
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, fact := range facts {
				texts = append(texts, fact.Text)
			}
			if !slices.Equal(texts, c.want) {
				t.Fatalf("got %q, want %q", texts, c.want)
			}
		})
	}

	refused := []struct {
		name string
		body string
		want task.Class
	}{
		{"NoBlocks", messageWith("end_turn"), task.OutputInvalid},
		{"ThinkingOnly", messageWith("end_turn", thinking), task.OutputInvalid},
		{"OtherToolOnly", messageWith("tool_use", other), task.OutputInvalid},
		{"OneBrokenPartSpoilsAll", messageWith("tool_use", useOne, broken), task.OutputInvalid},
		{"RunawayToolUse", messageWith("tool_use", slices.Repeat([]string{useOne}, 9)...), task.OutputInvalid},
		{"TokenLimit", messageWith("max_tokens", useOne), task.OutputInvalid},
		{"Paused", messageWith("pause_turn", useOne), task.OutputInvalid},
		{"Refusal", messageWith("refusal", useOne), task.ExtractionRejected},
		{"ContextFull", messageWith("model_context_window_exceeded", useOne), task.ExtractionRejected},
	}
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			facts, err := answerWith(t, c.body)
			var failure *model.Error
			if !errors.As(err, &failure) || failure.Class != c.want || len(facts) > 0 {
				t.Fatalf("got %d facts and %v, want %s", len(facts), err, c.want)
			}
			if failure.Usage.TokensIn != 15 || failure.Usage.TokensOut != 2 {
				t.Fatalf("the tokens of a failed answer are lost: %+v", failure.Usage)
			}
		})
	}
}

func TestRequestForcesTheTool(t *testing.T) {
	t.Parallel()
	stub := stubmodel.New(t)
	client := newClient(t, anthropic.Config{BaseURL: stub.URL() + "/v1/", MaxOutputTokens: 1234})
	if _, err := client.Extract(t.Context(), said("x")); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Model      string `json:"model"`
		MaxTokens  int    `json:"max_tokens"`
		ToolChoice struct {
			Type string `json:"type"`
			Name string `json:"name"`
			Once bool   `json:"disable_parallel_tool_use"`
		} `json:"tool_choice"`
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(stub.Calls(stubmodel.Match{})[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Model != anthropic.DefaultModel || sent.MaxTokens != 1234 || len(sent.Tools) != 1 {
		t.Fatalf("sent %+v", sent)
	}
	if sent.ToolChoice.Type != "tool" || sent.ToolChoice.Name != sent.Tools[0].Name || !sent.ToolChoice.Once {
		t.Errorf("the tool is not forced: %+v", sent.ToolChoice)
	}
	var got, want any
	if json.Unmarshal(sent.Tools[0].Schema, &got) != nil || json.Unmarshal(model.NewPrompt(model.Request{}).Schema, &want) != nil {
		t.Fatal("a schema is no JSON")
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the tool takes %s, want %s", sent.Tools[0].Schema, model.NewPrompt(model.Request{}).Schema)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]anthropic.Config{
		"NoKeyForTheOfficialServer": {},
		"RelativeBaseURL":           {BaseURL: "localhost:1"},
		"CredentialsInTheBaseURL":   {BaseURL: "http://u:canary@x"},
		"KeyWithALineBreak":         {APIKey: "sk-canary\n"},
		"TimeoutOfNothing":          {APIKey: "k", Timeout: -time.Second},
		"OutputThatNeedsStreaming":  {APIKey: "k", MaxOutputTokens: 30_000},
	} {
		_, err := anthropic.New(config)
		if err == nil {
			t.Errorf("%s was taken", name)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error quotes the setting: %v", name, err)
		}
	}
}

// TestEnvironment sets everything the SDK would read. It cannot run in parallel.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "canary", "ANTHROPIC_AUTH_TOKEN": "canary", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/canary",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Canary: canary", "ANTHROPIC_PROFILE": "canary", "ANTHROPIC_CONFIG_DIR": t.TempDir(),
		"ANTHROPIC_WEBHOOK_SIGNING_KEY": "canary",
	} {
		t.Setenv(name, value)
	}
	stub := stubmodel.New(t)
	client := newClient(t, anthropic.Config{BaseURL: stub.URL()})
	if _, err := client.Extract(t.Context(), said("x")); err != nil {
		t.Fatal(err)
	}
	if err := client.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := stub.Calls(stubmodel.At(stubmodel.Everything))
	if len(calls) != 2 {
		t.Fatalf("%d calls arrived", len(calls))
	}
	for _, call := range calls {
		for name, values := range call.Header {
			if strings.Contains(strings.ToLower(name+fmt.Sprint(values)), "canary") {
				t.Errorf("%s: the environment leaked into %s", call.Endpoint, name)
			}
			if name == "X-Api-Key" || name == "Authorization" {
				t.Errorf("%s: a key was sent that nobody set: %s", call.Endpoint, name)
			}
		}
	}
}
