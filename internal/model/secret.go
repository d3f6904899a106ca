package model

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a credential of a provider. However it is printed, encoded or logged, it says [redacted]; only
// Reveal gives the text.
type Secret string

const redacted = "[redacted]"

// Reveal returns the credential itself, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String never returns the credential.
func (s Secret) String() string { return redacted }

// GoString never returns the credential.
func (s Secret) GoString() string { return redacted }

// Format covers the verbs, such as %x and %q, that don't ask String.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalText never returns the credential. It also serves JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue never returns the credential.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
