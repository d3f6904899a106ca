package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

const demoTime = 3 * time.Minute

// demoMachine has a directory of its own for what demos leave.
func demoMachine(t *testing.T) (run func(stdin string, command ...string) *testkit.Process, leftovers func() []os.DirEntry) {
	t.Helper()
	bin := testkit.Binaries(t)
	dir, err := os.MkdirTemp("", "holdfast-test-demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when we are root
		t.Fatal(err)
	}
	run = func(stdin string, command ...string) *testkit.Process {
		t.Helper()
		if command[0] == "holdfast" {
			command[0] = filepath.Join(bin, "holdfast")
		}
		return testkit.StartProcess(t, testkit.ProcessConfig{
			Path: command[0], Args: command[1:], Env: []string{"TMPDIR=" + dir, "HOLDFAST=" + filepath.Join(bin, "holdfast")},
			Stdin: strings.NewReader(stdin),
		})
	}
	return run, func() []os.DirEntry {
		t.Helper()
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
}

// TestDemo runs it as a visitor does, with a conversation on standard input. It checks its own claims.
func TestDemo(t *testing.T) {
	t.Parallel()
	run, leftovers := demoMachine(t)
	conversation := `[{"role":"user","content":"Ich heiße Jürgen und ich wohne in \"Köln\". Wie geht es dir?"},` +
		`{"role":"assistant","content":"Gut! Schön, von dir zu hören,\nJürgen aus der Domstadt."}]`
	p := run(conversation, "holdfast", "demo")
	if code := p.Wait(demoTime); code != 0 {
		t.Fatalf("the demo ended with %d:\n%s\n%s", code, p.Stdout(), p.Stderr())
	}
	if !strings.Contains(p.Stdout(), "standard input (2 messages)") || strings.Count(p.Stdout(), "PROVED") != 9 ||
		!strings.Contains(p.Stdout(), "2 raw messages and the two marks are gone") {
		t.Fatalf("nine proofs over the conversation that was sent:\n%s", p.Stdout())
	}
	if left := leftovers(); len(left) != 0 {
		t.Fatalf("the demo leaves nothing behind, not %v", left)
	}
}

// TestDemoOfLittle has a conversation that leaves nothing to remember and nothing to search for.
func TestDemoOfLittle(t *testing.T) {
	t.Parallel()
	run, leftovers := demoMachine(t)
	p := run(`[{"role":"user","content":"Hello!"},{"role":"assistant","content":null,"tool_calls":[]}]`, "holdfast", "demo", "--json")
	if code := p.Wait(demoTime); code != 0 {
		t.Fatalf("the demo ended with %d:\n%s\n%s", code, p.Stdout(), p.Stderr())
	}
	var report demoReport
	if err := json.Unmarshal([]byte(p.Stdout()), &report); err != nil {
		t.Fatalf("standard output is one JSON value: %v: %s", err, p.Stdout())
	}
	if !report.OK || len(report.Steps) != 9 || report.Conversation != (demoConversation{"standard input", 1, 1}) {
		t.Fatalf("got %+v", report)
	}
	for i, step := range report.Steps {
		if step.Step != i+1 || !step.OK || step.Title == "" || step.Proves == "" || len(step.Seen) == 0 {
			t.Errorf("step %d: %+v", i+1, step)
		}
	}
	if report.Steps[1].Proves == "" || !strings.Contains(report.Steps[1].Proves, "NO_MEMORY") {
		t.Errorf("step 2 proves nothing about memories: %q", report.Steps[1].Proves)
	}
	gone := report.Steps[7]
	if !strings.HasPrefix(gone.Proves, "the two marks are gone") || !strings.Contains(strings.Join(gone.Seen, " "), "Not searched for: 1 message of less than 24") {
		t.Errorf("step 8 proves what it looked at: %+v", gone)
	}
	if left := leftovers(); len(left) != 0 {
		t.Fatalf("the demo leaves nothing behind, not %v", left)
	}
}

func TestDemoBrokenOff(t *testing.T) {
	t.Parallel()
	const secret = `[{"role":"user","content":"I keep the spare key under the third flower pot."}]`

	t.Run("ByASignalLeavesNothing", func(t *testing.T) {
		t.Parallel()
		for _, after := range []string{"Starting a private", "2. A worker starts"} {
			run, leftovers := demoMachine(t)
			p := run(secret, "holdfast", "demo")
			p.WaitForOutput(after, readyTime)
			p.Signal(syscall.SIGINT)
			if code := p.Wait(stopTime); code != exitInterrupted || !strings.Contains(p.Stderr(), "interrupted") || strings.Contains(p.Stdout(), "NOT TRUE") {
				t.Fatalf("it ended with %d: %s\n%s", code, p.Stderr(), p.Stdout())
			}
			if left := leftovers(); len(left) != 0 {
				t.Fatalf("it left %v", left)
			}
		}
	})

	t.Run("ByAReaderWhoWentAwayLeavesNothing", func(t *testing.T) {
		t.Parallel()
		run, leftovers := demoMachine(t)
		p := run("", "sh", "-c", `"$HOLDFAST" demo | head -n 1`) // the shell waits for both
		if code := p.Wait(demoTime); code != 0 || strings.Count(p.Stdout(), "\n") != 1 {
			t.Fatalf("it ended with %d: %s", code, p.Stdout())
		}
		if left := leftovers(); len(left) != 0 {
			t.Fatalf("it left %v", left)
		}
	})

	t.Run("BeforeItStartsWhenTheConversationIsTooLarge", func(t *testing.T) {
		t.Parallel()
		run, leftovers := demoMachine(t)
		p := run(`[{"role":"user","content":"`+strings.Repeat("x", 250_000)+`"}]`, "holdfast", "demo")
		if code := p.Wait(stopTime); code != app.ExitUsage || !strings.Contains(p.Stderr(), "250000") || p.Stdout() != "" {
			t.Fatalf("it ended with %d: %s %s", code, p.Stderr(), p.Stdout())
		}
		if left := leftovers(); len(left) != 0 {
			t.Fatalf("it left %v", left)
		}
	})
}
