package holdfast

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"time"
)

// maxKey is how many characters the service takes.
const maxKey = 200

// NewKey returns a new Idempotency-Key, a UUIDv7. Make it before a write and store it with what the write is about, and
// the write can be finished after a crash of this process too.
func NewKey() string {
	var id [16]byte
	_, _ = rand.Read(id[6:]) // fails only where the system has no randomness left to give; Go ends the process there
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// checkKey refuses what the service would refuse, before anything is sent.
func checkKey(key string) error {
	if !visible(key) || len(key) > maxKey {
		return errors.New("holdfast: an idempotency key has 1 to 200 visible ASCII characters")
	}
	return nil
}

// headerKey writes a key as a header: quoted when a comma or a quote in it could be taken for the end of a value.
func headerKey(key string) string {
	if !strings.ContainsAny(key, `,"`) {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
