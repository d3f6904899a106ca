package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

const (
	// startBound is for initdb and the first start on a slow machine; stopBound for a checkpoint.
	startBound = 90 * time.Second
	stopBound  = 30 * time.Second
	// endedBound is how long the kernel may take to let a killed process go.
	endedBound = 5 * time.Second
)

// world is the processes and files of a demo.
type world struct {
	dir     string
	exe     string
	server  *child
	workers []*child
	running app.Running
	stub    *stubmodel.Server
	pids    []int // everything that was started
}

// child is a process of the demo: this very program with another command.
type child struct {
	*localdev.Child
	name string
}

func newWorld() (*world, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return nil, fmt.Errorf("make the demo's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // #nosec G302 -- PostgreSQL runs as another user when we are root
		return nil, fmt.Errorf("make the demo's directory: %w", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("make the demo's directory: %w", err)
	}
	return &world{dir: dir, exe: exe}, nil
}

// start starts this program with other arguments and settings. Its log goes to a file of its own.
func (w *world) start(name string, ends syscall.Signal, out io.Writer, settings map[string]string, args ...string) (*child, error) {
	log, err := os.Create(filepath.Join(w.dir, "logs", name+".log"))
	if err != nil {
		return nil, fmt.Errorf("make log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(w.exe, args...)
	cmd.Env = w.environment(settings)
	cmd.Stdout, cmd.Stderr = out, log
	started, err := localdev.StartChild(cmd, ends)
	if err != nil {
		return nil, err
	}
	w.pids = append(w.pids, started.PID())
	return &child{Child: started, name: name}, nil
}

// environment is this one's without settings of Holdfast, and with the demo's: short leases, so that nobody has to
// wait a minute for a killed worker, and no repair on its own, so that the demo can show it.
func (w *world) environment(settings map[string]string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "HOLDFAST_") {
			env = append(env, entry)
		}
	}
	all := map[string]string{
		"STATE_DIR": filepath.Join(w.dir, "state"), "ADMIN_LISTEN": "off", "LEASE_TTL": "2s", "RETRY_BASE": "200ms",
		"REPAIR_INTERVAL": "1h", "HINT_AGE": "1s", "WORKER_POLL": "500ms",
	}
	for name, value := range settings {
		all[name] = value
	}
	for name, value := range all {
		env = append(env, "HOLDFAST_"+name+"="+value)
	}
	return env
}

// up starts the server and reads its one line.
func (w *world) up(ctx context.Context) (app.Running, error) {
	read, write := io.Pipe()
	defer read.Close()
	server, err := w.start("up", syscall.SIGTERM, write, nil, "up", "--json", "--workers", "0", "--listen", "127.0.0.1:0")
	if err != nil {
		return app.Running{}, err
	}
	w.server = server
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(read).ReadString('\n') // a line that is cut short is no JSON
		line <- text
		_, _ = io.Copy(io.Discard, read)
	}()
	select {
	case text := <-line:
		if err := json.Unmarshal([]byte(text), &w.running); err != nil {
			return w.running, fmt.Errorf("holdfast up said %q", text)
		}
	case <-server.Exited():
		return w.running, fmt.Errorf("holdfast up ended: %s", w.logTail("up"))
	case <-time.After(startBound):
		return w.running, fmt.Errorf("holdfast up was not ready after %s", startBound)
	case <-ctx.Done():
		return w.running, ctx.Err()
	}
	if w.running.PIDs.Postgres != 0 {
		w.pids = append(w.pids, w.running.PIDs.Postgres)
	}
	return w.running, nil
}

// worker starts a worker process. It finds its servers through run.json.
func (w *world) worker(name string, settings map[string]string) (*child, error) {
	started, err := w.start(name, syscall.SIGKILL, nil, settings, "worker")
	if err == nil {
		w.workers = append(w.workers, started)
	}
	return started, err
}

// repair runs one round and returns what it printed.
func (w *world) repair(ctx context.Context) (string, error) {
	var out strings.Builder
	round, err := w.start("repair", syscall.SIGKILL, &out, nil, "repair", "--once")
	if err != nil {
		return "", err
	}
	select {
	case <-round.Exited():
	case <-ctx.Done():
		round.KillGroup()
		<-round.Exited()
	}
	if round.ExitCode() != 0 {
		return out.String(), fmt.Errorf("repair --once ended with %d: %s", round.ExitCode(), w.logTail("repair"))
	}
	return out.String(), nil
}

// end stops a process with SIGTERM and checks that it says it went well.
func (c *child) end() error {
	_ = c.Signal(syscall.SIGTERM) // it fails only for a process that has ended
	select {
	case <-c.Exited():
	case <-time.After(stopBound):
		c.KillGroup()
		<-c.Exited()
		return &untrue{c.name + " ends within " + stopBound.String() + " of SIGTERM"}
	}
	return claim(c.ExitCode() == 0, "%s ends with 0 after SIGTERM, not %d", c.name, c.ExitCode())
}

// kill is a crash.
func (c *child) kill() {
	_ = c.Signal(syscall.SIGKILL) // it fails only for a process that has ended
	<-c.Exited()
}

// stop ends everything: workers first, then the server and with it PostgreSQL and NATS.
func (w *world) stop() error {
	var errs []error
	if w.stub != nil {
		errs = append(errs, w.stub.Close())
	}
	for _, c := range append(w.workers, w.server) {
		if c == nil {
			continue
		}
		select {
		case <-c.Exited():
		default:
			errs = append(errs, c.end())
		}
	}
	return errors.Join(errs...)
}

// alive tells whether a process is still there shortly after it should have gone.
func alive(pid int) bool {
	deadline := time.Now().Add(endedBound)
	for time.Now().Before(deadline) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return false
		}
		time.Sleep(10 * time.Millisecond) // the kernel tells nobody but the parent
	}
	return true
}

func (w *world) logTail(name string) string {
	const most = 600 // the last lines: the reason stands at the end
	text, err := os.ReadFile(filepath.Join(w.dir, "logs", name+".log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
