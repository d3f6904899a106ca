package localdev

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Child is a process in a process group of its own that gets a signal when this process dies, however it dies (on
// Linux; elsewhere it only has the group of its own).
type Child struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// StartChild starts cmd, which must not be started yet, and returns once it runs. When this process ends without
// having ended the child, the kernel sends it ends. cmd.SysProcAttr is kept, its Setpgid and Pdeathsig are set.
func StartChild(cmd *exec.Cmd, ends syscall.Signal) (*Child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	setParentDeathSignal(cmd.SysProcAttr, ends)
	c := &Child{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the signal when the thread that forked ends, so this goroutine keeps its thread until the
		// child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = cmd.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return c, nil
}

// PID is the child's process id; it stays the same after the child has ended.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Exited is closed once the child has ended and was waited for.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Err is how the child ended, as of exec.Cmd.Wait. It is nil before Exited is closed.
func (c *Child) Err() error {
	select {
	case <-c.exited:
		return c.err
	default:
		return nil
	}
}

// ExitCode is the child's exit code, -1 when a signal ended it or while it runs.
func (c *Child) ExitCode() int {
	select {
	case <-c.exited:
		return c.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Signal sends sig to the child alone. After its end it returns os.ErrProcessDone.
func (c *Child) Signal(sig syscall.Signal) error {
	if err := c.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", c.PID(), err)
	}
	return nil
}

// KillGroup sends SIGKILL to the child's whole process group. It does nothing once the child has ended, because the
// number may belong to someone else by then.
func (c *Child) KillGroup() {
	select {
	case <-c.exited:
	default:
		_ = syscall.Kill(-c.PID(), syscall.SIGKILL)
	}
}
