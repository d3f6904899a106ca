package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// Exit codes beyond those of all binaries (0 done, 1 failed, 2 usage).
const (
	exitRefused  = 3 // the API refused the request: correct it before sending it again
	exitTryAgain = 4 // it could not be reached, or asks to come again: the same request and key later
	exitPending  = 5 // the event had not ended when the time to wait was over
	exitStopped  = 6 // status: nothing runs there

	exitInterrupted = 130 // a signal broke it off, and it cleaned up
)

// exitError is an error with an exit code of its own. An empty text says nothing more than the output did.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func exitf(code int, format string, args ...any) *exitError {
	return &exitError{code: code, text: fmt.Sprintf(format, args...)}
}

// verdict is the exit code of an error, and what is said of it. The text is empty when the output has said it all.
func verdict(err error) (code int, text string) {
	if err == nil {
		return app.ExitOK, ""
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code, e.text
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted, "interrupted"
	}
	if _, ok := errors.AsType[*app.UnreachableError](err); ok {
		return exitTryAgain, err.Error()
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind() == fault.Invalid && f.Rule != "" {
		return app.ExitUsage, strings.TrimPrefix(f.Pointer, "/") + ": " + f.Rule
	}
	return app.ExitFailed, err.Error()
}
