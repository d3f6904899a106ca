package holdfast_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

const (
	readyTime = 2 * time.Minute // initdb, the migrations and a start; some seconds where nothing else runs
	stopTime  = time.Minute     // up gives its own parts 30 s
)

// The systems of all tests: one does its work, one accepts only, one gets killed.
var working, idle, mortal *system

// TestMain starts the real thing, tells the examples where it is, and leaves nothing running.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-go-client-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when we are root
		return failed(err)
	}
	binary, err := build(dir)
	if err != nil {
		return failed(err)
	}
	working = &system{binary: binary, state: filepath.Join(dir, "working")}
	idle = &system{binary: binary, state: filepath.Join(dir, "idle"), args: []string{"--workers", "0"}}
	mortal = &system{binary: binary, state: filepath.Join(dir, "mortal")}
	for _, s := range []*system{working, idle, mortal} {
		if err := s.start(); err != nil {
			return failed(err)
		}
		defer s.stop()
	}
	for _, s := range []*system{working, idle, mortal} {
		if err := s.ready(); err != nil {
			return failed(err)
		}
	}
	for name, value := range map[string]string{"HOLDFAST_URL": working.API, "HOLDFAST_API_KEY": working.Key} {
		if err := os.Setenv(name, value); err != nil {
			return failed(err)
		}
	}
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// build makes cmd/holdfast of the module above, unless HOLDFAST_BINARY names one.
func build(dir string) (string, error) {
	if binary := os.Getenv("HOLDFAST_BINARY"); binary != "" {
		return binary, nil
	}
	binary := filepath.Join(dir, "holdfast")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/holdfast")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/holdfast: %w\n%s", err, out)
	}
	return binary, nil
}

// system is one `holdfast up` with a PostgreSQL of its own.
type system struct {
	binary, state string
	args          []string

	API string `json:"api"`
	Key string `json:"key"`

	cmd    *exec.Cmd
	log    bytes.Buffer
	line   chan string
	exited chan struct{}
}

func (s *system) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HOLDFAST_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "HOLDFAST_STATE_DIR="+s.state, "HOLDFAST_LISTEN="+s.listen(), "HOLDFAST_ADMIN_LISTEN=127.0.0.1:0",
		"HOLDFAST_LEASE_TTL=3s", "HOLDFAST_WORKER_POLL=1s") // what a killed worker had in hand goes on soon
	return cmd
}

// listen is a free port at the first start, and the same one afterwards.
func (s *system) listen() string {
	if s.API == "" {
		return "127.0.0.1:0"
	}
	return strings.TrimPrefix(s.API, "http://")
}

func (s *system) start() error {
	s.cmd = s.command(append([]string{"up", "--json"}, s.args...)...)
	s.log.Reset()
	s.cmd.Stderr = &s.log
	s.cmd.SysProcAttr = childAttr()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started := make(chan error)
	s.line, s.exited = make(chan string, 1), make(chan struct{})
	go func() {
		defer close(s.exited)
		runtime.LockOSThread() // the child dies with the thread that started it: this one, which waits for it
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(out).ReadString('\n') // up writes one line; without it, its log says why
		s.line <- line
		_ = s.cmd.Wait() // the end of a test's server is no result
	}()
	return <-started
}

// ready waits for the line that up writes once it serves.
func (s *system) ready() error {
	select {
	case line := <-s.line:
		if err := json.Unmarshal([]byte(line), s); err != nil {
			<-s.exited
			return fmt.Errorf("up did not start: %w\n%s", err, s.log.String())
		}
		return nil
	case <-time.After(readyTime):
		return errors.New("up is not ready in time")
	}
}

// kill ends it as a crash does.
func (s *system) kill() {
	_ = s.cmd.Process.Kill() // one that has ended is dead enough
	<-s.exited
}

func (s *system) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // one that has ended needs none
	select {
	case <-s.exited:
	case <-time.After(stopTime):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

var workspaces struct {
	sync.Mutex
	n int
}

// client returns a client for a workspace of its own, with so many credits and an API key that may do everything.
func (s *system) client(t *testing.T, credits int, opts ...holdfast.Option) *holdfast.Client {
	t.Helper()
	client, _ := s.workspace(t, credits, opts...)
	return client
}

func (s *system) workspace(t *testing.T, credits int, opts ...holdfast.Option) (*holdfast.Client, string) {
	t.Helper()
	workspaces.Lock()
	workspaces.n++
	name := fmt.Sprintf("team-%d", workspaces.n)
	workspaces.Unlock()
	s.run(t, nil, "workspace", "create", name)
	if credits > 0 {
		s.grant(t, name, "first", credits)
	}
	client, err := holdfast.New(s.API, s.key(t, name), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return client, name
}

func (s *system) key(t *testing.T, workspace string) string {
	t.Helper()
	var made struct{ Key string }
	s.run(t, &made, "key", "create", "--workspace", workspace, "--permission",
		"memory:read,memory:write,operations:read,operations:retry,credits:read,admin")
	return made.Key
}

func (s *system) grant(t *testing.T, workspace, reference string, credits int) {
	t.Helper()
	s.run(t, nil, "credits", "grant", "--workspace", workspace, "--reference", reference, fmt.Sprint(credits))
}

// run runs an operator's command.
func (s *system) run(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := s.command(append(args, "--json")...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	if into != nil {
		if err := json.Unmarshal(out, into); err != nil {
			t.Fatalf("%v wrote %q: %v", args, out, err)
		}
	}
}
