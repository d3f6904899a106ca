package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// restartPause is how long a process that has ended stays down: about what a supervisor needs to notice.
const restartPause = 200 * time.Millisecond

// process is one program of the system under a supervisor that starts it again whenever it ends.
type process struct {
	name   string
	path   string
	args   []string
	env    []string
	log    *os.File
	frozen func(p *process) // called when a crash point has frozen the process

	asleep atomic.Int32 // it is frozen while this isn't zero

	mu     sync.Mutex
	child  *localdev.Child
	points string // the crash points of the next start
	starts int
	hits   map[string]int // crash points reached, by action
	tail   []byte         // the last unfinished line of output
	done   chan struct{}
}

// supervise starts the program again and again until ctx ends, and then kills it. The caller waits for p.done.
func (p *process) supervise(ctx context.Context) {
	defer close(p.done)
	for ctx.Err() == nil {
		child, err := p.start()
		if err != nil {
			p.say("cannot start: " + err.Error())
		} else {
			select {
			case <-child.Exited():
			case <-ctx.Done():
				child.KillGroup()
				<-child.Exited()
			}
		}
		select {
		case <-time.After(restartPause):
		case <-ctx.Done():
		}
	}
}

func (p *process) start() (*localdev.Child, error) {
	cmd := exec.Command(p.path, p.args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "HOLDFAST_") && !strings.HasPrefix(kv, "CHAOS_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Stdout, cmd.Stderr = p, p
	cmd.WaitDelay = 2 * time.Second // what the program left behind may hold its output open
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.points != "" {
		cmd.Env = append(cmd.Env, "HOLDFAST_FAILPOINT="+p.points)
		p.points = ""
	}
	child, err := localdev.StartChild(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	p.child = child
	p.starts++
	return child, nil
}

// Write takes what the program prints: it goes to the log, and crash points are counted.
func (p *process) Write(b []byte) (int, error) {
	n, err := p.log.Write(b)
	if err != nil {
		return n, fmt.Errorf("write log of %s: %w", p.name, err)
	}
	froze := false
	p.mu.Lock()
	p.tail = append(p.tail, b...)
	for {
		line, rest, whole := bytes.Cut(p.tail, []byte("\n"))
		if !whole {
			break
		}
		p.tail = append([]byte(nil), rest...)
		words := strings.Fields(string(line))
		if len(words) == 3 && words[0] == "failpoint" {
			p.hits[words[2]]++
			froze = froze || words[2] == "stop"
		}
	}
	p.mu.Unlock()
	if froze {
		go p.frozen(p) // it waits, and this is the program's output
	}
	return len(b), nil
}

func (p *process) say(text string) { _, _ = fmt.Fprintln(p.log, "chaos:", text) }

// signal sends sig to the present program; one that has just ended is no error.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	child := p.child
	p.mu.Unlock()
	if child == nil {
		return
	}
	if err := child.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.say("cannot signal: " + err.Error())
	}
}

// freeze stops the program, and thaw lets it go on.
func (p *process) freeze() {
	p.asleep.Add(1)
	p.signal(syscall.SIGSTOP)
}

func (p *process) thaw() {
	p.signal(syscall.SIGCONT)
	p.asleep.Add(-1)
}

// arm gives the next start its crash points and makes it come now.
func (p *process) arm(points string) {
	p.mu.Lock()
	p.points = points
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
}

// newProcess prepares a program; its output goes to name.log in dir.
func newProcess(dir, name, path string, env []string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	return &process{
		name: name, path: path, args: args, env: env, log: log, frozen: func(*process) {}, hits: map[string]int{},
		done: make(chan struct{}),
	}, nil
}
