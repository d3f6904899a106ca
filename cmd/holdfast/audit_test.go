package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestAudit looks at a running service, and at one whose database somebody has changed.
func TestAudit(t *testing.T) {
	t.Parallel()
	m := sharedMachine(t)
	up, _ := m.up()
	t.Cleanup(func() { stop(t, up) })
	var added struct {
		ID string `json:"id"`
	}
	code, out := m.run("", "add", "I work as a baker.", "--user-id", "ana", "--wait", "30s", "--json")
	if code != 0 || json.Unmarshal([]byte(out), &added) != nil {
		t.Fatalf("add ended with %d: %s", code, out)
	}
	var report auditReport
	m.json(&report, "audit")
	if !report.Clean || !report.Complete || len(report.Findings) != 0 || len(report.Checks) < 20 || report.At.IsZero() {
		t.Fatalf("%+v", report)
	}
	m.json(&report, "audit", "--workspace", "default", "--check", "keys", "--check", "runs", "--events", "1")
	if !report.Clean || len(report.Checks) != 2 {
		t.Fatalf("%+v", report)
	}
	if code, out = m.run("", "audit", "--check", "luck"); code != 2 {
		t.Fatalf("an unknown check ended with %d: %s", code, out)
	}
	if code, out = m.run("", "audit", "--workspace", "nobody"); code != 1 || out != "" {
		t.Fatalf("an unknown workspace ended with %d: %s", code, out)
	}

	exec1(t, m.database, "DELETE FROM task_results")
	if code, out = m.run("", "audit", "--json"); code != 1 || json.Unmarshal([]byte(out), &report) != nil {
		t.Fatalf("audit ended with %d: %s", code, out)
	}
	if report.Clean || !report.Complete || !slices.ContainsFunc(report.Findings, func(f auditFinding) bool {
		return f.Check == "records" && f.Count == 1 && slices.Contains(f.Events, added.ID) && len(f.Memories) == 1 && len(f.Workspaces) == 1
	}) {
		t.Fatalf("%+v, event %s", report.Findings, added.ID)
	}
	if code, out = m.run("", "audit"); code != 1 || !strings.Contains(out, added.ID) || !strings.Contains(out, "FOUND") {
		t.Fatalf("audit ended with %d: %s", code, out)
	}
	if code, _ = m.run("", "audit", "--check", "keys"); code != 0 {
		t.Fatalf("a check that finds nothing ended with %d", code)
	}
}
