package main

import (
	"strings"
	"testing"
	"time"
)

// TestWebhookCommands manages a webhook of a running server. Nothing is ever sent: its name leads nowhere.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	m := sharedMachine(t)
	up, _ := m.up()
	t.Cleanup(func() { stop(t, up) })

	var made webhook
	m.json(&made, "webhook", "create", "https://hooks.example.invalid/in", "--name", "crm", "--kinds", "memory_infer")
	if !strings.HasPrefix(made.ID, "whk_") || !strings.HasPrefix(made.Secret, "whsec_") || len(made.EventTypes) != 2 || !made.Active {
		t.Fatalf("%+v", made)
	}
	if code, out := m.run("", "webhook", "list"); code != 0 || !strings.Contains(out, made.ID) || strings.Contains(out, "whsec_") {
		t.Fatalf("%d %s", code, out)
	}
	if code, out := m.run("", "add", "I like tea.", "--user-id", "u", "--wait", "30s"); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	var told struct{ Replayed int }
	for deadline := time.Now().Add(stopTime); told.Replayed == 0; { // each call is a program's start: pause enough
		m.json(&told, "webhook", "replay", made.ID, "--since", "2020-01-01T00:00:00Z")
		if time.Now().After(deadline) {
			t.Fatal("no delivery is made")
		}
	}
	if code, out := m.run("", "webhook", "deliveries", made.ID); code != 0 || !strings.Contains(out, "event.succeeded") {
		t.Fatalf("%d %s", code, out)
	}
	if code, out := m.fails("webhook", "replay", made.ID); code != 2 || !strings.Contains(out, "--since") {
		t.Fatalf("%d %s", code, out)
	}
	if code, out := m.fails("webhook", "create", "https://127.0.0.1/"); code != 3 || !strings.Contains(out, "WEBHOOK_URL_REFUSED") {
		t.Fatalf("%d %s", code, out)
	}
	if code, out := m.run("", "webhook", "delete", made.ID); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	if code, out := m.fails("webhook", "deliveries", made.ID); code != 3 || !strings.Contains(out, "WEBHOOK_NOT_FOUND") {
		t.Fatalf("%d %s", code, out)
	}
}
