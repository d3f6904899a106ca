package localdev

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	pidFileName = "postmaster.pid"
	// orphanGrace is how long a server of a killed run may take to end; its own bound for an immediate stop is 5 s.
	orphanGrace = 20 * time.Second
	// noProcess is a process id that can't exist: Linux gives out at most 2^22.
	noProcess = "2147483646"
)

// settleStale deals with the pid file of a run that was killed. A server that is still on its way out is waited for. If
// the number belongs to some other program by now, PostgreSQL would take that for a running server and refuse to start;
// then only the number is replaced, so that PostgreSQL's own check of the shared memory named in the file stays.
func settleStale(ctx context.Context, dataDir string) error {
	pid := readPidFile(dataDir).pid
	if pid == 0 {
		return nil
	}
	deadline := time.NewTimer(orphanGrace)
	defer deadline.Stop()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for serverRuns(pid, dataDir) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for server process %d of an earlier run: %w", pid, ctx.Err())
		case <-deadline.C:
			return fmt.Errorf("server process %d of an earlier run still uses %s: end it with `kill -INT %d`", pid, dataDir, pid)
		}
	}
	if !processRuns(pid) {
		return nil
	}
	path := filepath.Join(dataDir, pidFileName)
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read stale pid file: %w", err)
	}
	_, rest, _ := strings.Cut(string(b), "\n")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("open stale pid file: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(noProcess + "\n" + rest); err != nil {
		return fmt.Errorf("rewrite stale pid file: %w", err)
	}
	return nil
}

// processRuns is false where there is no /proc: PostgreSQL then decides by itself.
func processRuns(pid int) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	return err == nil
}

// serverRuns tells whether pid is a PostgreSQL main process of dataDir, from its command line.
func serverRuns(pid int, dataDir string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	args := bytes.Split(b, []byte{0})
	for i, arg := range args[:max(0, len(args)-1)] {
		if string(arg) == "-D" && string(args[i+1]) == dataDir {
			return filepath.Base(string(args[0])) == "postgres"
		}
	}
	return false
}
