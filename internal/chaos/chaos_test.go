package chaos

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestMain(m *testing.M) {
	if played, code := playRole(); played {
		os.Exit(code)
	}
	os.Exit(testkit.Main(m))
}

// TestChaos is one run: the short one, or what the environment asks for (docs/chaos.md).
func TestChaos(t *testing.T) {
	t.Parallel()
	cfg, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, %d commands over %s, faults %v", cfg.Seed, cfg.Commands, cfg.Traffic, cfg.Faults)
	dir := scratch(t)
	r, w, n, err := run(t, cfg, dir)
	if err != nil {
		t.Fatalf("the harness itself failed (seed %d, see %s): %v", cfg.Seed, dir, err)
	}
	var text strings.Builder
	r.print(&text, w, n)
	t.Log("\n" + text.String())
	if !r.clean() {
		t.Errorf("logs and the times of the faults are in %s; the same plan again: CHAOS_SEED=%d CHAOS_COMMANDS=%d", dir, cfg.Seed, cfg.Commands)
	}
}

// scratch is the directory of a run. It stays after a failure.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when we are root
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kept: %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}
