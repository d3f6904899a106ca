package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

const (
	readyTime = 90 * time.Second // initdb and a first start, while other tests keep two cores busy
	stopTime  = 40 * time.Second
)

// machine is a state directory and the programs of one test.
type machine struct {
	t     *testing.T
	bin   string
	state string
	env   []string

	database string // of sharedMachine
}

// newMachine has a private PostgreSQL and NATS of its own.
func newMachine(t *testing.T) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-test-cmd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when we are root
		t.Fatal(err)
	}
	m := &machine{t: t, bin: testkit.Binaries(t), state: filepath.Join(dir, "state")}
	m.env = []string{"HOLDFAST_STATE_DIR=" + m.state, "HOLDFAST_LISTEN=127.0.0.1:0", "HOLDFAST_ADMIN_LISTEN=127.0.0.1:0"}
	return m
}

// sharedMachine uses the test binary's PostgreSQL, with a database of its own, and a NATS in this process.
func sharedMachine(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t)
	m.database = testkit.NewDatabase(t)
	m.env = append(m.env, "HOLDFAST_DATABASE_URL="+m.database, "HOLDFAST_NATS_URL="+testkit.NewNATS(t).URL())
	return m
}

func (m *machine) start(program string, args ...string) *testkit.Process {
	m.t.Helper()
	return testkit.StartProcess(m.t, testkit.ProcessConfig{Path: filepath.Join(m.bin, program), Args: args, Env: m.env})
}

// up starts holdfast up --json and returns its one line.
func (m *machine) up(args ...string) (*testkit.Process, running) {
	m.t.Helper()
	p := m.start("holdfast", append([]string{"up", "--json"}, args...)...)
	p.WaitForOutput(`"pids":`, readyTime)
	var r running
	if err := json.Unmarshal([]byte(p.Stdout()), &r); err != nil {
		m.t.Fatalf("up --json wrote %q: %v", p.Stdout(), err)
	}
	return p, r
}

// run runs a command of holdfast to its end and returns its exit code and standard output.
func (m *machine) run(stdin string, args ...string) (int, string) {
	m.t.Helper()
	p := testkit.StartProcess(m.t, testkit.ProcessConfig{
		Path: filepath.Join(m.bin, "holdfast"), Args: args, Env: m.env, Stdin: strings.NewReader(stdin),
	})
	return p.Wait(stopTime), p.Stdout()
}

// json runs a command that must end with 0 and decodes its output.
func (m *machine) json(into any, args ...string) {
	m.t.Helper()
	code, out := m.run("", append(args, "--json")...)
	if code != 0 {
		m.t.Fatalf("%v ended with %d: %s", args, code, out)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		m.t.Fatalf("%v wrote %q: %v", args, out, err)
	}
}

// stop ends a process with SIGTERM and expects 0.
func stop(t *testing.T, p *testkit.Process) {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(stopTime); code != 0 {
		t.Fatalf("it ended with %d after SIGTERM:\n%s", code, p.Stderr())
	}
}

// gone fails the test while a process is there. Nobody tells of the end of a process that is no child of ours.
func gone(t *testing.T, pid int) {
	t.Helper()
	if pid <= 0 || alive(pid) {
		t.Fatalf("process %d still runs", pid)
	}
}

// shell runs one command line and returns its output.
func shell(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, errOut.String())
	}
	return out.String()
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// mode is the permission of a file in the state directory.
func (m *machine) mode(name string) os.FileMode {
	m.t.Helper()
	info, err := os.Stat(filepath.Join(m.state, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return info.Mode().Perm()
}

// missing tells whether a file of the state directory isn't there.
func (m *machine) missing(name string) bool {
	_, err := os.Stat(filepath.Join(m.state, name))
	return errors.Is(err, os.ErrNotExist)
}
