package endpoint

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
)

// SecretSize is the length of a secret's key in bytes.
const SecretSize = 32

// Secret is the key that signs an endpoint's messages.
type Secret [SecretSize]byte

// NewSecret returns a random secret.
func NewSecret() (Secret, error) {
	var s Secret
	if _, err := rand.Read(s[:]); err != nil {
		return s, fmt.Errorf("make webhook secret: %w", err)
	}
	return s, nil
}

// Reveal returns the form that receivers are given, whsec_ and base64.
func (s Secret) Reveal() string { return "whsec_" + base64.StdEncoding.EncodeToString(s[:]) }

// String keeps secrets out of logs.
func (Secret) String() string { return "[redacted]" }

// GoString keeps secrets out of %#v.
func (Secret) GoString() string { return "[redacted]" }

// MarshalJSON keeps secrets out of JSON.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }
