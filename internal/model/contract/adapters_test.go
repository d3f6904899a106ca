package contract

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/anthropic"
	"github.com/holdfast-memory/holdfast/internal/model/openai"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiKey must never be seen in an error, a name or a printed configuration.
const apiKey = "sk-canary-key"

// patience bounds every call of a test that must not run into its deadline.
const patience = 30 * time.Second

type closer interface{ Close() }

// adapter is one extractor under test.
type adapter struct {
	name     string
	endpoint stubmodel.Endpoint
	build    func(t *testing.T, stub *stubmodel.Server, timeout time.Duration) model.Extractor
}

func adapters() []adapter {
	return []adapter{
		{"OpenAI", stubmodel.Chat, func(t *testing.T, stub *stubmodel.Server, timeout time.Duration) model.Extractor {
			t.Helper()
			client, err := openai.New(openai.Config{BaseURL: stub.OpenAIURL(), APIKey: apiKey, Model: "stub", Timeout: timeout})
			return built(t, client, err)
		}},
		{"Anthropic", stubmodel.Messages, func(t *testing.T, stub *stubmodel.Server, timeout time.Duration) model.Extractor {
			t.Helper()
			client, err := anthropic.New(anthropic.Config{BaseURL: stub.URL(), APIKey: apiKey, Model: "stub", Timeout: timeout})
			return built(t, client, err)
		}},
	}
}

func built[C closer](t *testing.T, client C, err error) C {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// each runs a test over every adapter with a stub of its own.
func each(t *testing.T, test func(t *testing.T, a adapter, stub *stubmodel.Server)) {
	t.Helper()
	for _, a := range adapters() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			test(t, a, stubmodel.New(t))
		})
	}
}

func said(content string) model.Request {
	return model.Request{Messages: []model.Message{{Role: "user", Content: content}}}
}

func extract(t *testing.T, extractor model.Extractor, content string) (model.Extraction, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return extractor.Extract(ctx, said(content))
}

// failed returns err as a classified failure that gives nothing away.
func failed(t *testing.T, err error) *model.Error {
	t.Helper()
	var failure *model.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a classified failure", err)
	}
	for unwrapped := err; unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
		for _, secret := range []string{stubmodel.ProviderWords, apiKey, "127.0.0.1"} {
			if strings.Contains(unwrapped.Error(), secret) {
				t.Fatalf("the error says %q", unwrapped)
			}
		}
	}
	return failure
}

func textsOf(facts []model.Fact) []string {
	var texts []string
	for _, fact := range facts {
		texts = append(texts, fact.Text)
	}
	return texts
}

