package model

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// maxRetryAfter bounds what a provider may ask for. Daily quotas name hours; more would be a stuck queue that a
// wrong header caused.
const maxRetryAfter = 24 * time.Hour

// Refusal is an HTTP answer that is no success. Type, Code, Param and Message are the provider's words: they
// decide the class and go nowhere.
type Refusal struct {
	Status  int
	Header  http.Header
	Type    string
	Code    string
	Param   string
	Message string
}

// Mentions tells whether the provider's words contain one of the given, whatever the case.
func (r Refusal) Mentions(words ...string) bool {
	text := strings.ToLower(r.Type + "\n" + r.Code + "\n" + r.Param + "\n" + r.Message)
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// TooLong tells that the input exceeds what the model takes.
func (r Refusal) TooLong() bool {
	if r.Status == http.StatusRequestEntityTooLarge {
		return true
	}
	return r.Status < 500 && r.Mentions("context_length", "context length", "context_window", "context window", "context size",
		"prompt is too long", "input is too long", "maximum context", "string_above_max_length", "request_too_large",
		"too many tokens", "reduce the length")
}

// Filtered tells that a content policy refused the input.
func (r Refusal) Filtered() bool {
	return r.Mentions("content_filter", "content filter", "content_policy", "content policy", "responsibleai", "content management policy", "safety system")
}

// Classify returns the classified failure of r. An unexplained 400 counts against the input and not against the
// provider: otherwise one caller's text could pause everybody's model.
func Classify(r Refusal, now time.Time) *Error {
	failure := refused(r)
	failure.Status = r.Status
	failure.RetryAfter = RetryAfter(r.Header, now)
	return failure
}

func refused(r Refusal) *Error {
	switch {
	case r.Status == http.StatusTooManyRequests && r.outOfQuota():
		return NewError(task.ProviderRejected, "quota", nil)
	case r.Status == http.StatusTooManyRequests || r.Type == "rate_limit_error":
		return NewError(task.ProviderRateLimited, "rate limit", nil)
	case r.Status == http.StatusRequestTimeout || r.Type == "timeout_error":
		return NewError(task.ProviderTimeout, "request timeout", nil)
	case r.Status >= 500 || r.Type == "overloaded_error" || r.Type == "api_error":
		return NewError(task.ProviderUnavailable, "server error", nil)
	case r.Status == http.StatusUnauthorized || r.Type == "authentication_error":
		return NewError(task.ProviderRejected, "credentials", nil)
	case r.Status == http.StatusPaymentRequired || r.Type == "billing_error":
		return NewError(task.ProviderRejected, "payment", nil)
	case r.Filtered():
		return NewError(task.ExtractionRejected, "content filter", nil)
	case r.Status == http.StatusForbidden || r.Type == "permission_error":
		return NewError(task.ProviderRejected, "permission", nil)
	case r.TooLong():
		return NewError(task.ExtractionRejected, "too long", nil)
	case r.Code == "json_validate_failed":
		return NewError(task.OutputInvalid, ReasonNotJSON, nil) // the server checked the schema for us
	case r.Status == http.StatusNotFound, r.Status == http.StatusMethodNotAllowed, r.Status == http.StatusGone,
		r.Mentions("model_not_found", "model not found", "does not exist", "unknown model"):
		return NewError(task.ProviderRejected, "model or address", nil)
	case r.Mentions("api key", "api_key", "credit balance", "billing"):
		return NewError(task.ProviderRejected, "credentials or payment", nil)
	case r.Status == http.StatusConflict || r.Status == http.StatusTooEarly:
		return NewError(task.ProviderUnavailable, "conflict", nil)
	default:
		return NewError(task.ExtractionRejected, "refused input", nil)
	}
}

// outOfQuota tells a spent budget from too many requests at once: waiting a moment doesn't help.
func (r Refusal) outOfQuota() bool {
	return r.Mentions("insufficient_quota", "billing_hard_limit", "credit balance", "spend_limit", "spend limit", "exceeded your current quota")
}

// RetryAfter returns how long the provider asks to be left alone: Retry-After-Ms, or Retry-After in seconds or
// as an HTTP date counted from now. It is never negative and at most a day; 0 if nothing readable is there.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if wait, ok := readNumber(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return wait
	}
	value := header.Get("Retry-After")
	if wait, ok := readNumber(value, time.Second); ok {
		return wait
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

func readNumber(text string, unit time.Duration) (time.Duration, bool) {
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || number != number {
		return 0, false
	}
	if number <= 0 {
		return 0, true
	}
	if number >= float64(maxRetryAfter/unit) {
		return maxRetryAfter, true
	}
	return time.Duration(number * float64(unit)), true
}
