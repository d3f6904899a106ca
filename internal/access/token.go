package access

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const tokenPrefix = "hfo_"

// Token is an operator's token in clear. It has the form of an API key under another prefix, so that neither is ever
// taken for the other. It prints as its public id only.
type Token struct{ key Key }

// NewToken makes a random token.
func NewToken() (Token, error) {
	key, err := NewKey()
	if err != nil {
		return Token{}, fmt.Errorf("make token: %w", err)
	}
	return Token{key}, nil
}

// ParseToken reads a token. It answers a fault INVALID_API_KEY for anything whose form or checksum is wrong, an API key
// too.
func ParseToken(text string) (Token, error) {
	body, own := strings.CutPrefix(text, tokenPrefix)
	if !own || len(text) != keyLength {
		return Token{}, fault.New(fault.InvalidAPIKey)
	}
	signed := text[:keyLength-crcLength]
	if checksum(signed) != text[keyLength-crcLength:] {
		return Token{}, fault.New(fault.InvalidAPIKey)
	}
	plain := keyPrefix + body[:len(body)-crcLength]
	key, err := ParseKey(plain + checksum(plain))
	return Token{key}, err
}

// ID returns the public part.
func (t Token) ID() string { return t.key.ID() }

// SecretHash returns the SHA-256 of the secret part, which is what is stored.
func (t Token) SecretHash() [sha256.Size]byte { return t.key.SecretHash() }

// Reveal returns the whole token. It is shown once, to the person who made it.
func (t Token) Reveal() string {
	body := tokenPrefix + t.key.id + "_" + t.key.secret
	return body + checksum(body)
}

// String returns the public id, so that a token that is printed by mistake gives nothing away.
func (t Token) String() string { return tokenPrefix + t.key.id }

// GoString does the same for %#v.
func (t Token) GoString() string { return t.String() }

// MarshalText does the same for encoders.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
