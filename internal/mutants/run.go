package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	buildLimit = 8 * time.Minute  // a cold build of everything takes two on two busy cores
	graceLimit = 30 * time.Second // for servers that a test binary stops after its own time is over
)

// bench is where mutants are built and run: a directory of its own, so that no program of the suite is one of them.
type bench struct {
	root, dir string
	cache     string // of the go command, which the suite has filled already
	overlay   string
	binaries  map[string]string // of tests, by package
	names     []string          // of the mutants, by number less one
}

// newBench writes the test build of the mutants and returns what removes it.
func newBench(ctx context.Context, mutants []mutant) (*bench, func(), error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOCACHE").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 || lines[0] == "" || lines[0] == os.DevNull {
		return nil, nil, errors.New("not inside the module")
	}
	dir, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return nil, nil, fmt.Errorf("make directory: %w", err)
	}
	b := &bench{root: filepath.Dir(lines[0]), dir: dir, cache: lines[1], binaries: map[string]string{}}
	clean := func() { _ = os.RemoveAll(dir) }
	for _, m := range mutants {
		b.names = append(b.names, m.name)
	}
	if err := b.write(mutants); err != nil {
		clean()
		return nil, nil, err
	}
	return b, clean, nil
}

func (b *bench) nowFile() string { return filepath.Join(b.dir, "now") }

// write writes the files of the overlay and the go command's description of them.
func (b *bench) write(mutants []mutant) error {
	// Programs that tests start run as other users than ours too.
	if err := os.Chmod(b.dir, 0o755); err != nil { // #nosec G302 -- sources and numbers
		return fmt.Errorf("open directory: %w", err)
	}
	s, err := newSwitched(b.root, b.nowFile(), mutants)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for file, text := range s.files {
		to := filepath.Join(b.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write mutants: %w", err)
		}
		replace[filepath.Join(b.root, filepath.FromSlash(file))] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return fmt.Errorf("write overlay: %w", err)
	}
	b.overlay = filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(b.overlay, text, 0o600); err != nil {
		return fmt.Errorf("write overlay: %w", err)
	}
	return nil
}

// environ is the environment of a build and of a test: the go command sees the overlay also where a test builds the
// programs it starts, and these go where no other test looks for them.
func (b *bench) environ(cmd *exec.Cmd) []string {
	return append(cmd.Environ(), "GOCACHE="+b.cache, "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"), "GOFLAGS=-overlay="+b.overlay)
}

// build makes the test binary of a package.
func (b *bench) build(ctx context.Context, pkg string) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	to := filepath.Join(b.dir, strings.ReplaceAll(pkg, "/", "_")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", to, "./"+pkg) // #nosec G204 -- a package of the list
	cmd.Dir = b.root
	cmd.Env = b.environ(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s%s", pkg, err, out, b.blame(string(out)))
	}
	b.binaries[pkg] = to
	return nil
}

var (
	place  = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`)
	copied = regexp.MustCompile(`(?m)^func .*__m(\d+)\(`)
)

// blame names the mutants in whose copies of functions the compiler has found something wrong.
func (b *bench) blame(output string) string {
	var said strings.Builder
	for _, found := range place.FindAllStringSubmatch(output, -1) {
		text, err := os.ReadFile(filepath.Join(b.dir, filepath.Base(found[1])))
		if err != nil {
			continue // a file that no mutant is in
		}
		at, _ := strconv.Atoi(found[2])
		above := strings.Join(strings.SplitAfterN(string(text), "\n", at+1)[:at], "")
		if all := copied.FindAllStringSubmatch(above, -1); len(all) > 0 {
			if n, _ := strconv.Atoi(all[len(all)-1][1]); n > 0 && n <= len(b.names) {
				said.WriteString("the mutant " + strconv.Quote(b.names[n-1]) + " does not compile\n")
			}
		}
	}
	return said.String()
}

// run runs tests of a package with a mutant, 0 for none, and answers what they printed, and whether they ran out of time.
func (b *bench) run(ctx context.Context, pkg, pattern string, number int, limit time.Duration) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, limit+graceLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.binaries[pkg], "-test.run", pattern, "-test.v", "-test.count", "1", // #nosec G204 -- built above
		"-test.timeout", limit.String())
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	cmd.Env = append(b.environ(cmd), nowVar+"="+strconv.Itoa(number))
	// What the binary started ends with it: servers of a test that was killed must not stay.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = graceLimit
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the output says all of it
	return out.String(), ctx.Err() != nil
}

// choose tells the programs that tests start which mutant they are. They don't have the environment of the test.
func (b *bench) choose(number int) error {
	if err := os.WriteFile(b.nowFile(), []byte(strconv.Itoa(number)), 0o644); err != nil { // #nosec G306 -- a number
		return fmt.Errorf("choose mutant: %w", err)
	}
	return nil
}

// baseline runs every scenario of a package without a mutant: all of them must pass.
func (b *bench) baseline(ctx context.Context, pkg string, tests []string, limit time.Duration) error {
	patterns := make([]string, len(tests))
	for i, test := range tests {
		patterns[i] = scenario{pkg, test}.pattern()
	}
	if err := b.choose(0); err != nil {
		return err
	}
	output, overtime := b.run(ctx, pkg, strings.Join(patterns, "|"), 0, limit)
	for _, test := range tests {
		if overtime || !ended(output, test, "PASS") {
			return fmt.Errorf("%s %s does not pass without a mutant:\n%s", pkg, test, tail(output))
		}
	}
	return nil
}

// result is what became of one mutant.
type result struct {
	mutant  mutant
	verdict verdict
	why     string
	took    time.Duration
	output  string
}

// try runs a mutant's scenario. Those that start programs must not run at once.
func (b *bench) try(ctx context.Context, m mutant, number int) result {
	began := time.Now()
	if m.alone() {
		if err := b.choose(number); err != nil {
			return result{mutant: m, verdict: broken, why: err.Error()}
		}
	}
	output, overtime := b.run(ctx, m.caughtBy.pkg, m.caughtBy.pattern(), number, m.limit)
	r := result{mutant: m, output: output, took: time.Since(began)}
	r.verdict, r.why = judge(m, output, overtime)
	return r
}

// alone tells that the scenario starts programs, to which one file says which mutant they are.
func (m mutant) alone() bool { return m.caughtBy.pkg == "internal/endtoend" }

// tail is the end of an output, which says what went wrong.
func tail(output string) string {
	const most = 4_000 // some forty lines: a failure with its place
	if len(output) > most {
		return "…" + output[len(output)-most:]
	}
	return output
}
