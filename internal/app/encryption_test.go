package app

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// masterKey is a master key of one repeated letter as it is configured.
func masterKey(name, letter string) string {
	return name + ":" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

func TestEncryptionSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(masterKey("new", "n")+"\n"+masterKey("old", "o")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, make([]byte, maxKeysFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	open, grouped := filepath.Join(t.TempDir(), "open"), filepath.Join(t.TempDir(), "grouped")
	for path, mode := range map[string]os.FileMode{open: 0o644, grouped: 0o440} {
		if err := os.WriteFile(path, []byte(masterKey("new", "n")+"\n"+masterKey("old", "o")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
	}
	for what, e := range map[string]Encryption{
		"a file of the service's group": {EncryptionKeysFile: grouped},
		"a list":                        {EncryptionKeys: model.Secret(masterKey("new", "n") + "," + masterKey("old", "o"))},
		"a file":                        {EncryptionKeysFile: file, EncryptionOpenOnly: true},
	} {
		s, err := e.sealing()
		if err != nil || s.Ring.Active() != "new" || !s.Ring.Has("old") || s.OpenOnly != e.EncryptionOpenOnly {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
	if s, err := (Encryption{}).sealing(); err != nil || s.Ring != nil {
		t.Errorf("without keys: %+v, %v", s, err)
	}
	for what, e := range map[string]Encryption{
		"both":                 {EncryptionKeys: model.Secret(masterKey("new", "n")), EncryptionKeysFile: file},
		"open-only alone":      {EncryptionOpenOnly: true},
		"a file that is away":  {EncryptionKeysFile: file + "x"},
		"a file of other size": {EncryptionKeysFile: huge},
		"a file for everybody": {EncryptionKeysFile: open},
		"nonsense":             {EncryptionKeys: "open-sesame"},
	} {
		_, err := e.sealing()
		if err == nil {
			t.Errorf("%s was taken", what)
			continue
		}
		if strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), file) {
			t.Errorf("%s: the error says %v", what, err)
		}
	}
}

// TestEncryptionKeysAtTheStart holds which processes start with which keys, and what doctor says.
func TestEncryptionKeysAtTheStart(t *testing.T) {
	t.Parallel()
	d := Database{DatabaseURL: model.Secret(testkit.NewDatabase(t)), DatabasePooler: "none"}
	with := func(keys ...string) Encryption {
		return Encryption{EncryptionKeys: model.Secret(strings.Join(keys, ","))}
	}
	ring, err := seal.ParseRing(masterKey("a", "a"))
	if err != nil {
		t.Fatal(err)
	}
	id, workspace := uuid.New(), uuid.New()
	_, wrapped, err := ring.NewKey(id, workspace)
	if err != nil {
		t.Fatal(err)
	}
	start := func(e Encryption, process string) error {
		sealing, err := e.sealing()
		if err != nil {
			t.Fatal(err)
		}
		db, err := OpenSealed(t.Context(), d, e)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		return checkKeys(t.Context(), db, sealing, process, zerolog.Nop())
	}
	if err := start(with(), "api"); err != nil {
		t.Errorf("nothing is encrypted and no keys are set: %v", err)
	}
	if got := examineKeys(t.Context(), d, with()); len(got) != 1 || got[0].Grade != Good || got[0].Found != "off" {
		t.Errorf("doctor says %+v", got)
	}
	if _, err := testkit.Pool(t, d.DatabaseURL.Reveal()).Exec(t.Context(), `
INSERT INTO data_keys (id, workspace_id, day, master_key, wrapped, created_at) VALUES ($1, $2, '2026-01-02', $3, $4, clock_timestamp())`,
		id, workspace, wrapped.Master, wrapped.Key); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what    string
		keys    Encryption
		process string
		starts  bool
		grade   Grade
	}{
		{"the key", with(masterKey("a", "a")), "api", true, Good},
		{"the key beside a new one", with(masterKey("b", "b"), masterKey("a", "a")), "worker", true, Good},
		{"none", with(), "api", false, Danger},
		{"none", with(), "up", false, Danger},
		{"none", with(), "worker", true, Danger},
		{"none", with(), "repair", true, Danger},
		{"another", with(masterKey("b", "b")), "worker", false, Danger},
		{"another of the name", with(masterKey("a", "x")), "worker", false, Danger},
		{"another of the name", with(masterKey("a", "x")), "repair", false, Danger},
	} {
		if err := start(c.keys, c.process); (err == nil) != c.starts {
			t.Errorf("%s with %s: %v", c.process, c.what, err)
		}
		if got := examineKeys(t.Context(), d, c.keys); len(got) != 1 || got[0].Grade != c.grade {
			t.Errorf("with %s doctor says %+v", c.what, got)
		}
	}
}
