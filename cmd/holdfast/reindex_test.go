package main

import (
	"strings"
	"testing"
)

// TestReindex shows a rebuild beside a running service.
func TestReindex(t *testing.T) {
	t.Parallel()
	m := sharedMachine(t)
	up, _ := m.up()
	t.Cleanup(func() { stop(t, up) })
	if code, out := m.run("", "add", "I work as a baker.", "--user-id", "ana", "--wait", "30s"); code != 0 {
		t.Fatalf("add ended with %d: %s", code, out)
	}
	exec1(t, m.database, "TRUNCATE memory_terms, memory_vectors")
	if code, out := m.run("", "search", "baker", "--user-id", "ana"); code != 0 || strings.Contains(out, "baker") {
		t.Fatalf("found without projections: %d %s", code, out)
	}
	var done reindexProgress
	m.json(&done, "reindex")
	if !done.Finished || done.Done != 1 || done.Total != 1 || done.Model == "" {
		t.Fatalf("%+v", done)
	}
	if code, out := m.run("", "search", "baker", "--user-id", "ana"); code != 0 || !strings.Contains(out, "baker") {
		t.Fatalf("not found after the rebuild: %d %s", code, out)
	}
}
