package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
)

// ErrUnreadable says that something sealed can't be opened: it was changed or moved, or its key is not what it was.
var ErrUnreadable = errors.New("what is sealed can't be opened")

// ErrNoKey says that the data key can't be had: its master key is another one of the same id, or it was changed itself. It
// is ErrUnreadable too.
var ErrNoKey = fmt.Errorf("its data key can't be opened: %w", ErrUnreadable)

// ErrNoMaster says that the master key is missing. It is ErrNoKey too.
var ErrNoMaster = fmt.Errorf("its master key is not configured: %w", ErrNoKey)

// A sealed text is mark, id of the data key, nonce, ciphertext and tag. No JSON text and no other stored bytes of ours
// begin like the mark.
const (
	mark     = "\x00HF\x01"
	headSize = len(mark) + 16
	nonce    = 12
	tag      = 16
	// Overhead is how much longer a sealed text is.
	Overhead = headSize + nonce + tag
)

// Place is where a sealed text belongs. It opens nowhere else.
type Place struct {
	Workspace uuid.UUID
	Row       uuid.UUID // the task's id, or that of another row
	Column    string    // table and column
	Part      int       // of a text that is stored in parts
}

func (p Place) bytes(id uuid.UUID) []byte {
	bound := append([]byte(mark), id[:]...)
	bound = append(bound, p.Workspace[:]...)
	bound = append(bound, p.Row[:]...)
	bound = binary.BigEndian.AppendUint64(bound, uint64(p.Part)) // #nosec G115 -- a place in a list
	return append(bound, p.Column...)
}

// Key is a data key, ready for use. It is safe for concurrent use and prints as [redacted].
type Key struct {
	ID     uuid.UUID
	random cipher.AEAD // makes its nonces
	given  cipher.AEAD // takes them
	nonces []byte      // what SealSame makes them with
}

// NewKey makes a data key of a workspace and wraps it under the active master key.
func (r *Ring) NewKey(id, workspace uuid.UUID) (Key, Wrapped, error) {
	raw := make([]byte, keySize)
	defer clear(raw)
	_, _ = rand.Read(raw) // never fails
	key, err := keyOf(id, raw)
	if err != nil {
		return Key{}, Wrapped{}, err
	}
	return key, r.wrap(id, workspace, raw), nil
}

func keyOf(id uuid.UUID, raw []byte) (Key, error) {
	random, err := aeadOf(raw)
	if err != nil {
		return Key{}, err
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return Key{}, errors.New("a key of a wrong size")
	}
	given, err := cipher.NewGCM(block)
	if err != nil {
		return Key{}, errors.New("AES-GCM can't be had")
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte("holdfast/nonce/1"))
	return Key{id, random, given, mac.Sum(nil)}, nil
}

// String never tells the key.
func (k Key) String() string { return redacted }

// Format covers every verb: none tells the key.
func (k Key) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

func (k Key) head(size int) []byte {
	return append(append(make([]byte, 0, size+Overhead), mark...), k.ID[:]...)
}

// Seal returns the text sealed for its place, every time other bytes.
func (k Key) Seal(at Place, text []byte) []byte {
	return k.random.Seal(k.head(len(text)), nil, text, at.bytes(k.ID)) // #nosec G407 -- it makes its nonces
}

// SealSame is Seal with the same bytes for the same text, for what is compared in the database. Whoever reads those sees
// that two are equal, and nothing more; so it is for random texts only.
func (k Key) SealSame(at Place, text []byte) []byte {
	bound := at.bytes(k.ID)
	mac := hmac.New(sha256.New, k.nonces)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(bound))))
	mac.Write(bound)
	mac.Write(text)
	n := mac.Sum(nil)[:nonce]
	return k.given.Seal(append(k.head(len(text)), n...), n, text, bound)
}

// Open returns the text of a place, or ErrUnreadable.
func (k Key) Open(at Place, sealed []byte) ([]byte, error) {
	id, ok := KeyOf(sealed)
	if !ok || id != k.ID {
		return nil, ErrUnreadable
	}
	text, err := k.random.Open(nil, nil, sealed[headSize:], at.bytes(k.ID))
	if err != nil {
		return nil, ErrUnreadable
	}
	return text, nil
}

// KeyOf tells whether the stored bytes are sealed, and with which data key.
func KeyOf(stored []byte) (uuid.UUID, bool) {
	if len(stored) < Overhead || string(stored[:len(mark)]) != mark {
		return uuid.Nil, false
	}
	return uuid.UUID(stored[len(mark):headSize]), true
}
