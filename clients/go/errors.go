package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is an answer that says no. Match it by Code, or by Status where Code is empty: something before the service, such
// as a proxy, has answered.
type Error struct {
	// Op names the call, such as "add".
	Op string
	// Status is the HTTP status.
	Status int
	// Code is stable, such as INSUFFICIENT_CREDITS.
	Code string
	// Message is for people.
	Message string
	// Retryable tells whether the same request, under the same key, may succeed later.
	Retryable bool
	// RequestID names the request in the service's log.
	RequestID string
	// Details is what the code promises: pointer and rule of a refused value, required and available credits.
	Details map[string]any
	// RetryAfter is how long the service asks to wait, 0 if it doesn't say.
	RetryAfter time.Duration
	// Key is the Idempotency-Key that the request was sent under, empty without one.
	Key string
	// Attempts is how often it was sent.
	Attempts int
}

// Error implements error. It never holds a value of the request.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "holdfast: %s: %d", e.Op, e.Status)
	if e.Code != "" {
		text.WriteString(" " + e.Code)
	}
	text.WriteString(": " + e.Message)
	for _, name := range []string{"pointer", "rule", "required", "available", "limit"} {
		if value, ok := e.Details[name]; ok {
			fmt.Fprintf(&text, " (%s %v)", name, value)
		}
	}
	if e.RequestID != "" {
		text.WriteString(" [request " + e.RequestID + "]")
	}
	return text.String()
}

// UnknownError means that a write may have happened: it was sent, and no answer tells what became of it. Send the same
// request with WithKey(Key) until there is an answer; it is carried out once. Without a Key, look before sending it again.
type UnknownError struct {
	Op       string
	Key      string
	Attempts int
	// Err is why there is no answer; an *Error with code ACCEPTANCE_UNKNOWN among others, or the context's.
	Err error
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("holdfast: %s: it may have been carried out, nothing tells (%s): %v", e.Op, named(e.Key), e.Err)
}

// Unwrap returns why there is no answer.
func (e *UnknownError) Unwrap() error { return e.Err }

// NoAnswerError means that there is no answer and that nothing was changed: a read, or a write that never left.
type NoAnswerError struct {
	Op       string
	Key      string
	Attempts int
	// Err is why: the network's or the context's error.
	Err error
}

// Error implements error.
func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("holdfast: %s: no answer: %v", e.Op, e.Err)
}

// Unwrap returns why there is no answer.
func (e *NoAnswerError) Unwrap() error { return e.Err }

// EventFailedError means that an accepted write has failed: nothing of it was stored, and its credits were released.
type EventFailedError struct {
	// Event is the event as it ended.
	Event *Event
	// Code and Class say what happened, such as PROVIDER_TIMEOUT.
	Code, Class string
	// Message and Action are for people.
	Message, Action string
	// Retryable tells whether [Events.Retry] may help.
	Retryable bool
	// Key is that of the write, where the call knows it.
	Key string
}

// Error implements error.
func (e *EventFailedError) Error() string {
	return fmt.Sprintf("holdfast: event %s failed: %s: %s", e.Event.ID, e.Code, e.Message)
}

// WaitError means that waiting ended before the event did. Nothing is lost: the event goes on, wait again. With
// errors.Is(err, context.DeadlineExceeded) the time was up, with context.Canceled the wait was broken off; otherwise the
// service could not be asked.
type WaitError struct {
	EventID string
	// Event is the event as it was last seen, nil if it never was.
	Event *Event
	// Key is that of the write, where the call knows it.
	Key string
	Err error
}

// Error implements error.
func (e *WaitError) Error() string {
	seen := "not seen yet"
	if e.Event != nil {
		seen = "last seen " + string(e.Event.Status)
	}
	return fmt.Sprintf("holdfast: event %s has not ended, %s: %v", e.EventID, seen, e.Err)
}

// Unwrap returns why waiting ended.
func (e *WaitError) Unwrap() error { return e.Err }

// KeyOf returns the Idempotency-Key of the write that an error of this package is about, empty if it had none.
func KeyOf(err error) string {
	var unknown *UnknownError
	var none *NoAnswerError
	var failed *EventFailedError
	var wait *WaitError
	var refused *Error
	switch {
	case errors.As(err, &wait):
		return wait.Key
	case errors.As(err, &failed):
		return failed.Key
	case errors.As(err, &unknown):
		return unknown.Key
	case errors.As(err, &none):
		return none.Key
	case errors.As(err, &refused):
		return refused.Key
	}
	return ""
}

func named(key string) string {
	if key == "" {
		return "without a key"
	}
	return "key " + key
}
