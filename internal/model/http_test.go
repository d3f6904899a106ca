package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := []struct {
		name, header, value string
		want                time.Duration
	}{
		{"Seconds", "Retry-After", "17", 17 * time.Second},
		{"FractionOfASecond", "Retry-After", "0.5", 500 * time.Millisecond},
		{"HTTPDate", "Retry-After", now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{"DateInThePast", "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"Milliseconds", "Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Negative", "Retry-After", "-3", 0},
		{"Words", "Retry-After", "soon", 0},
		{"NaN", "Retry-After", "NaN", 0},
		{"Endless", "Retry-After", "1e400", maxRetryAfter},
		{"Years", "Retry-After", "99999999", maxRetryAfter},
		{"DateInYears", "Retry-After", now.AddDate(5, 0, 0).Format(http.TimeFormat), maxRetryAfter},
		{"Missing", "X-Other", "1", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			header.Set(c.header, c.value)
			if got := RetryAfter(header, now); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		refusal Refusal
		want    task.Class
	}{
		{"RateLimit", Refusal{Status: 429}, task.ProviderRateLimited},
		{"SpentQuota", Refusal{Status: 429, Code: "insufficient_quota"}, task.ProviderRejected},
		{"Credentials", Refusal{Status: 401}, task.ProviderRejected},
		{"Permission", Refusal{Status: 403}, task.ProviderRejected},
		{"Payment", Refusal{Status: 402}, task.ProviderRejected},
		{"UnknownModel", Refusal{Status: 404, Code: "model_not_found"}, task.ProviderRejected},
		{"UnknownModelAs400", Refusal{Status: 400, Message: "The model `x` does not exist"}, task.ProviderRejected},
		{"InvalidKeyAs400", Refusal{Status: 400, Message: "API key not valid"}, task.ProviderRejected},
		{"SpentCreditAs400", Refusal{Status: 400, Type: "invalid_request_error", Message: "Your credit balance is too low"}, task.ProviderRejected},
		{"ContextTooLong", Refusal{Status: 400, Code: "context_length_exceeded"}, task.ExtractionRejected},
		{"PromptTooLong", Refusal{Status: 400, Message: "prompt is too long: 210000 tokens > 200000 maximum"}, task.ExtractionRejected},
		{"BodyTooLarge", Refusal{Status: 413}, task.ExtractionRejected},
		{"ContentFilter", Refusal{Status: 400, Code: "content_filter"}, task.ExtractionRejected},
		{"UnexplainedRefusal", Refusal{Status: 400}, task.ExtractionRejected},
		{"Unprocessable", Refusal{Status: 422}, task.ExtractionRejected},
		{"RequestTimeout", Refusal{Status: 408}, task.ProviderTimeout},
		{"InternalError", Refusal{Status: 500}, task.ProviderUnavailable},
		{"BadGateway", Refusal{Status: 502}, task.ProviderUnavailable},
		{"Overloaded", Refusal{Status: 529, Type: "overloaded_error"}, task.ProviderUnavailable},
		{"ServerErrorThatMentionsTheContext", Refusal{Status: 500, Message: "context length"}, task.ProviderUnavailable},
		{"ServerRejectedItsOwnOutput", Refusal{Status: 400, Code: "json_validate_failed"}, task.OutputInvalid},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Classify(c.refusal, time.Now())
			if got.Class != c.want || got.Status != c.refusal.Status {
				t.Fatalf("got %s with status %d, want %s", got.Class, got.Status, c.want)
			}
			if c.refusal.Message != "" && strings.Contains(got.Error(), c.refusal.Message) {
				t.Fatalf("the provider's words are in %q", got)
			}
		})
	}
}

func TestBoundedBody(t *testing.T) {
	t.Parallel()
	read := func(text string, limit int64) (string, error) {
		got, err := io.ReadAll(&boundedBody{body: io.NopCloser(strings.NewReader(text)), left: limit})
		return string(got), err
	}
	if got, err := read("12345", 5); got != "12345" || err != nil {
		t.Errorf("an answer of the bound's size: %q, %v", got, err)
	}
	if _, err := read("123456", 5); !errors.Is(err, ErrAnswerTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestUnansweredKeepsOnlyTheEndOfAContext(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	failure := Unanswered(cancelled, errors.New("canary"), 0)
	if failure.Class != task.Shutdown || !errors.Is(failure, context.Canceled) {
		t.Errorf("a cancelled call became %s", failure)
	}
	failure = Unanswered(context.Background(), errors.New("canary"), 200)
	if failure.Class != task.ProviderUnavailable || failure.Unwrap() != nil {
		t.Errorf("an unreadable answer became %s and keeps %v", failure, failure.Unwrap())
	}
	if failure := Unanswered(context.Background(), errors.New("canary"), 307); failure.Class != task.ProviderRejected {
		t.Errorf("a redirect became %s", failure)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"https://api.example.com/v1/", "http://127.0.0.1:1234"} {
		if _, err := BaseURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{"", "api.example.com", "ftp://x", "http://", "http://user:canary@x/v1", "http://x/?key=canary", "http://x/#a", ":canary"} {
		_, err := BaseURL(raw)
		if err == nil {
			t.Errorf("%q was taken", raw)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("the error quotes the setting: %v", err)
		}
	}
}
