package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/app"
)

// detached starts `up --detach` and ends it with the test.
func (m *machine) detached() running {
	m.t.Helper()
	p := m.start("holdfast", "up", "--detach", "--json")
	m.t.Cleanup(func() { m.run("", "stop", "--now") })
	if code := p.Wait(readyTime); code != 0 {
		m.t.Fatalf("up --detach ended with %d: %s", code, p.Stderr())
	}
	var r running
	if err := json.Unmarshal([]byte(p.Stdout()), &r); err != nil || r.PIDs.Holdfast == 0 || r.PIDs.Holdfast == p.PID() {
		m.t.Fatalf("it says %q", p.Stdout())
	}
	return r
}

// TestDetached lives with a detached up: it is seen, its log read, stopped, begun again and forgotten.
func TestDetached(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if code, out := m.run("", "status"); code != exitStopped || !strings.Contains(out, "Nothing runs") {
		t.Fatalf("before: %d %s", code, out)
	}
	first := m.detached()
	var s shownStatus
	m.json(&s, "status")
	if !s.Running || !s.Detached || s.PID != first.PIDs.Holdfast || s.Health != "ok" || s.API != first.API || s.Version != s.Command || s.StartedAt == nil {
		t.Fatalf("%+v", s)
	}
	_, words := m.run("", "status")
	for _, secret := range []string{first.Key, "holdfast:"} {
		if strings.Contains(words, secret) || strings.Contains(s.Database, secret) {
			t.Fatalf("the status holds a secret: %s", words)
		}
	}
	if code, out := m.run("", "up", "--detach"); code != 1 || out != "" {
		t.Fatalf("a second one: %d %s", code, out)
	}
	var kept event
	m.json(&kept, "add", "I moved to Lisbon.", "--user-id", "ada", "--wait", "30s")
	if code, out := m.run("", "logs", "--json"); code != 0 || !strings.Contains(out, `"message":"ready"`) {
		t.Fatalf("logs --json: %d %s", code, out)
	}
	if code, out := m.run("", "logs", "-n", "2"); code != 0 || strings.Count(out, "\n") != 2 || strings.Contains(out, "{") {
		t.Fatalf("logs: %d %s", code, out)
	}
	if code, _ := m.run("", "logs", "postgres"); code != 0 {
		t.Fatalf("logs postgres ended with %d", code)
	}
	if m.mode(app.LogFile) != 0o600 {
		t.Fatal("the log is for this user only")
	}
	followed := m.start("holdfast", "logs", "-f", "-n", "0", "--json")
	if code, out := m.run("", "reset", "--yes"); code != 1 || out != "" {
		t.Fatalf("a reset while it runs: %d %s", code, out)
	}
	if code, out := m.run("", "stop"); code != 0 {
		t.Fatalf("stop: %d %s", code, out)
	}
	gone(t, first.PIDs.Postgres)
	followed.WaitForOutput(`"stopped"`, readyTime)
	followed.Signal(syscall.SIGINT)
	if code := followed.Wait(stopTime); code != 0 {
		t.Fatalf("logs -f ended with %d", code)
	}
	if code, out := m.run("", "stop"); code != 0 || !strings.Contains(out, "Nothing runs") {
		t.Fatalf("a second stop: %d %s", code, out)
	}

	again := m.detached()
	var seen event
	m.json(&seen, "event", "get", kept.ID)
	if again.Key != first.Key || seen.Status != "SUCCEEDED" {
		t.Fatalf("a later start has what was there: %+v", seen)
	}
	if code, out := m.run("", "stop", "--now"); code != 0 {
		t.Fatalf("stop --now: %d %s", code, out)
	}
	foreign := filepath.Join(m.state, "letter.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := m.run("reset\n", "reset"); code != 2 || out != "" || m.missing("postgres") {
		t.Fatalf("a reset that nobody has typed at a terminal: %d %s", code, out)
	}
	var removed struct{ Removed []string }
	if m.json(&removed, "reset", "--yes"); !m.missing("postgres") || !m.missing("api_key") || m.missing("letter.txt") {
		t.Fatalf("reset removed %v", removed.Removed)
	}
}

// TestStopKillsNobodyElse leaves a process alone whose number stands where a killed up has left its own.
func TestStopKillsNobodyElse(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if err := os.MkdirAll(m.state, 0o700); err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command("cat") // any process of this user; it waits for its input
	input, err := bystander.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(bystander.Process.Pid)
	for name, text := range map[string]string{
		"lock": pid + " 1\n", "run.json": `{"pids":{"holdfast":` + pid + `}}`,
	} {
		if err := os.WriteFile(filepath.Join(m.state, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out := m.run("", "stop", "--now"); code != 0 || !strings.Contains(out, "Nothing runs") {
		t.Fatalf("stop: %d %s", code, out)
	}
	if code, _ := m.run("", "status"); code != exitStopped {
		t.Fatalf("status: %d", code)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := bystander.Wait(); err != nil {
		t.Fatalf("the other process was ended: %v", err)
	}
}

// TestDetachedThatCannotStart says why.
func TestDetachedThatCannotStart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	p := m.start("holdfast", "up", "--detach", "--database-url", "postgres://nobody@127.0.0.1:1/none")
	if code := p.Wait(readyTime); code != exitTryAgain || !strings.Contains(p.Stderr(), "it did not start: ") || !strings.Contains(p.Stderr(), "127.0.0.1:1") {
		t.Fatalf("it ended with %d: %s", code, p.Stderr())
	}
	if code, _ := m.run("", "status"); code != exitStopped {
		t.Fatal("something runs")
	}
}