// TestFault gives every adapter every fault and wants the class that decides what comes next.
func TestFault(t *testing.T) {
	t.Parallel()
	faults := []struct {
		name   string
		answer stubmodel.Answer
		want   task.Class
		reason string
	}{
		{"RateLimit", stubmodel.RateLimited(0), task.ProviderRateLimited, ""},
		{"SpentQuota", stubmodel.OutOfQuota(), task.ProviderRejected, "quota"},
		{"PaymentRequired", stubmodel.Refuse(402, ""), task.ProviderRejected, ""},
		{"WrongKey", stubmodel.Refuse(401, "invalid_api_key"), task.ProviderRejected, ""},
		{"NoPermission", stubmodel.Refuse(403, ""), task.ProviderRejected, ""},
		{"UnknownModel", stubmodel.Refuse(404, "model_not_found"), task.ProviderRejected, ""},
		{"Redirect", stubmodel.HTML(307), task.ProviderRejected, "redirect"},
		{"ContextTooLong", stubmodel.TooLong(), task.ExtractionRejected, "too long"},
		{"BodyTooLarge", stubmodel.Refuse(413, ""), task.ExtractionRejected, ""},
		{"UnexplainedRefusal", stubmodel.BadRequest("no"), task.ExtractionRejected, ""},
		{"ModelDeclines", stubmodel.Refused(), task.ExtractionRejected, "refusal"},
		{"ContentFilter", stubmodel.Filtered(), task.ExtractionRejected, ""},
		{"RequestTimeout", stubmodel.Refuse(408, ""), task.ProviderTimeout, ""},
		{"InternalError", stubmodel.Refuse(500, ""), task.ProviderUnavailable, ""},
		{"BadGatewayPage", stubmodel.HTML(502), task.ProviderUnavailable, ""},
		{"ServiceUnavailable", stubmodel.Refuse(503, ""), task.ProviderUnavailable, ""},
		{"Overloaded", stubmodel.Refuse(529, ""), task.ProviderUnavailable, ""},
		{"PageInPlaceOfAnAnswer", stubmodel.HTML(200), task.ProviderUnavailable, ""},
		{"PageThatClaimsToBeJSON", stubmodel.Raw("<html>" + stubmodel.ProviderWords + "</html>"), task.ProviderUnavailable, ""},
		{"TruncatedBody", stubmodel.Raw(`{"id":"x","choices":[{"ind`), task.ProviderUnavailable, ""},
		{"ConnectionClosedMidAnswer", stubmodel.CutOff(), task.ProviderUnavailable, ""},
		{"ConnectionClosedAtOnce", stubmodel.Dropped(), task.ProviderUnavailable, ""},
		{"EndlessAnswer", stubmodel.Raw(`{"id":"` + strings.Repeat("x", 5<<20) + `"}`), task.OutputInvalid, model.ReasonTooLarge},
		{"EmptyObject", stubmodel.Raw(`{}`), task.OutputInvalid, ""},
		{"TokenLimit", stubmodel.Truncated(), task.OutputInvalid, model.ReasonTruncated},
		{"TruncatedJSON", stubmodel.Content(`{"facts":["a","b`), task.OutputInvalid, model.ReasonTruncated},
		{"NoJSON", stubmodel.Content("I am sorry, " + stubmodel.ProviderWords), task.OutputInvalid, model.ReasonNotJSON},
		{"EmptyText", stubmodel.Content(""), task.OutputInvalid, model.ReasonEmpty},
		{"MissingFacts", stubmodel.Content(`{}`), task.OutputInvalid, model.ReasonWrongShape},
		{"SchemaEcho", stubmodel.Content(`{"$defs":{},"properties":{"facts":{"type":"array"}}}`), task.OutputInvalid, model.ReasonWrongShape},
		{"ObjectAsFact", stubmodel.Content(`{"facts":[{"a":{"b":1}}]}`), task.OutputInvalid, model.ReasonWrongShape},
		{"NumberAsFact", stubmodel.Content(`{"facts":[7]}`), task.OutputInvalid, model.ReasonWrongShape},
	}
	each(t, func(t *testing.T, a adapter, stub *stubmodel.Server) {
		extractor := a.build(t, stub, patience)
		for _, fault := range faults {
			t.Run(fault.name, func(t *testing.T) {
				stub.Queue(stubmodel.With(fault.name), stubmodel.Reply(fault.answer))
				extraction, err := extract(t, extractor, "FACT: "+fault.name)
				failure := failed(t, err)
				if failure.Class != fault.want || fault.reason != "" && failure.Reason != fault.reason {
					t.Fatalf("got %s, reason %q; want %s, %q", failure.Class, failure.Reason, fault.want, fault.reason)
				}
				if len(extraction.Facts) > 0 {
					t.Fatalf("a failed call left facts: %q", textsOf(extraction.Facts))
				}
				if calls := stub.Count(stubmodel.With(fault.name)); calls != 1 || failure.Usage.Calls != 1 {
					t.Fatalf("%d calls arrived, %d were counted: one call is one attempt", calls, failure.Usage.Calls)
				}
			})
		}
	})
}

// TestAnswer gives every adapter answers that are valid in one form or another.
func TestAnswer(t *testing.T) {
	t.Parallel()
	answers := []struct {
		name   string
		answer stubmodel.Answer
		want   []string
	}{
		{"Facts", stubmodel.Facts("one", "two"), []string{"one", "two"}},
		{"NothingToRemember", stubmodel.Facts(), nil},
		{"Fence", stubmodel.Content("```json\n{\"facts\":[\"one\"]}\n```"), []string{"one"}},
		{"ThinkBlock", stubmodel.Content("<think>{\"facts\":[\"no\"]}</think>{\"facts\":[\"one\"]}"), []string{"one"}},
		{"Prose", stubmodel.Content("Sure: {\"facts\":[\"one\"]} Done."), []string{"one"}},
		{"ListOfStrings", stubmodel.Content(`["one"]`), []string{"one"}},
		{"OtherNames", stubmodel.Content(`{"facts":[{"memory":"one"},{"fact":"two"}]}`), []string{"one", "two"}},
		{"NUL", stubmodel.Content(`{"facts":["o\u0000ne"]}`), []string{"one"}},
		{"LoneSurrogate", stubmodel.Content(`{"facts":["one \ud83d"]}`), []string{"one \uFFFD"}},
		{"ThinkingBlockFirst", stubmodel.Answer{Thinking: "hm", Content: `{"facts":["one"]}`}, []string{"one"}},
		{"Chinese", stubmodel.Facts("用户喜欢喝咖啡"), []string{"用户喜欢喝咖啡"}},
	}
	each(t, func(t *testing.T, a adapter, stub *stubmodel.Server) {
		extractor := a.build(t, stub, patience)
		for _, c := range answers {
			t.Run(c.name, func(t *testing.T) {
				stub.Queue(stubmodel.With(c.name), stubmodel.Reply(c.answer))
				got, err := extract(t, extractor, c.name)
				if err != nil {
					t.Fatal(err)
				}
				if texts := textsOf(got.Facts); !slices.Equal(texts, c.want) {
					t.Fatalf("got %q, want %q", texts, c.want)
				}
				if got.Usage.Calls != 1 || got.Usage.TokensIn == 0 || got.Usage.TokensOut == 0 || got.Usage.Duration == 0 {
					t.Fatalf("usage is incomplete: %+v", got.Usage)
				}
			})
		}
	})
}
