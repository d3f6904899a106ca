package chaos

import (
	"context"
	_ "embed" // the library is compiled where it runs
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed slowdisk/slowdisk.c
var fsyncSource []byte

// disk makes PostgreSQL's disk slow: a library that is loaded before the server's own calls.
type disk struct{ library, control string }

// newDisk compiles the library into dir, which the server's user can read.
func newDisk(ctx context.Context, dir string) (*disk, error) {
	d := &disk{library: filepath.Join(dir, "slowdisk.so"), control: filepath.Join(dir, "slowdisk.ms")}
	source := filepath.Join(dir, "slowdisk.c")
	if err := os.WriteFile(source, fsyncSource, 0o600); err != nil {
		return nil, fmt.Errorf("slow disk: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // sixty lines of C
	defer cancel()
	out, err := exec.CommandContext(ctx, "gcc", "-shared", "-fPIC", "-O1", "-o", d.library, source, "-ldl").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("slow disk: %w\n%s", err, out)
	}
	if err := os.Chmod(d.library, 0o755); err != nil { //nolint:gosec // the server runs as another user
		return nil, fmt.Errorf("slow disk: %w", err)
	}
	return d, d.slow(0)
}

// environment is what the server needs to be slowed down.
func (d *disk) environment() []string {
	return []string{"LD_PRELOAD=" + d.library, "CHAOS_FSYNC_FILE=" + d.control}
}

// slow makes every write to the disk take that much longer from now on.
func (d *disk) slow(by time.Duration) error {
	text := strconv.FormatInt(by.Milliseconds(), 10)
	if err := os.WriteFile(d.control, []byte(text), 0o644); err != nil { //nolint:gosec // the server runs as another user
		return fmt.Errorf("slow disk: %w", err)
	}
	return nil
}
