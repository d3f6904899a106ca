package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// reportFD is where a detached up tells who started it that it is ready: the first of the files that it inherits.
const reportFD = 3

// maxReport bounds what it tells, and what is read of why it didn't start.
const maxReport = 64 << 10

// detach starts the same command in a session of its own and returns when it is ready. It goes on when this one ends;
// whoever breaks this off meanwhile stops it.
func (c *upCommand) detach(s *session) error {
	dir, err := app.MakeStateDir(c.StateDir)
	if err != nil {
		return err
	}
	if holder, err := localdev.Holder(dir); err == nil {
		return exitf(app.ExitFailed, "one runs over %s already, as process %d: see `holdfast status`, or end it with `holdfast stop`", dir, holder.Pid)
	}
	child, report, err := c.startDetached(dir)
	if err != nil {
		return err
	}
	defer report.Close()
	ended := make(chan struct{})
	go func() {
		_ = child.Wait() // its state says how it ended
		close(ended)
	}()
	ready := make(chan app.Running, 1)
	go func() {
		var r app.Running
		line, err := bufio.NewReader(io.LimitReader(report, maxReport)).ReadBytes('\n')
		if err == nil && json.Unmarshal(line, &r) == nil {
			ready <- r
		}
	}()
	select {
	case r := <-ready:
		return s.printDetached(r, c.Workers)
	case <-ended:
		return exitf(max(child.ProcessState.ExitCode(), app.ExitFailed), "it did not start: %s", lastWords(filepath.Join(dir, app.StderrFile)))
	case <-s.ctx.Done():
		err := child.Process.Signal(syscall.SIGTERM)
		<-ended // a start that is broken off is a stop, which has its own bounds
		return errors.Join(context.Canceled, err)
	}
}

func (c *upCommand) startDetached(dir string) (*exec.Cmd, *os.File, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	said, err := os.OpenFile(filepath.Join(dir, app.StderrFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	defer said.Close()
	report, tell, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	defer tell.Close() // the child has its own
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return arg == "--detach" || arg == "-d" })
	child := exec.Command(exe, append(args, "--detached")...) // #nosec G204 G702 -- this very program, as it was called
	child.Stderr, child.ExtraFiles = said, []*os.File{tell}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal ends it
	if err := child.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start detached: %w", err), report.Close())
	}
	return child, report, nil
}

// lastWords is the last line of what a start said.
func lastWords(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "see " + path
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxReport)) // what there is of it will do
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return cmp.Or(strings.TrimPrefix(lines[len(lines)-1], "holdfast: "), "see "+filepath.Join(filepath.Dir(path), app.LogFile))
}

// runDetached is the child: its log is a file of bounded size, and it reports once.
func (c *upCommand) runDetached(s *session) (err error) {
	dir, err := app.MakeStateDir(c.StateDir)
	if err != nil {
		return err
	}
	log, err := localdev.OpenRotatedLog(filepath.Join(dir, app.LogFile), app.LogBytes, app.LogsKept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	syscall.CloseOnExec(reportFD) // it isn't the servers' that are started here
	report := os.NewFile(reportFD, "report")
	return app.RunUp(s.ctx, c.Settings, app.Up{Workers: c.Workers, Log: log, Detached: true, Started: func(r app.Running) error {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		_, _ = report.Write(append(line, '\n')) // who started it may have gone: it runs all the same
		return report.Close()
	}})
}

func (s *session) printDetached(r app.Running, workers int) error {
	if err := s.printReady(r); err != nil || s.json {
		return err
	}
	return s.afterReady("It runs on when you log out. See `holdfast status`, `holdfast logs -f` and `holdfast top`; `holdfast stop` ends it and keeps the data.\n", workers)
}
