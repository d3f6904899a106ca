// Package fault is the one error vocabulary of Holdfast: a kind says what sort of thing went wrong, a code
// is the stable public name that clients match on, and the catalogue gives each code its words.
//
// Rules it guards: every error that reaches a caller has a code from the catalogue, its words come from the
// catalogue and never from the caller, a database or a model provider. It imports nothing of Holdfast.
package fault

import (
	"errors"
	"time"
)

// Kind groups codes by what the caller can do about them.
type Kind string

// The kinds. An adapter maps a kind to its protocol only where the code has no status of its own.
const (
	Invalid     Kind = "invalid"
	NotFound    Kind = "not_found"
	Conflict    Kind = "conflict"
	Payment     Kind = "payment"
	Denied      Kind = "denied"
	Unavailable Kind = "unavailable"
	Internal    Kind = "internal"
)

// Error is a fault with its public code. Pointer and Rule locate a validation error (an RFC 6901 pointer and
// the name of the broken rule); they never carry the caller's value. Details is small structured data that the
// catalogue of the code allows. RetryAfter is zero when nothing better than the client's own backoff is known.
type Error struct {
	Code       Code
	Pointer    string
	Rule       string
	Details    map[string]any
	RetryAfter time.Duration
	cause      error
}

// Plain is an error whose text is ours alone: it holds nothing of a caller, a row, an address or a secret, so that it
// may be logged.
type Plain string

func (p Plain) Error() string { return string(p) }

// New returns a fault of code without a cause.
func New(code Code) *Error { return &Error{Code: code} }

// Wrap returns a fault of code whose cause is kept for logs and errors.Is, and never shown to a client.
func Wrap(code Code, cause error) *Error { return &Error{Code: code, cause: cause} }

// At returns a validation fault: code, the place as an RFC 6901 pointer and the broken rule.
func At(code Code, pointer, rule string) *Error {
	return &Error{Code: code, Pointer: pointer, Rule: rule}
}

// Error names code, pointer, rule and cause; it is for logs, not for clients.
func (e *Error) Error() string {
	text := string(e.Code)
	if e.Pointer != "" || e.Rule != "" {
		text += " at " + e.Pointer + " (" + e.Rule + ")"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause, nil without one.
func (e *Error) Unwrap() error { return e.cause }

// Kind returns the kind of the fault's code.
func (e *Error) Kind() Kind { return Describe(e.Code).Kind }

// Retryable tells whether the same request may succeed later without being changed.
func (e *Error) Retryable() bool { return Describe(e.Code).Retryable }

// CodeOf returns the public code of err: that of the first *Error in its chain, INTERNAL for any other error
// and the empty code for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return InternalError
}

// Is tells whether err carries code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
