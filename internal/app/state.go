package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// The files of a state directory that app writes itself.
const (
	runFile   = "run.json"
	keyFile   = "api_key"
	portsFile = "ports.json"
)

// PIDs are the processes of a running `holdfast up`. Postgres is 0 when it isn't private.
type PIDs struct {
	Holdfast int `json:"holdfast"`
	Postgres int `json:"postgres"`
}

// Running is what a `holdfast up` that is ready says of itself: on its one line of output, and in run.json, which
// is there while it runs. It holds secrets.
type Running struct {
	API         string `json:"api"`
	Key         string `json:"key"`
	DatabaseURL string `json:"database_url"`
	NATSURL     string `json:"nats_url"`
	Admin       string `json:"admin,omitempty"`
	PIDs        PIDs   `json:"pids"`
	Version     string `json:"version,omitempty"`
	// StartedAt is when it was ready, by this machine's clock.
	StartedAt time.Time `json:"started_at,omitzero"`
	Detached  bool      `json:"detached,omitempty"`
}

// StateDir returns the directory that is meant: the given one, or the default of this user.
func StateDir(given string) (string, error) {
	switch {
	case given != "":
		dir, err := filepath.Abs(given)
		if err != nil {
			return "", fmt.Errorf("state directory: %w", err)
		}
		return dir, nil
	case os.Geteuid() == 0:
		return "/var/lib/holdfast", nil
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "holdfast"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("state directory: %w: set HOLDFAST_STATE_DIR", err)
	}
	return filepath.Join(home, ".local", "state", "holdfast"), nil
}

// ReadRunning reads run.json of the state directory. It is nil without an error when there is none, or none that
// this user may read.
func ReadRunning(given string) (*Running, error) {
	dir, err := StateDir(given)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, runFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", runFile, err)
	}
	var r Running
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is not what `holdfast up` writes: remove it and start again", filepath.Join(dir, runFile))
	}
	return &r, nil
}

// Located returns the database, from the settings or else from run.json.
func (d Database) Located() (Database, error) {
	if d.DatabaseURL != "" {
		return d, nil
	}
	running, err := ReadRunning(d.StateDir)
	if err != nil {
		return d, err
	}
	if running == nil {
		return d, errNoDatabase
	}
	d.DatabaseURL = model.Secret(running.DatabaseURL)
	return d, nil
}

// located fills in database and NATS from run.json. Only a database that comes from there brings its NATS along.
func (s Settings) located() (Database, model.Secret, error) {
	database, err := s.Located()
	if err != nil || s.DatabaseURL != "" || s.NATSURL != "" {
		return database, s.NATSURL, err
	}
	running, err := ReadRunning(s.StateDir)
	if err != nil || running == nil {
		return database, s.NATSURL, err
	}
	return database, model.Secret(running.NATSURL), nil
}

// makeStateDir makes the directory. As root others may walk through it, because PostgreSQL runs as another user; its
// files are closed to them one by one.
func makeStateDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { // #nosec G301 -- parents such as ~/.local/state are not ours to close
		return fmt.Errorf("make state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make state directory: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o711); err != nil { // #nosec G302 -- see above
		return fmt.Errorf("make state directory: %w", err)
	}
	return nil
}

// writePrivate replaces a file in one step, readable by this user only.
func writePrivate(dir, name string, content []byte) error {
	f, err := os.CreateTemp(dir, name+".*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func writeJSON(dir, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return writePrivate(dir, name, append(text, '\n'))
}
