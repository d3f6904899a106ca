package main

import "fmt"

// Exit codes beyond those of all binaries (0 done, 1 failed, 2 usage).
const (
	exitRefused  = 3 // the API refused the request: correct it before sending it again
	exitTryAgain = 4 // it could not be reached, or asks to come again: the same request and key later
	exitPending  = 5 // the event had not ended when the time to wait was over
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
