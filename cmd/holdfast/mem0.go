package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// maxComplaints is how many wrong memories are told of at once: enough to see what they have in common.
const maxComplaints = 20

// converted is an export of mem0 as a snapshot in a file of its own, which has no name any more.
type converted struct {
	file   *os.File
	counts mem0Counts
}

// mem0Counts is what an export holds.
type mem0Counts struct {
	Memories int        `json:"memories"`
	Users    int        `json:"users"`
	Agents   int        `json:"agents"`
	Apps     int        `json:"apps"`
	Runs     int        `json:"runs"`
	Expiring int        `json:"expiring"`
	Oldest   *time.Time `json:"oldest"`
	Newest   *time.Time `json:"newest"`
}

// line is where a memory and its history stand among the converted ones, in the order of the export.
type line struct {
	id       uuid.UUID
	position int
	offset   int64
	length   int
}

// conversion writes memories as they come and remembers where, so that they can be put in the order of their ids
// without being in memory all at once.
type conversion struct {
	mem0   command.Mem0
	out    *bufio.Writer
	size   int64
	lines  []line
	wrong  []string
	more   int
	counts mem0Counts
	seen   [4]map[string]bool
}

// convertMem0 reads an export and writes the snapshot. Everything that is wrong is told at once, by position.
func convertMem0(path, defaultUser string) (*converted, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, exitf(app.ExitUsage, "%s cannot be read: %v", path, err)
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || info.Size() > command.MaxMem0 {
		return nil, exitf(app.ExitUsage, "%s is larger than %d MiB: import it in parts", path, command.MaxMem0>>20)
	}
	unsorted, err := unnamed()
	if err != nil {
		return nil, err
	}
	defer unsorted.Close()
	c := &conversion{mem0: command.Mem0{DefaultUser: defaultUser, Now: time.Now()}, out: bufio.NewWriter(unsorted)}
	for i := range c.seen {
		c.seen[i] = map[string]bool{}
	}
	if err := command.ReadMem0(bufio.NewReader(in), c.take); err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return nil, exitf(app.ExitUsage, "%s, after memory %d: it must be %s; nothing was imported", path, len(c.lines)+len(c.wrong)+c.more, f.Rule)
		}
		return nil, err
	}
	if err := c.out.Flush(); err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	c.sort()
	switch {
	case len(c.wrong) > 0 && c.more > 0:
		return nil, exitf(app.ExitUsage, "%s\nand %d more; nothing was imported", strings.Join(c.wrong, "\n"), c.more)
	case len(c.wrong) > 0:
		return nil, exitf(app.ExitUsage, "%s\nnothing was imported", strings.Join(c.wrong, "\n"))
	case len(c.lines) == 0:
		return nil, exitf(app.ExitUsage, "%s has no memories", path)
	}
	return c.snapshot(unsorted)
}

// unnamed makes a file that is gone when it is closed, whatever happens to the process.
func unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "holdfast-import-*")
	if err != nil {
		return nil, exitf(app.ExitFailed, "no temporary file can be made: %v", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(exitf(app.ExitFailed, "the temporary file %s cannot be removed: %v", file.Name(), err), file.Close())
	}
	return file, nil
}

func (c *conversion) complain(position int, format string, args ...any) {
	if len(c.wrong) == maxComplaints {
		c.more++
		return
	}
	c.wrong = append(c.wrong, fmt.Sprintf("memory %d: ", position)+fmt.Sprintf(format, args...))
}

// take converts one memory. A wrong one is remembered, so that all of them are told of.
func (c *conversion) take(position int, raw []byte) error {
	m, h, err := c.mem0.Convert(raw)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		c.complain(position, "%s", strings.TrimPrefix(strings.TrimPrefix(f.Pointer, "/")+": "+f.Rule, ": "))
		return nil
	}
	if err != nil {
		return err
	}
	text, err := command.SnapshotLine{Memory: &m}.AppendTo(nil)
	if err == nil {
		text, err = command.SnapshotLine{History: &h}.AppendTo(text)
	}
	if err != nil {
		return err
	}
	if len(text) > command.MaxSnapshotLine {
		c.complain(position, "larger than %d MiB", command.MaxSnapshotLine>>20)
		return nil
	}
	if c.size+int64(len(text)) > command.MaxSnapshot {
		return exitf(app.ExitUsage, "the memories up to number %d make more than the %d MiB of one import", position, command.MaxSnapshot>>20)
	}
	if _, err := c.out.Write(text); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	c.lines = append(c.lines, line{m.ID, position, c.size, len(text)})
	c.size += int64(len(text))
	c.count(m)
	return nil
}

func (c *conversion) count(m command.SnapshotMemory) {
	for i, id := range []*string{m.UserID, m.AgentID, m.AppID, m.RunID} {
		if id != nil {
			c.seen[i][*id] = true
		}
	}
	n := &c.counts
	n.Memories++
	n.Users, n.Agents, n.Apps, n.Runs = len(c.seen[0]), len(c.seen[1]), len(c.seen[2]), len(c.seen[3])
	if m.ExpiresAt != nil {
		n.Expiring++
	}
	if n.Oldest == nil || m.CreatedAt.Before(*n.Oldest) {
		n.Oldest = &m.CreatedAt
	}
	if n.Newest == nil || m.CreatedAt.After(*n.Newest) {
		n.Newest = &m.CreatedAt
	}
}

// sort puts the lines in the order of a snapshot and complains of ids that are there twice.
func (c *conversion) sort() {
	slices.SortFunc(c.lines, func(a, b line) int {
		if n := bytes.Compare(a.id[:], b.id[:]); n != 0 {
			return n
		}
		return a.position - b.position
	})
	for i := 1; i < len(c.lines); i++ {
		if c.lines[i].id == c.lines[i-1].id {
			c.complain(c.lines[i].position, "id: the same as that of memory %d", c.lines[i-1].position)
		}
	}
}

// snapshot writes the lines in their order between header and footer. What it says of its own making follows from the
// export, so that the same export is the same request.
func (c *conversion) snapshot(unsorted io.ReaderAt) (*converted, error) {
	file, err := unnamed()
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriter(file)
	err = c.write(out, unsorted)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write snapshot: %w", err), file.Close())
	}
	return &converted{file: file, counts: c.counts}, nil
}

func (c *conversion) write(out io.Writer, unsorted io.ReaderAt) error {
	header := command.SnapshotHeader{
		Version: command.SnapshotVersion, Workspace: uuid.NewSHA1(uuid.NameSpaceDNS, []byte("mem0")), CreatedAt: *c.counts.Newest,
	}
	text, err := command.SnapshotLine{Header: &header}.AppendTo(nil)
	if err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, l := range c.lines {
		if _, err := io.Copy(out, io.NewSectionReader(unsorted, l.offset, int64(l.length))); err != nil {
			return err
		}
	}
	footer := command.SnapshotFooter{Memories: int64(len(c.lines)), History: int64(len(c.lines))}
	if text, err = (command.SnapshotLine{Footer: &footer}).AppendTo(nil); err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
