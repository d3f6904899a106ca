package app

import (
	"errors"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// UnreachableError says that a database does not answer now. Its text names the server by host and port, and holds
// nothing else of the URL.
type UnreachableError struct {
	address string
	cause   error
}

func (e *UnreachableError) Error() string {
	reason := e.cause
	if f, ok := errors.AsType[*fault.Error](e.cause); ok && f.Unwrap() != nil {
		reason = f.Unwrap() // its root is one of the store's own words, a SQLSTATE or a context's end
	}
	for next := errors.Unwrap(reason); next != nil; next = errors.Unwrap(reason) {
		reason = next
	}
	return fmt.Sprintf("the database at %s can't be reached: %v", e.address, reason)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.cause }

// reached names the server in an error of its database: an UnreachableError when it passes by itself.
func reached(url model.Secret, err error) error {
	switch {
	case err == nil:
		return nil
	case fault.Is(err, fault.UnavailableNow):
		return &UnreachableError{address: postgres.Address(url.Reveal()), cause: err}
	}
	return fmt.Errorf("the database at %s: %w", postgres.Address(url.Reveal()), err)
}
