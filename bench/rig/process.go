package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

const (
	readyBound = 2 * time.Minute  // a process is ready within a second; the machine may be busy
	endBound   = 45 * time.Second // leases are given back and answers end within 20 s
)

// Process is a program that ends with this one.
type Process struct {
	name  string
	child *localdev.Child
	out   *tail
}

// tail keeps the end of what a program wrote, and tells when it has said that it is ready.
type tail struct {
	mu    sync.Mutex
	text  []byte
	mark  string
	ready chan struct{}
	once  sync.Once
}

const tailBytes = 16 << 10 // a failure's reason stands in the last lines

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if bytes.Contains(t.text, []byte(t.mark)) {
		t.once.Do(func() { close(t.ready) })
	}
	if len(t.text) > tailBytes {
		t.text = slices.Clone(t.text[len(t.text)-tailBytes/2:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// Launch starts a program with env beside this process's environment without HOLDFAST_ names, and returns when it has
// written mark.
func Launch(ctx context.Context, name string, cmd *exec.Cmd, mark string, env ...string) (*Process, error) {
	p := &Process{name: name, out: &tail{mark: mark, ready: make(chan struct{})}}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HOLDFAST_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.WaitDelay = 2 * time.Second // what it left behind may hold its output open
	var err error
	if p.child, err = localdev.StartChild(cmd, syscall.SIGKILL); err != nil {
		return nil, err
	}
	select {
	case <-p.out.ready:
		return p, nil
	case <-p.child.Exited():
		return nil, fmt.Errorf("%s ended before it was ready:\n%s", name, p.out)
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(readyBound):
		err = fmt.Errorf("not ready after %s:\n%s", readyBound, p.out)
	}
	p.child.KillGroup()
	return nil, fmt.Errorf("start %s: %w", name, err)
}

// Stop ends it as an operator would. It may be called twice.
func (p *Process) Stop() error {
	if err := p.child.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.child.Exited():
		return nil
	case <-time.After(endBound):
		p.child.KillGroup()
		<-p.child.Exited()
		return fmt.Errorf("%s did not stop within %s", p.name, endBound)
	}
}

// LastError is the last line of its log that tells of an error, empty without one.
func (p *Process) LastError() string {
	lines := strings.Split(p.out.String(), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(lines[i], `"level":"error"`) {
			return lines[i]
		}
	}
	return ""
}

// Build builds Holdfast's programs, as they are shipped, into the rig's directory and returns it.
func (r *Rig) Build(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	dir := filepath.Join(r.dir, "bin")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", dir+"/", "./cmd/...")
	cmd.Dir = filepath.Dir(filepath.Dir(strings.TrimSpace(string(out))))
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, text)
	}
	return dir, nil
}

// FreeAddress is an address of this machine that nobody listens on.
func FreeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
