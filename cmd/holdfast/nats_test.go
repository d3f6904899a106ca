package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNATSSetup makes the files of one server and shows no key.
func TestNATSSetup(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	dir := filepath.Join(t.TempDir(), "made")
	code, out := m.run("", "nats-setup", dir, "--server", "nats.example,10.0.0.1")
	if code != 0 || !strings.Contains(out, "copy "+filepath.Join(dir, "servers", "nats.example")+" to /etc/holdfast-nats") {
		t.Fatalf("it ended with %d: %s", code, out)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "users", "worker.seed"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, strings.TrimSpace(string(seed))) || strings.Contains(out, "PRIVATE") {
		t.Errorf("a key shows: %s", out)
	}
	config, err := os.ReadFile(filepath.Join(dir, "servers", "nats.example", "nats.conf"))
	if err != nil || !strings.Contains(string(config), `"/etc/holdfast-nats/nats.example.key"`) {
		t.Errorf("the configuration is %s, %v", config, err)
	}
	var made struct{ Users string }
	m.json(&made, "nats-setup", dir, "--server", "nats.example", "--renew", "worker")
	if again, err := os.ReadFile(filepath.Join(made.Users, "worker.seed")); err != nil || string(again) == string(seed) {
		t.Errorf("the seed is the old one, %v", err)
	}
	for _, wrong := range [][]string{{"--server", "a", "--server", "b"}, {"--server", "a", "--renew", "root"}, {"--server", "a", "--valid", "1s"}, {}} {
		if code, out := m.run("", append([]string{"nats-setup", dir}, wrong...)...); code == 0 {
			t.Errorf("%v was taken: %s", wrong, out)
		}
	}
}
