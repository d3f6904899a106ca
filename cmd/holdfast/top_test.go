package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// TestTopFits holds that no frame is larger than its screen, however much there is to show, and that a name can't steer
// the terminal.
func TestTopFits(t *testing.T) {
	t.Parallel()
	v := view{Waiting: 99_999, Running: 99_999, Retrying: 99_999, Due: 99_999, Expired: 99_999, Oldest: 7199, DoneP99: 999_999, Errors: map[string]int64{"provider_unavailable": 3}, Trouble: "the database is away"}
	for i := range 60 {
		v.Workers = append(v.Workers, viewWorker{Name: fmt.Sprintf("worker-%d-\x1b[2J%s", i, strings.Repeat("é", 60)), Leases: i})
		v.Failures = append(v.Failures, viewFailure{time.Now(), "evt_01234567-89ab-cdef-0123-456789abcdef", strings.Repeat("ü", 99), "PROVIDER_UNAVAILABLE"})
	}
	stopped := time.Now()
	v.Pauses = []shownPause{{Provider: "openai", StoppedAt: &stopped, Reason: "maintenance"}}
	for _, size := range [][2]int{{80, 24}, {200, 60}, {80, 12}, {10, 3}, {1, 1}} {
		lines := v.lines(size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%d lines on a screen of %v", len(lines), size)
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > size[0] || strings.ContainsAny(line, "\x1b\n") {
				t.Errorf("%q on a screen of %v", line, size)
			}
		}
	}
	frame := strings.Join(v.lines(80, 24), "\n")
	for _, want := range []string{"provider_unavailable 3", "paused   openai by an operator", "the database is away", "expired 99999", "oldest due 119 min", "p99 999999 ms", "worker-0", "PROVIDER_UNA"} {
		if !strings.Contains(frame, want) {
			t.Errorf("80x24 doesn't show %q:\n%s", want, frame)
		}
	}
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	var g grammar
	parser, err := kong.New(&g, kong.Vars{"version": "x"})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"eve": "event", "event re": "retry", "event list --status FA": "FAILED", "event list --status=PEN": "--status=PENDING",
		"completion ": "bash zsh fish", "up --worker-po": "--worker-poll", "up --det": "--detach", "event retry --since 2h --co": "--code",
		"workspace pau": "pause", "logs post": "postgres", "add --user-id ": "", "work": "workspace", "--js": "--json",
	} {
		var found []string
		for _, c := range completions(parser.Model.Node, strings.Split(line, " ")) {
			found = append(found, c.text)
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%q: %q, not %q", line, got, want)
		}
	}
}

// TestBashCompletes runs the script in bash itself.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	out := shell(t, `PATH="`+m.bin+`:$PATH"; bash -c 'source <(holdfast completion bash); COMP_WORDS=(holdfast event re); COMP_CWORD=2; _holdfast; echo "${COMPREPLY[*]}";
COMP_WORDS=(holdfast ""); COMP_CWORD=1; _holdfast; echo "${#COMPREPLY[@]}"'`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || lines[0] != "retry" || len(lines[1]) < 2 {
		t.Fatalf("bash offers %q", out)
	}
	for _, name := range []string{"zsh", "fish"} {
		if code, script := m.run("", "completion", name); code != 0 || !strings.Contains(script, "holdfast complete --") {
			t.Errorf("%s: %d %s", name, code, script)
		}
	}
}

// TestJSONEverywhere walks every command: with --json each prints one value for scripts, and none is left out.
func TestJSONEverywhere(t *testing.T) {
	t.Parallel()
	m := sharedMachine(t)
	up, _ := m.up()
	var accepted receipt
	m.json(&accepted, "add", "I like tea.", "--user-id", "ada", "--wait", "30s")
	var waits event
	m.json(&waits, "add", "I like rain.", "--user-id", "eve", "--wait", "30s")
	var key, op struct{ ID string }
	m.json(&struct{}{}, "workspace", "create", "acme")
	m.json(&key, "key", "create")
	m.json(&op, "operator", "create", "ann")
	covered := map[string][]string{
		"status": {}, "stop": {"--state-dir", m.state + "-none"}, "reset": {"--state-dir", m.state + "-none"},
		"add": {"I like snow.", "--user-id", "ada"}, "event get": {waits.ID}, "event wait": {waits.ID}, "event list": {},
		"event retry": {"--since", "2h", "--dry-run"}, "event cancel": {"--since", "2h", "--dry-run"}, "search": {"tea", "--user-id", "ada"},
		"webhook list": {}, "audit": {}, "doctor": {}, "top": {}, "migrate": {}, "encryption status": {}, "reindex": {},
		"workspace create": {"other"}, "workspace list": {}, "workspace suspend": {"acme"}, "workspace pause": {"acme"},
		"workspace limit": {"acme", "--max-pending", "5"}, "workspace policy": {"acme"}, "workspace delete": {"other", "--yes"},
		"key create": {}, "key list": {}, "key revoke": {key.ID}, "credits grant": {"--reference", "r", "5"}, "credits show": {},
		"provider list": {}, "provider pause": {"nobody"}, "provider resume": {"nobody"}, "operator create": {"bob"}, "operator list": {},
		"operator revoke": {op.ID}, "acts list": {}, "completion": {"bash"}, "version": {}, "export": {"-o", m.state + "/snapshot"},
		"nats-setup": {m.state + "/nats-setup", "--server", "localhost"},
	}
	elsewhere := map[string]string{
		"up": "TestUp", "demo": "shows, and is for a person", "mcp": "speaks JSON-RPC", "logs": "TestDetached", "import": "TestSnapshot",
		"webhook create": "TestWebhook", "webhook delete": "TestWebhook",
		"webhook replay": "TestWebhook", "webhook deliveries": "TestWebhook", "encryption rotate": "needs a second key", "encryption abandon": "needs a lost key",
	}
	var g grammar
	parser, err := kong.New(&g, kong.Vars{"version": "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		name := strings.TrimPrefix(leaf.FullPath(), parser.Model.Name+" ")
		args, told := covered[name]
		if _, other := elsewhere[name]; args == nil {
			if !told && !other {
				t.Errorf("%s has no case here", name)
			}
			continue
		}
		code, out := m.run("", append(append(strings.Fields(name), args...), "--json")...)
		var value any
		if err := json.Unmarshal([]byte(out), &value); err != nil {
			t.Errorf("%s --json ended with %d and wrote %q: %v", name, code, out, err)
		}
	}
	stop(t, up)
}
