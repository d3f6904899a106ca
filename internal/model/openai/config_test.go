package openai_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/openai"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func TestConfig(t *testing.T) {
	t.Parallel()

	t.Run("NamesTheFixInItsErrors", func(t *testing.T) {
		t.Parallel()
		for name, config := range map[string]openai.Config{
			"NoKeyForTheOfficialServer": {},
			"RelativeBaseURL":           {BaseURL: "localhost:1/v1"},
			"CredentialsInTheBaseURL":   {BaseURL: "http://u:canary@x/v1"},
			"KeyWithALineBreak":         {APIKey: "sk-canary\n"},
			"TimeoutOfNothing":          {APIKey: "k", Timeout: -time.Second},
			"HugeOutput":                {APIKey: "k", MaxOutputTokens: 1 << 20},
			"NegativeDimensions":        {APIKey: "k", Dimensions: -1},
		} {
			_, err := openai.New(config)
			if err == nil {
				t.Errorf("%s was taken", name)
			} else if strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: the error quotes the setting: %v", name, err)
			}
			if _, err := openai.NewEmbedder(config); err == nil {
				t.Errorf("%s was taken by the embedder", name)
			}
		}
	})

	t.Run("PrintsNoKey", func(t *testing.T) {
		t.Parallel()
		config := openai.Config{APIKey: "sk-canary"}
		if got := fmt.Sprintf("%+v %#v", config, config); strings.Contains(got, "canary") {
			t.Error(got)
		}
	})

	t.Run("LocalServersNeedNoKey", func(t *testing.T) {
		t.Parallel()
		stub := stubmodel.New(t)
		if _, err := newClient(t, stub).Extract(t.Context(), said("x")); err != nil {
			t.Fatal(err)
		}
		if got, sent := stub.Calls(stubmodel.Match{})[0].Header["Authorization"]; sent {
			t.Fatalf("an empty key was sent as %q", got)
		}
	})
}

// TestEnvironment sets everything the SDK would read. It cannot run in parallel.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "canary", "OPENAI_ADMIN_KEY": "canary", "OPENAI_ORG_ID": "canary", "OPENAI_PROJECT_ID": "canary",
		"OPENAI_BASE_URL": "http://127.0.0.1:1/canary", "OPENAI_CUSTOM_HEADERS": "X-Canary: canary", "OPENAI_WEBHOOK_SECRET": "canary",
	} {
		t.Setenv(name, value)
	}
	stub := stubmodel.New(t)
	config := openai.Config{BaseURL: stub.OpenAIURL(), Model: "stub"}
	client := newClient(t, stub)
	embedder, err := openai.NewEmbedder(config)
	if err != nil {
		t.Fatal(err)
	}
	defer embedder.Close()
	if _, err := client.Extract(t.Context(), said("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := embedder.Embed(t.Context(), []string{"x"}); err != nil {
		t.Fatal(err)
	}
	if err := client.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := stub.Calls(stubmodel.At(stubmodel.Everything))
	if len(calls) != 3 {
		t.Fatalf("%d calls arrived", len(calls))
	}
	for _, call := range calls {
		for name, values := range call.Header {
			if strings.Contains(strings.ToLower(name+fmt.Sprint(values)), "canary") {
				t.Errorf("%s: the environment leaked into %s", call.Endpoint, name)
			}
		}
	}
}

var (
	_ model.Extractor = (*openai.Client)(nil)
	_ model.Embedder  = (*openai.Embedder)(nil)
)
