package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestDemo runs it as a visitor does, with a conversation on standard input. It checks its own claims.
func TestDemo(t *testing.T) {
	t.Parallel()
	bin := testkit.Binaries(t)
	dir, err := os.MkdirTemp("", "holdfast-test-demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when we are root
		t.Fatal(err)
	}
	conversation := `[{"role":"user","content":"Ich heiße Jürgen und ich wohne in Köln. Wie geht es dir?"},` +
		`{"role":"assistant","content":"Gut! Schön, von dir zu hören, Jürgen aus der Domstadt."}]`
	p := testkit.StartProcess(t, testkit.ProcessConfig{
		Path: filepath.Join(bin, "holdfast"), Args: []string{"demo"}, Env: []string{"TMPDIR=" + dir},
		Stdin: strings.NewReader(conversation),
	})
	if code := p.Wait(3 * time.Minute); code != 0 {
		t.Fatalf("the demo ended with %d:\n%s\n%s", code, p.Stdout(), p.Stderr())
	}
	if !strings.Contains(p.Stdout(), "standard input (2 messages)") || strings.Count(p.Stdout(), "PROVED") != 9 {
		t.Fatalf("nine proofs over the conversation that was sent:\n%s", p.Stdout())
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Fatalf("the demo leaves nothing behind, not %v, %v", left, err)
	}
}
