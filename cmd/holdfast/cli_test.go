package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func dropSchema(t *testing.T, url string) {
	exec1(t, url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
}

func spoilBalance(t *testing.T, url string) {
	exec1(t, url, "UPDATE credit_accounts SET available = available + 1")
}

// TestCommands uses one running server for everything that a person or a script types.
func TestCommands(t *testing.T) {
	t.Parallel()
	m := sharedMachine(t)
	up, r := m.up()
	t.Cleanup(func() { stop(t, up) })

	t.Run("AddReadsTextFileAndStandardInput", func(t *testing.T) {
		t.Parallel()
		conversation := `[{"role":"user","content":"I work as a baker."},{"role":"assistant","content":"Nice."}]`
		code, out := m.run(conversation, "add", "-", "--user-id", "stdin", "--wait", "30s")
		if code != 0 || !strings.Contains(out, "SUCCEEDED") || !strings.Contains(out, "baker") {
			t.Fatalf("from standard input: %d %s", code, out)
		}
		code, out = m.run("", "add", "--file", "../../examples/conversation.json", "--user-id", "file", "--wait", "30s")
		if code != 0 || !strings.Contains(out, "Lisbon") {
			t.Fatalf("from a file: %d %s", code, out)
		}
	})

	t.Run("AddPrintsTheKeyThatItMade", func(t *testing.T) {
		t.Parallel()
		p := m.start("holdfast", "add", "I like tea.", "--user-id", "key", "--json")
		if code := p.Wait(stopTime); code != 0 {
			t.Fatalf("add ended with %d", code)
		}
		var accepted receipt
		if err := json.Unmarshal([]byte(p.Stdout()), &accepted); err != nil {
			t.Fatal(err)
		}
		_, key, found := strings.Cut(strings.TrimSpace(p.Stderr()), "idempotency key: ")
		if !found {
			t.Fatalf("no key on standard error: %q", p.Stderr())
		}
		var again receipt
		m.json(&again, "add", "I like tea.", "--user-id", "key", "--idempotency-key", key)
		if again.EventID != accepted.EventID {
			t.Fatalf("the same key answers %s, not %s", again.EventID, accepted.EventID)
		}
		if code, out := m.run("", "add", "I like coffee.", "--user-id", "key", "--idempotency-key", key); code != exitRefused {
			t.Fatalf("another text under the key ended with %d: %s", code, out)
		}
		var page struct{ Results []event }
		m.json(&page, "event", "list", "--idempotency-key", key)
		if len(page.Results) != 1 || page.Results[0].ID != accepted.EventID {
			t.Fatalf("the event of the key: %+v", page)
		}
	})

	t.Run("VerbatimAddIsFoundBySearch", func(t *testing.T) {
		t.Parallel()
		if code, out := m.run("", "add", "The door code is 4711.", "--user-id", "verbatim", "--no-infer"); code != 0 || !strings.Contains(out, "ADD") {
			t.Fatalf("add --no-infer: %d %s", code, out)
		}
		if code, out := m.run("", "search", "door code", "--user-id", "verbatim"); code != 0 || !strings.Contains(out, "The door code is 4711.") {
			t.Fatalf("search: %d %s", code, out)
		}
		if code, out := m.run("", "search", "door code", "--user-id", "nobody"); code != 0 || !strings.Contains(out, "Nothing found") {
			t.Fatalf("search of another user: %d %s", code, out)
		}
	})

	t.Run("EndedEventIsNeitherCancelledNorRetried", func(t *testing.T) {
		t.Parallel()
		var e event
		m.json(&e, "add", "I like rain.", "--user-id", "ended", "--wait", "30s")
		if code, _ := m.run("", "event", "cancel", e.ID); code != exitRefused {
			t.Fatalf("cancel ended with %d", code)
		}
		if code, _ := m.run("", "event", "retry", e.ID); code != exitRefused {
			t.Fatalf("retry ended with %d", code)
		}
	})

	t.Run("GrantOfOneReferenceHappensOnce", func(t *testing.T) {
		t.Parallel()
		var before, first, second struct {
			Granted   bool
			Available int64
		}
		m.json(&workspace{}, "workspace", "create", "broke")
		m.json(&before, "credits", "show", "--workspace", "broke")
		m.json(&first, "credits", "grant", "--workspace", "broke", "--reference", "invoice-7", "50")
		m.json(&second, "credits", "grant", "--workspace", "broke", "--reference", "invoice-7", "50")
		if before.Available != 0 || !first.Granted || second.Granted || second.Available != 50 {
			t.Fatalf("0, then 50 granted, then nothing: %+v %+v %+v", before, first, second)
		}
		if code, said := m.fails("credits", "grant", "--workspace", "broke", "--reference", "invoice-7", "60"); code != 1 ||
			!strings.Contains(said, `"invoice-7" was granted before with another amount than 60`) {
			t.Fatalf("another amount under the reference ended with %d: %s", code, said)
		}
	})

	t.Run("PolicyIsReplacedAsAWhole", func(t *testing.T) {
		t.Parallel()
		m.json(&workspace{}, "workspace", "create", "policy")
		type policy struct {
			Instructions string
			Categories   []struct{ Name, Description string }
		}
		set := func(text string) string {
			file := filepath.Join(t.TempDir(), "policy.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}
		var first, second, shown policy
		m.json(&first, "workspace", "policy", "policy", "--set", set(`{"instructions":"In Latin.","categories":[{"name":"food"}]}`))
		m.json(&second, "workspace", "policy", "policy", "--set", set(`{"categories":[{"name":"work","description":"Jobs."}]}`))
		m.json(&shown, "workspace", "policy", "policy")
		if first.Instructions != "In Latin." || second.Instructions != "" || len(shown.Categories) != 1 || shown.Categories[0].Description != "Jobs." {
			t.Fatalf("%+v, then %+v, shown %+v", first, second, shown)
		}
		for _, c := range []struct {
			text, said string
		}{
			{`{"categories":[{"name":""}]}`, "holdfast: categories/0/name: 1 to 100 visible characters"},
			{`{"instruction":"x"}`, "holdfast: the policy is no JSON object of instructions and categories"},
			{`{} {}`, "holdfast: the policy is more than one JSON object"},
		} {
			if code, said := m.fails("workspace", "policy", "policy", "--set", set(c.text)); code != 2 || strings.TrimSpace(said) != c.said {
				t.Errorf("%s ended with %d: %s", c.text, code, said)
			}
		}
	})

	t.Run("WhatIsNoWorkspaceIsSaidOnce", func(t *testing.T) {
		t.Parallel()
		m.json(&workspace{}, "workspace", "create", "twice")
		for _, c := range []struct {
			args []string
			code int
			said string
		}{
			{[]string{"workspace", "create", "twice"}, 1, `holdfast: a workspace named "twice" exists`},
			{[]string{"workspace", "create", ""}, 2, "holdfast: name: 1 to 100 visible characters"},
			{[]string{"workspace", "suspend", "nobody"}, 1, `holdfast: there is no workspace "nobody"`},
			{[]string{"key", "list", "--workspace", "nobody"}, 1, `holdfast: there is no workspace "nobody"`},
			{[]string{"credits", "grant", "--reference", "r", "0"}, 2, "holdfast: amount: 1 to 1000000000000"},
		} {
			if code, said := m.fails(c.args...); code != c.code || strings.TrimSpace(said) != c.said {
				t.Errorf("%q ended with %d: %s", c.args, code, said)
			}
		}
	})

	t.Run("KeyIsFoundWithoutItsWorkspace", func(t *testing.T) {
		t.Parallel()
		m.json(&workspace{}, "workspace", "create", "elsewhere")
		var key struct{ ID, Key string }
		m.json(&key, "key", "create", "--workspace", "elsewhere")
		if code, said := m.fails("key", "revoke", "--workspace", "default", key.ID); code != 1 || !strings.Contains(said, `belongs to workspace "elsewhere"`) {
			t.Fatalf("a key of another workspace: %d %s", code, said)
		}
		var revoked struct{ State, Workspace string }
		m.json(&revoked, "key", "revoke", key.Key)
		if revoked.State != "revoked" || !strings.HasPrefix(revoked.Workspace, "ws_") {
			t.Fatalf("got %+v", revoked)
		}
		if code, said := m.fails("key", "revoke", "nosuchkey123"); code != 1 || !strings.Contains(said, "no key of this id") {
			t.Fatalf("an unknown key: %d %s", code, said)
		}
	})

	t.Run("RevokedKeyIsRefused", func(t *testing.T) {
		t.Parallel()
		var key struct{ ID, Key string }
		m.json(&key, "key", "create", "--name", "short-lived")
		if code, out := m.run("", "event", "list", "--api", r.API, "--api-key", key.Key); code != 0 {
			t.Fatalf("a new key: %d %s", code, out)
		}
		m.json(&struct{}{}, "key", "revoke", key.ID)
		if code, _ := m.run("", "event", "list", "--api", r.API, "--api-key", key.Key); code != exitRefused {
			t.Fatalf("a revoked key ended with %d", code)
		}
	})

	t.Run("SuspendedWorkspaceIsListedAsSuch", func(t *testing.T) {
		t.Parallel()
		m.json(&workspace{}, "workspace", "create", "quiet")
		m.json(&workspace{}, "workspace", "suspend", "quiet")
		if code, out := m.run("", "workspace", "list"); code != 0 || !strings.Contains(out, "suspended") {
			t.Fatalf("workspace list: %d %s", code, out)
		}
		var resumed workspace
		m.json(&resumed, "workspace", "suspend", "quiet", "--resume")
		if resumed.Status != "active" {
			t.Fatalf("resumed: %+v", resumed)
		}
	})

	t.Run("DoctorNamesTheDanger", func(t *testing.T) {
		t.Parallel()
		// The tests' server runs with fsync off.
		code, out := m.run("", "doctor")
		if code != 1 || !strings.Contains(out, "postgres fsync") || !strings.Contains(out, "a power cut destroys the database") {
			t.Fatalf("doctor: %d %s", code, out)
		}
		for _, want := range []string{"migrations", "version 1", "nats consumer interactive", "clock", "extractor"} {
			if !strings.Contains(out, want) {
				t.Errorf("doctor doesn't speak of %q", want)
			}
		}
	})

	t.Run("KeyOfRunJSONGoesToItsOwnAPIOnly", func(t *testing.T) {
		t.Parallel()
		if code, out := m.run("", "event", "list", "--api", "http://127.0.0.1:1"); code != 2 {
			t.Fatalf("without a key for another API it ended with %d: %s", code, out)
		}
	})

	t.Run("NobodyThereIsTryAgain", func(t *testing.T) {
		t.Parallel()
		if code, _ := m.run("", "event", "list", "--api", "http://127.0.0.1:1", "--api-key", r.Key); code != exitTryAgain {
			t.Fatalf("an API that isn't there ended with %d", code)
		}
	})
}

// fails runs a command and returns its exit code and standard error.
func (m *machine) fails(args ...string) (int, string) {
	m.t.Helper()
	p := m.start("holdfast", args...)
	return p.Wait(stopTime), p.Stderr()
}

// TestNobodyThere holds what is said when a server doesn't answer.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	dead := []string{"--database-url", "postgres://someone:open-sesame@127.0.0.1:1/holdfast"}
	for _, command := range [][]string{
		{"workspace", "list"}, {"workspace", "create", "x"}, {"key", "list"}, {"credits", "show"}, {"migrate"}, {"up"},
	} {
		code, said := m.fails(append(command, dead...)...)
		if code != exitTryAgain || !strings.Contains(said, "127.0.0.1:1") || strings.Contains(said, "open-sesame") || strings.Contains(said, "someone") {
			t.Errorf("%q ended with %d: %s", command, code, said)
		}
	}
	nobody := []string{"--api", "http://127.0.0.1:1", "--api-key", "k"}
	for _, command := range [][]string{{"search", "tea", "--user-id", "u"}, {"event", "wait", "x"}, {"event", "list", "--idempotency-key", "k"}} {
		if code, said := m.fails(append(command, nobody...)...); code != exitTryAgain || strings.Contains(said, "same key") {
			t.Errorf("%q ended with %d: %s", command, code, said)
		}
	}
	if code, said := m.fails(append([]string{"add", "tea", "--user-id", "u"}, nobody...)...); code != exitTryAgain || !strings.Contains(said, "same key") {
		t.Errorf("add ended with %d: %s", code, said)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if code, out := m.run("", "--version"); code != 0 || strings.TrimSpace(out) == "" {
		t.Fatalf("--version ended with %d: %s", code, out)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for name, args := range map[string][]string{
		"NoCommand": {}, "UnknownCommand": {"fly"}, "NoAPI": {"event", "list"}, "ShortLease": {"up", "--lease-ttl", "10ms"},
		"UnknownPermission": {"key", "create", "--permission", "everything"}, "NoPermission": {"key", "create", "--permission", ""},
		"HalfAPermissionList": {"key", "create", "--permission", "memory:read,"}, "KeyThatEndsAtOnce": {"key", "create", "--expires", "0s"},
		"KeyThatHasEnded": {"key", "create", "--expires=-1h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if code, out := m.run("", args...); code != 2 {
				t.Fatalf("it ended with %d: %s", code, out)
			}
		})
	}
}
