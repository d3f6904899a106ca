package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestManyEvents retries and cancels many events from the command line, with its preview, refusals and the way to go on.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	m := sharedMachine(t)
	up, _ := m.up("--workers", "0")
	var ids []string
	for i := range 3 {
		var got receipt
		m.json(&got, "add", "I like tea.", "--user-id", fmt.Sprint("u", i))
		ids = append(ids, got.EventID)
	}
	var report struct {
		Bulk, Since, Until string
		DryRun             bool `json:"dry_run"`
		Workspaces         []bulkPart
	}
	bulk := func(args ...string) {
		t.Helper()
		report.Workspaces = nil
		m.json(&report, append([]string{"event"}, args...)...)
	}

	for _, wrong := range [][]string{
		{"event", "retry"},
		{"event", "retry", ids[0], "--since", "2h"},
		{"event", "cancel", "--since", "tomorrow"},
		{"event", "retry", "--since", "2h", "--bulk", "x"},
		{"event", "cancel", "--since", "2h"},
	} {
		if code, out := m.run("", wrong...); code != 2 || out != "" {
			t.Errorf("%v ended with %d: %s", wrong, code, out)
		}
	}
	bulk("cancel", "--since", "2h", "--dry-run")
	if len(report.Workspaces) != 1 || report.Workspaces[0].Count != 3 || report.Workspaces[0].Credits != 6 || report.Workspaces[0].Done != 0 {
		t.Fatalf("the preview: %+v", report)
	}
	bulk("cancel", "--since", "2h", "--user-id", "u1", "--yes")
	if len(report.Workspaces) != 1 || report.Workspaces[0].Done != 1 {
		t.Fatalf("the cancellation: %+v", report)
	}
	bulk("cancel", "--since", "2h", "--workspace", "default", "--yes")
	if report.Workspaces[0].Done != 2 {
		t.Fatalf("the rest: %+v", report)
	}
	bulk("retry", "--since", "2h", "--yes")
	if len(report.Workspaces) != 0 {
		t.Fatalf("what was cancelled is retried by name only: %+v", report)
	}
	bulk("retry", "--since", "2h", "--code", "cancelled", "--dry-run")
	since, until := report.Since, report.Until
	m.json(&struct{}{}, "workspace", "suspend", "default")
	code, out := m.run("", "event", "retry", "--since", since, "--until", until, "--code", "CANCELLED", "--yes")
	if code != 1 || !strings.Contains(out, "WORKSPACE_SUSPENDED 3") {
		t.Fatalf("of a suspended workspace: %d %s", code, out)
	}
	m.json(&struct{}{}, "workspace", "suspend", "default", "--resume")
	bulk("retry", "--since", since, "--until", until, "--code", "CANCELLED", "--yes")
	if report.Workspaces[0].Done != 3 {
		t.Fatalf("the retry: %+v", report)
	}
	for _, id := range ids {
		var e event
		if m.json(&e, "event", "get", id); e.Status != "PENDING" || e.Generation != 2 {
			t.Fatalf("%+v", e)
		}
	}
	bulk("retry", "--since", since, "--until", until, "--code", "CANCELLED", "--bulk", report.Bulk, "--yes")
	if len(report.Workspaces) != 0 {
		t.Fatalf("a repeat finds nothing: %+v", report)
	}
	var acts []shownAct
	if m.json(&acts, "acts", "list", "--act", "event.retry"); len(acts) != 3 || !strings.Contains(string(acts[0].Details), `"bulk"`) {
		t.Fatalf("recorded are %v", acts)
	}
	stop(t, up)
}

// TestPauses pauses a workspace and a provider from the command line: nothing is claimed until they are resumed.
func TestPauses(t *testing.T) {
	t.Parallel()
	m := sharedMachine(t)
	up, _ := m.up()
	var w workspace
	if m.json(&w, "workspace", "pause", "default"); w.Status != "paused" {
		t.Fatalf("%+v", w)
	}
	m.json(&struct{}{}, "provider", "pause", "offline", "--reason", "maintenance")
	var pauses []shownPause
	if m.json(&pauses, "provider", "list"); len(pauses) != 1 || pauses[0].Reason != "maintenance" || pauses[0].StoppedAt == nil {
		t.Fatalf("%+v", pauses)
	}
	code, out := m.run("", "add", "I like tea.", "--user-id", "ada", "--wait", "1s", "--json")
	if code != exitPending {
		t.Fatalf("while both are paused: %d %s", code, out)
	}
	m.json(&w, "workspace", "pause", "default", "--resume")
	m.json(&struct{}{}, "provider", "resume", "offline")
	if m.json(&pauses, "provider", "list"); len(pauses) != 0 {
		t.Fatalf("%+v", pauses)
	}
	var e event
	if m.json(&e, "add", "I like coffee.", "--user-id", "ada", "--wait", "30s"); e.Status != "SUCCEEDED" {
		t.Fatalf("%+v", e)
	}
	stop(t, up)
}
