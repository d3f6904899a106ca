package check

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
)

// TestMain fails the run when compose-go has warned of something: it returns no warnings, it logs them.
func TestMain(m *testing.M) {
	warned := &warnings{}
	logrus.AddHook(warned)
	logrus.SetOutput(io.Discard)
	code := m.Run()
	if len(warned.list) > 0 {
		fmt.Fprintln(os.Stderr, "compose-go warns:", strings.Join(warned.list, "; "))
		code = max(code, 1)
	}
	os.Exit(code)
}

type warnings struct {
	mu   sync.Mutex
	list []string
}

// Levels are those from which on somebody should look.
func (*warnings) Levels() []logrus.Level {
	return []logrus.Level{logrus.WarnLevel, logrus.ErrorLevel, logrus.FatalLevel, logrus.PanicLevel}
}

// Fire keeps the text.
func (w *warnings) Fire(entry *logrus.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, entry.Message)
	return nil
}

// root is the repository, from this directory.
func root(t *testing.T, path ...string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs a program in the repository and returns what it printed.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// program builds one of cmd and returns its path.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	run(t, nil, "go", "build", "-o", path, "./cmd/"+name)
	return path
}

// settings are the names of all variables that the processes know, as they say themselves.
func settings(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, name := range regexp.MustCompile(`\$(HOLDFAST_[A-Z_]+)`).FindAllStringSubmatch(run(t, nil, program(t, "worker"), "--help"), -1) {
		known[name[1]] = true
	}
	if len(known) < 30 || !known["HOLDFAST_DATABASE_URL"] {
		t.Fatalf("the help of worker names %d variables: it isn't read as it is written", len(known))
	}
	return known
}
