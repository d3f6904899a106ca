package localdev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// readyTimeout bounds a start; recovery after a crash replays at most max_wal_size (1 GB) of log.
	readyTimeout = 5 * time.Minute
	readyPoll    = 10 * time.Millisecond
	portAttempts = 5        // a port found free can be taken before the server has it; five times in a row it can't
	maxLogBytes  = 64 << 20 // a log of this size is set aside at the next start, one older one is kept
)

// settings are the parameters of the server. No statement, parameter or row may reach its log.
func (p *Postgres) settings() map[string]string {
	onOff := "off"
	if p.cfg.Fsync {
		onOff = "on"
	}
	s := map[string]string{
		"port":                              strconv.Itoa(p.port),
		"listen_addresses":                  "127.0.0.1",
		"unix_socket_directories":           "",
		"fsync":                             onOff,
		"full_page_writes":                  onOff,
		"synchronous_commit":                onOff,
		"timezone":                          "UTC",
		"log_timezone":                      "UTC",
		"log_destination":                   "stderr",
		"logging_collector":                 "off",
		"log_checkpoints":                   "off",
		"log_statement":                     "none",
		"log_duration":                      "off",
		"log_min_duration_statement":        "-1",
		"log_min_duration_sample":           "-1",
		"log_min_error_statement":           "panic",
		"jit":                               "off", // every statement is short: compiling one takes longer than running it
		"log_error_verbosity":               "terse",
		"log_parameter_max_length":          "0",
		"log_parameter_max_length_on_error": "0",
	}
	maps.Copy(s, p.cfg.Settings)
	return s
}

// firstLaunch starts the server on the configured port, or on one that is free.
func (p *Postgres) firstLaunch(ctx context.Context) error {
	p.op.Lock()
	defer p.op.Unlock()
	// First, because a server on its way out may still have the port.
	if err := settleStale(ctx, p.cfg.DataDir); err != nil {
		return err
	}
	p.port = p.cfg.Port
	for attempt := 1; ; attempt++ {
		if p.cfg.Port == 0 {
			port, err := freePort()
			if err != nil {
				return err
			}
			p.port = port
		} else if !portFree(p.port) {
			return fmt.Errorf("port %d on 127.0.0.1: %w", p.port, ErrPortTaken)
		}
		err := p.launch(ctx)
		if err != nil && p.cfg.Port != 0 && !portFree(p.port) { // somebody was faster
			return errors.Join(err, ErrPortTaken)
		}
		if err == nil || p.cfg.Port != 0 || portFree(p.port) || attempt == portAttempts {
			return err
		}
	}
}

// launch starts the server process on p.port and waits until it takes connections.
func (p *Postgres) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	log, err := openLog(p.cfg.LogFile)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", p.cfg.DataDir}
	settings := p.settings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	cmd := serverCommand(p.acct, filepath.Join(p.cfg.BinDir, "postgres"), args...)
	cmd.Env = append(cmd.Env, p.cfg.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	// SIGQUIT ends a server at once; the next start recovers from its log, as after a crash.
	child, err := StartChild(cmd, syscall.SIGQUIT)
	if err != nil {
		return err
	}
	if err := p.waitReady(ctx, child); err != nil {
		return errors.Join(err, endProcess(child, syscall.SIGQUIT))
	}
	p.adopt(child)
	return nil
}

// waitReady watches the status that the server writes into its pid file, as pg_ctl does.
func (p *Postgres) waitReady(ctx context.Context, child *Child) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if f := readPidFile(p.cfg.DataDir); f.pid == child.PID() && f.status == "ready" {
			return nil
		}
		select {
		case <-child.Exited():
			return fmt.Errorf("server ended with code %d, its log says: %s", child.ExitCode(), logTail(p.cfg.LogFile))
		case <-ctx.Done():
			return fmt.Errorf("server not ready: %w, its log says: %s", ctx.Err(), logTail(p.cfg.LogFile))
		case <-tick.C:
		}
	}
}

// Stop ends the server with a checkpoint, after which it is taken away harder: at once when ctx ends or the checkpoint
// takes more than 20 s, and with SIGKILL 8 s later. It may be called twice and after the server has ended.
func (p *Postgres) Stop(ctx context.Context) error {
	p.op.Lock()
	defer p.op.Unlock()
	return p.stop(ctx, false)
}

func (p *Postgres) stop(ctx context.Context, immediate bool) error {
	child := p.process()
	if !immediate {
		ctx, cancel := context.WithTimeout(ctx, fastGrace)
		defer cancel()
		_ = child.Signal(syscall.SIGINT) // it fails only for a server that has ended
		select {
		case <-child.Exited():
			return nil
		case <-ctx.Done():
		}
	}
	return endProcess(child, syscall.SIGQUIT)
}

// endProcess sends sig and, after the grace for an immediate shutdown, SIGKILL. The server's other processes notice the
// end of the main one themselves.
func endProcess(child *Child, sig syscall.Signal) error {
	_ = child.Signal(sig) // it fails only for a server that has ended
	for _, next := range []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL} {
		select {
		case <-child.Exited():
			return nil
		case <-time.After(immediateGrace):
			_ = child.Signal(next)
		}
	}
	return fmt.Errorf("postgres process %d did not stop", child.PID())
}

// Restart stops the server, with a checkpoint or (immediate) as in a crash, and starts it again on the same port. When
// it returns nil the server takes connections; after an error it is stopped.
func (p *Postgres) Restart(ctx context.Context, immediate bool) error {
	p.op.Lock()
	defer p.op.Unlock()
	select {
	case <-p.done:
		return errors.New("restart postgres: it has been stopped")
	default:
	}
	if err := p.stop(ctx, immediate); err != nil {
		return fmt.Errorf("restart postgres: %w", err)
	}
	if err := p.launch(ctx); err != nil {
		p.end.Do(func() { close(p.done) })
		return fmt.Errorf("restart postgres: %w", err)
	}
	return nil
}

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("set aside server log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open server log: %w", err)
	}
	return f, nil
}

type pidFile struct {
	pid    int
	status string // "starting", "ready", "stopping"
}

// readPidFile reads postmaster.pid; it is zero when there is none or it is half written.
func readPidFile(dataDir string) pidFile {
	b, err := os.ReadFile(filepath.Join(dataDir, pidFileName))
	if err != nil {
		return pidFile{}
	}
	lines := strings.Split(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return pidFile{}
	}
	f := pidFile{pid: pid}
	if len(lines) > 7 {
		f.status = strings.TrimSpace(lines[7])
	}
	return f
}
