package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

const (
	dirPrefix = "holdfast-test-"
	// leftoverAge is how old a directory without an owner must be to be removed: long enough that nobody is between
	// making and locking it.
	leftoverAge = 10 * time.Minute
	stopTimeout = 30 * time.Second // a test server has little to write at its end
)

// suite is what one test binary shares between its tests. Starting is lazy, ending is Main's.
type suite struct {
	mu      sync.Mutex
	running bool // between the begin and the end of Main
	release func() error
	dir     string // readable for the server's user, removed at the end

	database  *sharedPostgres
	dbErr     error
	pooler    *Pooler
	poolerErr error

	binaries string
	binErr   error
}

// current is the one suite of this test binary: tests have no other place from which to reach what they share.
var current = &suite{}

// Main runs a test binary's tests and then ends what they shared. It returns the exit code for os.Exit.
func Main(m *testing.M) int {
	current.mu.Lock()
	current.running = true
	current.mu.Unlock()
	removeLeftovers()
	code := m.Run()
	if err := current.end(); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		return max(code, 1)
	}
	return code
}

// directory is the suite's own directory, made and locked at its first use. The caller holds s.mu.
func (s *suite) directory() (string, error) {
	if !s.running {
		return "", errors.New("declare `func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }` in this package")
	}
	if s.dir != "" {
		return s.dir, nil
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return "", err
	}
	// PostgreSQL runs as another user when we are root.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	release, err := localdev.LockDir(dir)
	if err != nil {
		return "", err
	}
	s.dir, s.release = dir, release
	return dir, nil
}

func (s *suite) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if s.dir == "" {
		return nil
	}
	var errs []error
	if s.pooler != nil {
		s.pooler.stop()
	}
	if s.database != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		s.database.admin.Close()
		errs = append(errs, s.database.server.Stop(ctx))
	}
	errs = append(errs, s.release(), os.RemoveAll(s.dir))
	return errors.Join(errs...)
}

// removeLeftovers deletes the directories of test binaries that were killed. Their servers ended with them.
func removeLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*")) // the pattern is valid, so there is no error
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < leftoverAge {
			continue
		}
		if release, err := localdev.LockDir(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = release()
		}
	}
}
