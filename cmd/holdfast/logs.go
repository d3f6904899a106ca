package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type logsCommand struct {
	stateful
	Process string `arg:"" optional:"" enum:"holdfast,postgres" default:"holdfast" help:"holdfast (API, workers and repair) or postgres."`
	Follow  bool   `short:"f" env:"-" help:"Go on with what is written from now on, until Ctrl-C."`
	Lines   int    `short:"n" default:"100" env:"-" help:"How many of the last lines, 0 to 10000."`
}

const (
	maxLines = 10_000
	// lookBack is how much of a log is searched for its last lines.
	lookBack = 8 << 20
	// logLook is how often a log that is followed is looked at.
	logLook = 250 * time.Millisecond
)

func (c *logsCommand) Run(s *session) error {
	if c.Lines < 0 || c.Lines > maxLines {
		return exitf(app.ExitUsage, "--lines must be 0 to %d", maxLines)
	}
	dir, err := app.StateDir(c.StateDir)
	if err != nil {
		return err
	}
	name := app.LogFile
	if c.Process == "postgres" {
		name = app.PostgresLogFile
	}
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return exitf(app.ExitFailed, "there is no %s: `holdfast up --detach` writes one; without --detach the log is where it runs", path)
	}
	if err != nil {
		return exitf(app.ExitFailed, "the log can't be read: %v", err)
	}
	l := &logTail{path: path, file: f, out: s.logWriter(c.Process)}
	defer func() { _ = l.file.Close() }() // it was only read
	if err := l.last(c.Lines); err != nil || !c.Follow {
		return err
	}
	if err := l.follow(s.ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// logWriter writes lines as they are with --json, and for a person otherwise.
func (s *session) logWriter(process string) io.Writer {
	switch {
	case process == "postgres" && s.json:
		return &jsonLines{s}
	case process == "postgres" || s.json:
		return s.out
	}
	file, isFile := s.out.(*os.File)
	return zerolog.ConsoleWriter{Out: s.out, TimeFormat: time.DateTime, NoColor: !isFile || !terminal(file), FieldsExclude: []string{"process"}}
}

// jsonLines makes an object of each line of text.
type jsonLines struct{ s *session }

func (j *jsonLines) Write(line []byte) (int, error) {
	return len(line), j.s.encode(map[string]string{"process": "postgres", "line": string(bytes.TrimRight(line, "\n"))})
}

// logTail reads a log that may be moved away and begun anew meanwhile.
type logTail struct {
	path string
	file *os.File
	out  io.Writer
	at   int64
	rest []byte // a line that isn't whole yet
}

// last writes the last lines. Those of before the log was begun anew are in the file beside it.
func (l *logTail) last(n int) error {
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	l.at = max(0, info.Size()-lookBack)
	text := make([]byte, info.Size()-l.at)
	read, err := l.file.ReadAt(text, l.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read log: %w", err)
	}
	l.at += int64(read)
	lines := bytes.SplitAfter(text[:read], []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) > 0 { // the line is being written
		l.rest = bytes.Clone(lines[last])
	}
	lines = lines[:len(lines)-1]
	for _, line := range lines[max(0, len(lines)-n):] {
		if err := l.write(line); err != nil {
			return err
		}
	}
	return nil
}

// write writes one line; what isn't one of the log's own, as a panic, is written as it is.
func (l *logTail) write(line []byte) error {
	if _, err := l.out.Write(line); err != nil {
		console, isConsole := l.out.(zerolog.ConsoleWriter)
		if !isConsole {
			return fmt.Errorf("write output: %w", err)
		}
		if _, err := console.Out.Write(line); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

func (l *logTail) follow(ctx context.Context) error {
	look := time.NewTicker(logLook)
	defer look.Stop()
	for {
		if err := l.more(); err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// more writes what has come, to the end of a log that was moved away, and goes on in the new one.
func (l *logTail) more() error {
	if err := l.drain(); err != nil {
		return err
	}
	now, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) { // in the moment between moving and making
		return nil
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	mine, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	switch {
	case !os.SameFile(now, mine):
		if err := l.drain(); err != nil {
			return err
		}
		next, err := os.Open(l.path)
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		_ = l.file.Close() // it was only read
		l.file, l.at, l.rest = next, 0, nil
	case now.Size() < l.at:
		l.at, l.rest = 0, nil
	}
	return nil
}

func (l *logTail) drain() error {
	reader := bufio.NewReader(io.NewSectionReader(l.file, l.at, lookBack))
	for {
		part, err := reader.ReadBytes('\n')
		l.at += int64(len(part))
		if err != nil {
			l.rest = append(l.rest, part...)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read log: %w", err)
		}
		if err := l.write(append(l.rest, part...)); err != nil {
			return err
		}
		l.rest = nil
	}
}
