package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/seal"
)

// Encryption says what payloads are sealed with.
type Encryption struct {
	EncryptionKeys     model.Secret `name:"encryption-keys" placeholder:"ID:BASE64,…" help:"Master keys that encrypt stored payloads, 32 random bytes each, the first one active. Without any, nothing is encrypted."`
	EncryptionKeysFile string       `name:"encryption-keys-file" placeholder:"FILE" help:"A file with the master keys, one a line."`
	EncryptionOpenOnly bool         `name:"encryption-open-only" help:"Encrypt nothing new; what is encrypted stays readable. The way to turn encryption off."`
}

// maxKeysFile bounds the file of master keys: sixteen keys with long ids.
const maxKeysFile = 16 << 10

// othersMayRead is what the file may not allow, as that of an nkey: anything to others, and writing to its group.
const othersMayRead = 0o027

// sealing reads the master keys. Its errors quote none.
func (e Encryption) sealing() (postgres.Sealing, error) {
	text := e.EncryptionKeys.Reveal()
	switch {
	case text != "" && e.EncryptionKeysFile != "":
		return postgres.Sealing{}, errors.New("set encryption-keys or encryption-keys-file, not both")
	case e.EncryptionKeysFile != "":
		info, err := os.Stat(e.EncryptionKeysFile)
		if err != nil || info.Size() > maxKeysFile {
			return postgres.Sealing{}, errors.New("encryption-keys-file can't be read, or is no file of keys")
		}
		if info.Mode().Perm()&othersMayRead != 0 {
			return postgres.Sealing{}, errors.New("others can get at encryption-keys-file: chmod 600 it")
		}
		read, err := os.ReadFile(e.EncryptionKeysFile)
		if err != nil {
			return postgres.Sealing{}, errors.New("encryption-keys-file can't be read")
		}
		text = string(read)
		clear(read)
	case text == "":
		if e.EncryptionOpenOnly {
			return postgres.Sealing{}, errors.New("encryption-open-only needs the keys: nothing could be opened without them")
		}
		return postgres.Sealing{}, nil
	}
	ring, err := seal.ParseRing(text)
	if err != nil {
		return postgres.Sealing{}, fmt.Errorf("encryption keys: %w", err)
	}
	return postgres.Sealing{Ring: ring, OpenOnly: e.EncryptionOpenOnly}, nil
}

// keyless are the processes that may do without the keys: repair reads no payload, and a worker leaves what is sealed to
// those that have the keys.
func keyless(process string) bool { return slices.Contains([]string{"repair", "worker"}, process) }

// checkKeys refuses to start a process with wrong or missing master keys: it would fail what others can do, or store as
// plain text what is to be encrypted.
func checkKeys(ctx context.Context, db *postgres.DB, sealing postgres.Sealing, process string, log zerolog.Logger) error {
	keys, err := db.CheckKeys(ctx)
	if err != nil {
		return fmt.Errorf("look at the encryption keys: %w", err)
	}
	for _, k := range keys {
		err := k.Err()
		switch {
		case err == nil:
		case sealing.Ring == nil && keyless(process):
			log.Warn().Str("master_key", k.Name).Msg("no encryption keys are set: encrypted tasks are left to processes that have them")
		case sealing.Ring == nil:
			return fmt.Errorf("payloads are encrypted and no keys are set: %w; see `holdfast encryption status`", err)
		default:
			return fmt.Errorf("encryption keys: %w; see `holdfast encryption status`", err)
		}
	}
	return nil
}

// OpenSealed opens a pool for the operator's commands that need the encryption keys.
func OpenSealed(ctx context.Context, d Database, e Encryption) (*postgres.DB, error) {
	sealing, err := e.sealing()
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	return openStore(ctx, d, postgres.Config{MaxConns: 2, Sealing: sealing})
}

// examineKeys compares the configured master keys with those that the data keys need.
func examineKeys(ctx context.Context, d Database, e Encryption) []Finding {
	const check = "encryption"
	sealing, err := e.sealing()
	if err != nil {
		return []Finding{{check, Danger, err.Error(), "Correct the keys; no process starts with them."}}
	}
	db, err := openStore(ctx, d, postgres.Config{MaxConns: 1, Sealing: sealing})
	if err != nil {
		return nil // that the database can't be reached is said already
	}
	defer db.Close()
	keys, err := db.CheckKeys(ctx)
	if err != nil {
		return []Finding{{check, Warning, "the data keys can't be read", "Run `holdfast migrate`, or let the user read the table data_keys."}}
	}
	var found []Finding
	for _, k := range keys {
		if err := k.Err(); err != nil {
			found = append(found, Finding{check, Danger, err.Error(), "Configure that key again: what it protects can't be read without it, and API and workers refuse to start."})
		}
	}
	switch {
	case len(found) > 0:
		return found
	case sealing.Ring == nil:
		return []Finding{{Check: check, Grade: Good, Found: "off"}}
	case sealing.OpenOnly:
		return []Finding{{Check: check, Grade: Good, Found: "off for what is new; what is encrypted can be opened"}}
	}
	return []Finding{{Check: check, Grade: Good, Found: fmt.Sprintf("on, the active master key is %q", sealing.Ring.Active())}}
}
