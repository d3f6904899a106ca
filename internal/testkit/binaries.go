package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const buildTimeout = 8 * time.Minute // a cold build of everything takes two on two busy cores

// Binaries builds the programs of cmd with the crash points switched on (`-tags chaos`), once per test binary, and
// returns the directory with them in it. Nobody changes them while the tests run.
func Binaries(t testing.TB) string {
	t.Helper()
	current.mu.Lock()
	defer current.mu.Unlock()
	if current.binaries == "" && current.binErr == nil {
		current.binaries, current.binErr = buildBinaries(t.Context(), current)
	}
	if current.binErr != nil {
		t.Fatalf("testkit: build binaries: %v", current.binErr)
	}
	return current.binaries
}

func buildBinaries(ctx context.Context, s *suite) (string, error) {
	dir, err := s.directory()
	if err != nil {
		return "", err
	}
	own := filepath.Join(dir, "bin")
	if err := os.Mkdir(own, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	shared, err := sharedBinDir()
	if err != nil {
		return own, goBuild(ctx, root, own)
	}
	// The go command leaves a program that is up to date as it is, so test binaries share one directory and only the
	// first pays for linking. Each takes its own names of the files while nobody else builds.
	unlock, err := lockFile(shared + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := goBuild(ctx, root, shared); err != nil {
		return "", err
	}
	return own, linkAll(shared, own)
}

// moduleRoot is the directory with go.mod, found by the go command from the package under test.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("not inside the module")
	}
	return filepath.Dir(mod), nil
}

func sharedBinDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "holdfast-test", "bin-chaos")
	return dir, os.MkdirAll(dir, 0o700)
}

func goBuild(ctx context.Context, root, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "chaos", "-o", dir, "./cmd/...")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Waits for the other builds, each of which is bounded.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// linkAll gives every file of from a second name in to, or a copy where the file systems differ.
func linkAll(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		src, dst := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		if os.Link(src, dst) == nil {
			continue
		}
		if err := copyProgram(src, dst); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
