package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	clockEnv   = "HOLDFAST_CHAOS_CLOCK"
	clockShift = 10 * time.Minute
	clockBuild = 8 * time.Minute // everything is compiled once more, because everything uses the clock
)

// shifted is what is added to Go's package time: the wall clock of the whole program is off, its monotonic clock is not,
// as on a machine whose clock was set wrong. No file of Holdfast knows of it.
const shifted = `
var chaosShift = chaosClock()

func chaosClock() int64 {
	text, _ := syscall.Getenv("` + clockEnv + `")
	d, err := ParseDuration(text)
	if err != nil {
		return 0
	}
	return int64(d / Second)
}
`

// shiftedWorker builds a worker whose clock can be off, into dir, from the module at root.
func shiftedWorker(ctx context.Context, root, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clockBuild)
	defer cancel()
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("shifted clock: go env: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("shifted clock: %w", err)
	}
	const reading = "\tsec, nsec, mono := runtimeNow()\n"
	if bytes.Count(source, []byte(reading)) == 0 {
		return "", errors.New("shifted clock: package time of this Go reads its clock in another way")
	}
	source = bytes.Replace(source, []byte("import ("), []byte("import (\n\t\"syscall\""), 1)
	source = bytes.Replace(source, []byte(reading), []byte(reading+"\tsec += chaosShift\n"), 1)
	source = append(source, shifted...)
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", fmt.Errorf("shifted clock: %w", err)
	}
	err = errors.Join(os.WriteFile(changed, source, 0o600), os.WriteFile(overlay, list, 0o600)) //nolint:gosec // in the run's own directory
	if err != nil {
		return "", fmt.Errorf("shifted clock: %w", err)
	}
	program := filepath.Join(dir, "worker-shifted")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "chaos", "-overlay", overlay, "-o", program, "./cmd/worker")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("shifted clock: go build: %w\n%s", err, out)
	}
	return program, nil
}
