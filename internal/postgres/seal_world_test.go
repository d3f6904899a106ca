package postgres_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// encryptionVar lets every store of this package seal: TESTKIT_ENCRYPTION=on runs all tests with encryption.
const encryptionVar = "TESTKIT_ENCRYPTION"

// sealing is what the stores of a world are opened with unless a test says otherwise.
func sealing(t testing.TB) postgres.Sealing {
	t.Helper()
	if os.Getenv(encryptionVar) != "on" {
		return postgres.Sealing{}
	}
	return postgres.Sealing{Ring: ringOf(t, "test")}
}

// ringOf is a ring of master keys of these names, the first one active. A name is always the same key; what follows a
// slash makes another key of the name.
func ringOf(t testing.TB, names ...string) *seal.Ring {
	t.Helper()
	entries := make([]string, len(names))
	for i, name := range names {
		raw := sha256.Sum256([]byte("master key " + name))
		id, _, _ := strings.Cut(name, "/")
		entries[i] = id + ":" + base64.StdEncoding.EncodeToString(raw[:])
	}
	ring, err := seal.ParseRing(strings.Join(entries, ","))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// with opens another store of the world that seals so.
func (w *world) with(s postgres.Sealing) *postgres.DB {
	w.t.Helper()
	db, err := postgres.Open(w.t.Context(), postgres.Config{URL: w.url, Now: w.clock.Load, Sealing: s})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(db.Close)
	return db
}

// plain opens a store without keys, sealed one with the master keys of these names.
func (w *world) plain() *postgres.DB { return w.with(postgres.Sealing{}) }

func (w *world) sealed(names ...string) *postgres.DB {
	return w.with(postgres.Sealing{Ring: ringOf(w.t, names...)})
}

// as lets the world use another store for a while.
func (w *world) as(db *postgres.DB, do func()) {
	before := w.db
	w.db = db
	defer func() { w.db = before }()
	do()
}

// newSealedWorld is a world whose store seals under the master key a.
func newSealedWorld(t testing.TB, credits int64) *world {
	t.Helper()
	w := newWorld(t, credits)
	w.db = w.sealed("a")
	return w
}

// storedOf is a payload as it is stored.
func (w *world) storedOf(id uuid.UUID) []byte {
	w.t.Helper()
	return one[[]byte](w, `SELECT command FROM tasks WHERE id = $1`, id)
}

func wantSealed(t testing.TB, what string, stored []byte, text string) {
	t.Helper()
	if _, ok := seal.KeyOf(stored); !ok || bytes.Contains(stored, []byte(text)) {
		t.Fatalf("%s is not sealed: %.60q", what, stored)
	}
}

func wantOpen(t testing.TB, l worker.Lease, text string) {
	t.Helper()
	if l.Closed != nil || !bytes.Contains(l.Payload, []byte(text)) {
		t.Fatalf("the claim has %.60q: %v", l.Payload, l.Closed)
	}
}

// privateWorld is a world on a server of its own.
func privateWorld(t testing.TB, s postgres.Sealing) (w *world, dataDir string) {
	t.Helper()
	pg := testkit.PrivatePostgres(t, false)
	w = newWorldOn(t, pg.URL())
	w.db = w.with(s)
	w.caller = w.workspace(1000)
	return w, pg.DataDir()
}
