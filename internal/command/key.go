package command

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// MaxKey is the greatest length of an idempotency key in characters, quotes and escapes of the quoted form left
// out.
const MaxKey = 200

// Key is a caller's idempotency key. It prints as redacted; only its hash leaves the process.
type Key struct{ value string }

// ParseKey reads the Idempotency-Key of a request from the values of all its header lines; nil and no error
// without one. A key is 1 to 200 visible ASCII characters (0x21 to 0x7e) in one header line, bare or as an RFC
// 8941 string: `"abc"` and `abc` are the same key. A space is refused in both forms; a comma and a quote are
// refused bare, because several lines joined by a proxy look like that, and allowed quoted. A key is never
// trimmed or cut. Everything else is a fault INVALID_IDEMPOTENCY_KEY.
func ParseKey(headerValues []string) (*Key, error) {
	if len(headerValues) == 0 {
		return nil, nil
	}
	if len(headerValues) > 1 {
		return nil, badKey("one header line")
	}
	text := headerValues[0]
	var value string
	if strings.HasPrefix(text, `"`) {
		var closed bool
		if value, closed = unquote(text[1:]); !closed {
			return nil, badKey("a closed quoted string and nothing after it")
		}
	} else {
		switch {
		case strings.Contains(text, `"`):
			return nil, badKey("no quote inside, unless the whole key is a quoted string")
		case strings.Contains(text, ","):
			return nil, badKey("one value, not a list; a key with a comma is quoted")
		}
		value = text
	}
	if value == "" || len(value) > MaxKey {
		return nil, badKey("1 to 200 characters")
	}
	for _, b := range []byte(value) {
		if b < 0x21 || b > 0x7e {
			return nil, badKey("visible ASCII characters")
		}
	}
	return &Key{value: value}, nil
}

// unquote reads the rest of an RFC 8941 string after its opening quote; false unless the closing quote is the
// last character. Only a quote and a backslash can be escaped.
func unquote(text string) (string, bool) {
	var value strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return value.String(), i == len(text)-1
		case '\\':
			i++
			if i == len(text) || (text[i] != '"' && text[i] != '\\') {
				return "", false
			}
		}
		value.WriteByte(text[i])
	}
	return "", false
}

func badKey(rule string) error {
	return fault.At(fault.InvalidIdempotencyKey, "", rule)
}

// RandomKey makes a key that no caller can guess, for commands that are sent without one. It keeps rows and
// look-ups in one shape.
func RandomKey() Key { return Key{value: "random:" + rand.Text() + rand.Text()} }

// Hash returns what is stored of the key.
func (k Key) Hash() [sha256.Size]byte { return sha256.Sum256([]byte("key/1\x00" + k.value)) }

// String keeps a key that is printed by mistake secret.
func (k Key) String() string { return "[redacted]" }

// GoString does the same for %#v.
func (k Key) GoString() string { return k.String() }

// MarshalText does the same for encoders.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
