package testkit

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// ProcessConfig says what to start. Path is required.
type ProcessConfig struct {
	Path  string
	Args  []string
	Env   []string // "NAME=value"; beside it the process gets this one's environment without HOLDFAST_ and OTEL_ names
	Dir   string
	Stdin io.Reader
}

// Process is a program under test, in a process group of its own. It is killed at the test's end and when the test
// binary dies.
type Process struct {
	t      testing.TB
	child  *localdev.Child
	out    *output
	errOut *output
}

// StartProcess starts a program, or fails the test.
func StartProcess(t testing.TB, cfg ProcessConfig) *Process {
	t.Helper()
	p := &Process{t: t}
	changed := newSignal()
	p.out, p.errOut = &output{changed: changed}, &output{changed: changed}
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.Dir, cmd.Stdin = cfg.Dir, cfg.Stdin
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HOLDFAST_") && !strings.HasPrefix(kv, "OTEL_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, cfg.Env...)
	cmd.Stdout, cmd.Stderr = p.out, p.errOut
	cmd.WaitDelay = 2 * time.Second // what the program left behind may hold its output open
	child, err := localdev.StartChild(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	p.child = child
	t.Cleanup(func() {
		child.KillGroup()
		<-child.Exited()
		if t.Failed() {
			t.Logf("%s wrote:\n%s\n%s", cfg.Path, tail(p.out.String()), tail(p.errOut.String()))
		}
	})
	return p
}

// PID is the program's process id.
func (p *Process) PID() int { return p.child.PID() }

// Exited is closed once the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.child.Exited() }

// Stdout is what the program has written to standard output so far.
func (p *Process) Stdout() string { return p.out.String() }

// Stderr is what the program has written to standard error so far.
func (p *Process) Stderr() string { return p.errOut.String() }

// Signal sends a signal to the program alone, or fails the test if it has ended.
func (p *Process) Signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.child.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// Thaw lets a program go on that freezes itself. It waits until it has: a program says that it will a moment before it
// does, and what comes in between is lost.
func (p *Process) Thaw(most time.Duration) {
	p.t.Helper()
	deadline := time.After(most)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !p.frozen() {
		select {
		case <-look.C:
		case <-p.child.Exited():
			p.t.Fatalf("process %d ended and did not freeze", p.PID())
		case <-deadline:
			p.t.Fatalf("process %d has not frozen after %s", p.PID(), most)
		}
	}
	p.Signal(syscall.SIGCONT)
}

// frozen reads the state that follows the program's name in brackets.
func (p *Process) frozen() bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/stat")
	_, state, found := strings.Cut(string(stat), ") ")
	return err == nil && found && strings.HasPrefix(state, "T")
}

// Kill ends the program with SIGKILL, as a crash does, and returns when it is gone. What it started is left alone.
func (p *Process) Kill() {
	p.t.Helper()
	if err := p.child.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
	<-p.child.Exited()
}

// Wait returns the exit code, -1 for an end by signal, and fails the test when the program runs longer than most.
func (p *Process) Wait(most time.Duration) int {
	p.t.Helper()
	select {
	case <-p.child.Exited():
		return p.child.ExitCode()
	case <-time.After(most):
		p.t.Fatalf("process %d still runs after %s", p.PID(), most)
		return -1
	}
}

// WaitForOutput returns once the program has written text to one of its outputs, and fails the test when it ends
// without, or takes longer than most.
func (p *Process) WaitForOutput(text string, most time.Duration) {
	p.t.Helper()
	deadline := time.After(most)
	for {
		next := p.out.changed.next()
		if strings.Contains(p.Stdout(), text) || strings.Contains(p.Stderr(), text) {
			return
		}
		select {
		case <-next:
		case <-p.child.Exited():
			if !strings.Contains(p.Stdout(), text) && !strings.Contains(p.Stderr(), text) {
				p.t.Fatalf("process %d ended without writing %q", p.PID(), text)
			}
			return
		case <-deadline:
			p.t.Fatalf("process %d has not written %q after %s", p.PID(), text, most)
		}
	}
}

// output keeps what a program writes. A test's program writes kilobytes, so all of it stays in memory.
type output struct {
	mu      sync.Mutex
	text    strings.Builder
	changed *signal
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	n, err := o.text.Write(b)
	o.mu.Unlock()
	o.changed.fire()
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// signal wakes everybody who took next before fire.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

func newSignal() *signal { return &signal{ch: make(chan struct{})} }

func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ch
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ch)
	s.ch = make(chan struct{})
}

func tail(s string) string {
	const most = 8 << 10 // enough for the last log lines of a failed test
	return s[max(0, len(s)-most):]
}
