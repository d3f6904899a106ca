package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// The logs of a state directory. StderrFile is what a detached `up` says beside its log, as why it didn't start.
const (
	LogFile         = "holdfast.log"
	StderrFile      = "holdfast.stderr"
	PostgresLogFile = "postgres.log"
)

// LogBytes and LogsKept bound the log of a detached `up` and how many older ones stay: 40 MB are days of a busy one.
const (
	LogBytes = 10 << 20
	LogsKept = 3
)

// MakeStateDir makes the directory that is meant, if it isn't there, and returns it.
func MakeStateDir(given string) (string, error) {
	dir, err := StateDir(given)
	if err != nil {
		return "", err
	}
	return dir, makeStateDir(dir)
}

// ErrNoState says that a directory has nothing that `holdfast up` has made.
var ErrNoState = errors.New("there is nothing of `holdfast up` in it")

// stateFiles are what `up` makes in its directory beside the lock, which stays.
func stateFiles() []string {
	return []string{
		"postgres", "postgres.password", PostgresLogFile, PostgresLogFile + ".1", "nats", keyFile, portsFile, runFile, LogFile, StderrFile,
	}
}

// StateFiles names what a reset of the directory would remove, or ErrNoState. Files of others that are there are not named.
func StateFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read state directory: %w", err)
	}
	var found []string
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case slices.Contains(stateFiles(), name), strings.HasPrefix(name, LogFile+"."),
			strings.HasPrefix(name, runFile+"."), strings.HasPrefix(name, portsFile+"."), strings.HasPrefix(name, keyFile+"."):
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return nil, ErrNoState
	}
	return found, nil
}

// ResetState removes what StateFiles names, for good. It has the directory's lock meanwhile, so that no `up` runs or
// starts over it; when one runs, the error wraps localdev.ErrLocked.
func ResetState(dir string) (removed []string, err error) {
	found, err := StateFiles(dir)
	if err != nil {
		return nil, err
	}
	unlock, err := localdev.LockDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for _, name := range found {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return removed, fmt.Errorf("reset: %w", err)
		}
		removed = append(removed, name)
	}
	return removed, nil
}
