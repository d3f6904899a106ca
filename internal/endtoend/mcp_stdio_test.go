package endtoend

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// relay starts `holdfast mcp` as a desktop agent does, for an API at an address.
func (s *system) relay(api, key string, args ...string) (agent, *exec.Cmd) {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, "holdfast"), append([]string{"mcp"}, args...)...)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "HOLDFAST_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "HOLDFAST_API="+api, "HOLDFAST_API_KEY="+key)
	cmd.Stderr = os.Stderr
	session, err := sdk.NewClient(&sdk.Implementation{Name: "desktop", Version: "1"}, nil).Connect(s.t.Context(),
		&sdk.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return agent{s, session}, cmd
}

// TestStdioTools drives the built command over its standard input and output.
func TestStdioTools(t *testing.T) {
	t.Parallel()
	s := newToolSystem(t, testkit.NewDatabase(t))
	for name, check := range map[string]func(*system){
		"AddsSearchesAndDeletesInItsScope": stdioRoundTrip,
		"ListsWhatTheKeyAllows":            stdioPermissions,
		"EndsWhenItsInputCloses":           stdioEnd,
		"SaysWhyItCannotStart":             stdioStart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(s.of(t))
		})
	}
}

func stdioRoundTrip(s *system) {
	nora, _ := s.relay(s.api, s.key, "--user-id", "nora", "--agent-id", "desk")
	if said := nora.session.InitializeResult().Instructions; !strings.Contains(said, "not instructions") {
		s.t.Fatalf("instructions %q", said)
	}
	added := nora.call("", "add_memory", object{"text": "FACT: Nora bakes bread", "wait": 25})
	if added.Status != "SUCCEEDED" || added.IdempotencyKey == "" {
		s.t.Fatalf("added %+v", added)
	}
	if found := nora.call("", "search_memory", object{"query": "bread"}); found.texts() != "Nora bakes bread" {
		s.t.Fatalf("found %+v", found)
	}
	nora.call("INVALID_REQUEST", "search_memory", object{"query": "bread", "user_id": "oscar"})
	nora.call("INVALID_REQUEST", "add_memory", object{"text": "FACT: x", "user_id": "oscar"})
	nora.call("MEMORY_NOT_FOUND", "delete_memory", object{"id": s.store("oscar", "", "oscar's", nil).Results[0].ID})
	nora.call("", "delete_memory", object{"id": added.Results[0].ID})
	got := one[string](s, `SELECT user_id || '/' || agent_id FROM tasks WHERE id = $1`, strings.TrimPrefix(added.EventID, "evt_"))
	if got != "nora/desk" {
		s.t.Fatalf("written for %s", got)
	}
}

func stdioPermissions(s *system) {
	reader, _ := s.relay(s.api, s.keyWith(access.MemoryRead), "--user-id", "pia")
	listed, err := reader.session.ListTools(s.t.Context(), nil)
	if err != nil || len(listed.Tools) != 2 {
		s.t.Fatalf("listed %+v %v", listed, err)
	}
}

func stdioEnd(s *system) {
	quin, cmd := s.relay(s.api, s.key, "--user-id", "quin")
	quin.call("", "list_memories", object{})
	began := time.Now()
	if err := quin.session.Close(); err != nil { // closes the input and waits for the exit code
		s.t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 || time.Since(began) > patience/2 {
		s.t.Fatalf("ended with %d after %s", code, time.Since(began))
	}
}

func stdioStart(s *system) {
	run := func(want int, words string, env []string, args ...string) {
		s.t.Helper()
		p := testkit.StartProcess(s.t, testkit.ProcessConfig{
			Path: filepath.Join(s.bin, "holdfast"), Args: append([]string{"mcp"}, args...), Env: env, Stdin: strings.NewReader(""),
		})
		if code := p.Wait(patience); code != want || !strings.Contains(p.Stderr(), words) || p.Stdout() != "" {
			s.t.Fatalf("mcp %v ended with %d: %s\n%s", args, code, p.Stderr(), p.Stdout())
		}
	}
	good := []string{"HOLDFAST_API=" + s.api, "HOLDFAST_API_KEY=" + s.key}
	run(2, "whose memory?", good)
	run(3, "INVALID_API_KEY (401)", []string{"HOLDFAST_API=" + s.api, "HOLDFAST_API_KEY=wrong"}, "--user-id", "u")
	run(4, "does not serve MCP", []string{"HOLDFAST_API=http://127.0.0.1:1", "HOLDFAST_API_KEY=" + s.key}, "--user-id", "u")
	run(0, "for "+s.api, good, "--user-id", "u")
}

// TestStdioLostAnswer cuts the connection to the API while a write waits for its outcome: the command sends it again
// under the key that it made, and goes on over a new connection.
func TestStdioLostAnswer(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	proxy := testkit.NewTCPProxy(t, s.api)
	rosa, _ := s.relay(proxy.URL(), s.key, "--user-id", "rosa")
	type outcome struct {
		said toolAnswer
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		said, err := rosa.try("add_memory", object{"text": "FACT: Rosa sails", "wait": 25})
		done <- outcome{said, err}
	}()
	s.until("the write is accepted", func() bool { return s.tasksOf("rosa") == 1 })
	proxy.Cut()
	s.startWorker() // only now can there be an outcome
	got := <-done
	if got.err != nil || got.said.Status != "SUCCEEDED" || !got.said.Replayed || got.said.IdempotencyKey == "" {
		t.Fatalf("answer %+v", got)
	}
	proxy.Blackhole(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := rosa.session.CallTool(ctx, &sdk.CallToolParams{Name: "list_memories", Arguments: object{}}); err == nil {
		t.Fatal("an answer out of a black hole")
	}
	proxy.Cut()
	proxy.Blackhole(false)
	if left := rosa.call("", "list_memories", object{}); left.texts() != "Rosa sails" {
		t.Fatalf("left %+v", left)
	}
	if n := s.tasksOf("rosa"); n != 1 {
		t.Fatalf("%d writes", n)
	}
	s.sound(2)
}
