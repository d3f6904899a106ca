package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
)

const (
	// keySize is that of AES-256, for master keys and data keys.
	keySize = 32
	// maxMasters bounds a ring: one is active, one is on its way out, and nobody keeps more than a few.
	maxMasters = 16
	// maxName keeps the id of a master key short: it is stored with each data key.
	maxName = 64
)

// Ring holds the master keys of a process. It is safe for concurrent use and prints as [redacted].
type Ring struct {
	active string
	names  []string // in the order of the configuration
	keys   map[string]cipher.AEAD
}

// ParseRing reads `id:base64,id:base64`: ids of letters, digits, dots, dashes and underscores, keys of 32 random bytes,
// the first one active. Spaces and line breaks around the entries don't matter. Errors never quote a key.
func ParseRing(text string) (*Ring, error) {
	r := &Ring{keys: map[string]cipher.AEAD{}}
	for n, entry := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == '\n' || c == '\r' }) {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, encoded, found := strings.Cut(entry, ":")
		switch {
		case !found || !nameable(name):
			return nil, fmt.Errorf("master key %d must be written ID:BASE64, the id of at most %d letters, digits, dots, dashes and underscores", n+1, maxName)
		case r.keys[name] != nil:
			return nil, fmt.Errorf("there are two master keys of the id %q", name)
		case len(r.names) == maxMasters:
			return nil, fmt.Errorf("there are more than %d master keys", maxMasters)
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(raw) != keySize {
			return nil, fmt.Errorf("master key %q must be %d bytes in base64, as `openssl rand -base64 %d` makes them", name, keySize, keySize)
		}
		aead, err := aeadOf(raw)
		clear(raw)
		if err != nil {
			return nil, err
		}
		r.names, r.keys[name] = append(r.names, name), aead
	}
	if len(r.names) == 0 {
		return nil, errors.New("there is no master key")
	}
	r.active = r.names[0]
	return r, nil
}

func nameable(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	})
}

// aeadOf is the cipher of a key. Its nonces are random, so that one key must not seal more than 2^32 texts: a data key
// seals those of one workspace and day.
func aeadOf(raw []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, errors.New("a key of a wrong size")
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, errors.New("AES-GCM can't be had")
	}
	return aead, nil
}

// Active is the id of the master key that wraps new data keys.
func (r *Ring) Active() string { return r.active }

// Names are the ids of all master keys, the active one first.
func (r *Ring) Names() []string { return slices.Clone(r.names) }

// Has tells whether the ring has a master key of that id.
func (r *Ring) Has(name string) bool { return r.keys[name] != nil }

const redacted = "[redacted]"

// String never tells a key.
func (r *Ring) String() string { return redacted }

// Format covers every verb: none tells a key.
func (r *Ring) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// Wrapped is a data key as it is stored: the id of the master key that it needs, and the key under it.
type Wrapped struct {
	Master string
	Key    []byte
}

// owner is what a wrapped key is bound to: it opens as the key of this id, workspace and master key only.
func owner(id, workspace uuid.UUID, master string) []byte {
	bound := append([]byte("holdfast/data key/1\x00"), id[:]...)
	bound = append(bound, workspace[:]...)
	return append(bound, master...)
}

func (r *Ring) wrap(id, workspace uuid.UUID, raw []byte) Wrapped {
	return Wrapped{r.active, r.keys[r.active].Seal(nil, nil, raw, owner(id, workspace, r.active))} // #nosec G407 -- it makes its nonces
}

func (r *Ring) unwrap(id, workspace uuid.UUID, w Wrapped) ([]byte, error) {
	master := r.keys[w.Master]
	if master == nil {
		return nil, ErrNoMaster
	}
	raw, err := master.Open(nil, nil, w.Key, owner(id, workspace, w.Master))
	if err != nil || len(raw) != keySize {
		return nil, ErrNoKey
	}
	return raw, nil
}

// Unwrap opens a data key. ErrNoMaster if the ring lacks its master key, ErrNoKey if that is another one of the same id or
// the stored key was changed.
func (r *Ring) Unwrap(id, workspace uuid.UUID, w Wrapped) (Key, error) {
	raw, err := r.unwrap(id, workspace, w)
	if err != nil {
		return Key{}, err
	}
	defer clear(raw)
	return keyOf(id, raw)
}

// Rewrap wraps a data key under the active master key. What it has sealed stays readable. Errors are those of Unwrap.
func (r *Ring) Rewrap(id, workspace uuid.UUID, w Wrapped) (Wrapped, error) {
	raw, err := r.unwrap(id, workspace, w)
	if err != nil {
		return Wrapped{}, err
	}
	defer clear(raw)
	return r.wrap(id, workspace, raw), nil
}
