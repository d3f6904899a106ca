package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	keyPrefix    = "hfk_"
	idLength     = 12
	secretLength = 43 // 32 bytes in unpadded base64url
	crcLength    = 6  // 32 bits in base 62
	keyLength    = len(keyPrefix) + idLength + 1 + secretLength + crcLength
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Key is an API key in clear. It prints as its public id only.
type Key struct {
	id     string
	secret string
}

// NewKey makes a random key.
func NewKey() (Key, error) {
	random := make([]byte, idLength+sha256.Size)
	if _, err := rand.Read(random); err != nil {
		return Key{}, fmt.Errorf("make key: %w", err)
	}
	id := make([]byte, idLength)
	for i := range id {
		id[i] = base62[int(random[i])%len(base62)] // the bias of 256 mod 62 is harmless: the id is no secret
	}
	return Key{id: string(id), secret: base64.RawURLEncoding.EncodeToString(random[idLength:])}, nil
}

// ParseKey reads a key. It answers a fault INVALID_API_KEY for anything whose form or checksum is wrong.
func ParseKey(text string) (Key, error) {
	if len(text) != keyLength || !strings.HasPrefix(text, keyPrefix) || text[len(keyPrefix)+idLength] != '_' {
		return Key{}, fault.New(fault.InvalidAPIKey)
	}
	body := text[:keyLength-crcLength]
	if checksum(body) != text[keyLength-crcLength:] {
		return Key{}, fault.New(fault.InvalidAPIKey)
	}
	id := text[len(keyPrefix) : len(keyPrefix)+idLength]
	if strings.Trim(id, base62) != "" {
		return Key{}, fault.New(fault.InvalidAPIKey)
	}
	return Key{id: id, secret: body[len(keyPrefix)+idLength+1:]}, nil
}

// ID returns the public part.
func (k Key) ID() string { return k.id }

// SecretHash returns the SHA-256 of the secret part, which is what is stored.
func (k Key) SecretHash() [sha256.Size]byte { return sha256.Sum256([]byte(k.secret)) }

// Reveal returns the whole key. It is shown once, to the person who made it.
func (k Key) Reveal() string {
	body := keyPrefix + k.id + "_" + k.secret
	return body + checksum(body)
}

// String returns the public id, so that a key that is printed by mistake gives nothing away.
func (k Key) String() string { return keyPrefix + k.id }

// GoString does the same for %#v.
func (k Key) GoString() string { return k.String() }

// MarshalText does the same for encoders.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	text := make([]byte, crcLength)
	for i := crcLength - 1; i >= 0; i-- {
		text[i] = base62[sum%62]
		sum /= 62
	}
	return string(text)
}
