package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

const (
	// snapshotPart is where a part of a snapshot ends, in bytes, unless its first line alone is longer.
	snapshotPart = 1 << 20
	// SnapshotPartLines is how many lines a part holds at most: their texts take about two calls of an embedder, and
	// their lanes are held for milliseconds.
	SnapshotPartLines = 200
)

// SplitSnapshot cuts a snapshot at its line feeds into parts of at most 200 lines and about 1 MiB and hands each to
// yield, which must not keep it. Fault INVALID_BODY for a line beyond MaxSnapshotLine and for a body without lines;
// what the lines say isn't looked at.
func SplitSnapshot(r io.Reader, yield func(part []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxSnapshotLine+1)
	part := make([]byte, 0, snapshotPart)
	count, parts := 0, 0
	flush := func() error {
		if count == 0 {
			return nil
		}
		parts++
		err := yield(part)
		part, count = part[:0], 0
		return err
	}
	for lines.Scan() {
		line := lines.Bytes()
		if count == SnapshotPartLines || count > 0 && len(part)+len(line) > snapshotPart {
			if err := flush(); err != nil {
				return err
			}
		}
		part = append(append(part, line...), '\n')
		count++
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fault.At(fault.InvalidBody, "", "lines of at most 4 MiB")
	} else if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	if err := flush(); err != nil {
		return err
	}
	if parts == 0 {
		return fault.At(fault.InvalidBody, "", "at least one line")
	}
	return nil
}

// SnapshotLines returns the lines of a part.
func SnapshotLines(part []byte) [][]byte {
	return bytes.Split(bytes.TrimSuffix(part, []byte{'\n'}), []byte{'\n'})
}

// SnapshotCheck reads the lines of a whole snapshot in their order and refuses the first one that is wrong: header
// first, memories by their ids, each followed by its history, at least one, by version, then items by their keys, the
// footer with the counts last.
type SnapshotCheck struct {
	latest time.Time
	seen   SnapshotFooter
	began  bool
	ended  bool
	// The memory of the lines before, and the version of its latest history; nil once items have begun.
	memory  *SnapshotMemory
	version int
	item    *ItemKey
}

// NewSnapshotCheck returns a check that refuses records accepted after latest: they would keep later writes of their
// scope behind them in time.
func NewSnapshotCheck(latest time.Time) *SnapshotCheck { return &SnapshotCheck{latest: latest} }

// Line checks the next line and answers what it holds; an error is ErrUnreadable.
func (c *SnapshotCheck) Line(raw []byte) (SnapshotLine, error) {
	line, err := DecodeSnapshotLine(raw)
	if err != nil {
		return SnapshotLine{}, err
	}
	good := false
	switch {
	case c.ended || c.began == (line.Header != nil):
	case line.Header != nil:
		c.began, good = true, line.Header.Version == SnapshotVersion
	case line.Memory != nil:
		good = c.takeMemory(line.Memory)
	case line.History != nil:
		good = c.takeHistory(line.History)
	case line.Item != nil:
		good = c.takeItem(line.Item)
	case line.Footer != nil:
		line.Footer.Type = ""
		c.ended, good = true, c.complete() && *line.Footer == c.seen
	}
	if !good {
		return SnapshotLine{}, ErrUnreadable
	}
	return line, nil
}

// End tells whether the snapshot was whole, and how many memories and items it had; an error is ErrUnreadable.
func (c *SnapshotCheck) End() (total int64, err error) {
	if !c.ended {
		return 0, ErrUnreadable
	}
	return c.seen.Memories + c.seen.Items, nil
}

// complete tells whether the memory before has its history.
func (c *SnapshotCheck) complete() bool { return c.memory == nil || c.version > 0 }

func (c *SnapshotCheck) takeMemory(m *SnapshotMemory) bool {
	if c.item != nil || !c.complete() || m.ID == uuid.Nil || c.memory != nil && bytes.Compare(c.memory.ID[:], m.ID[:]) >= 0 {
		return false
	}
	c.memory, c.version = m, 0
	c.seen.Memories++
	return m.sound() && !m.AcceptedAt.After(c.latest) && !m.SaidAt.After(c.latest)
}

func (m *SnapshotMemory) sound() bool {
	scope, err := NewScope(m.UserID, m.AgentID, m.RunID, m.AppID)
	if err != nil || scope != m.Scope() || Blank(m.Text) || m.Version < 1 || m.Version > math.MaxInt32 {
		return false
	}
	if m.FactType != nil && (*m.FactType == "" || string(memory.ParseFactType(*m.FactType)) != *m.FactType) {
		return false
	}
	if m.Role != nil && !fits(*m.Role, MaxScope) {
		return false
	}
	if m.ItemID != nil && (m.UserID == nil || !fits(*m.ItemID, MaxItemID)) {
		return false
	}
	if m.Metadata != nil && m.Metadata[0] != '{' {
		return false
	}
	return m.filed() && m.Feedback.sound() && dated(&m.AcceptedAt, &m.SaidAt, &m.ValidFrom, &m.CreatedAt, &m.UpdatedAt) &&
		dated(m.EventDate, m.ValidTo, m.ExpiresAt, m.DeletedAt)
}

// filed tells whether the categories are names, each once.
func (m *SnapshotMemory) filed() bool {
	seen := make(map[string]bool, len(m.Categories))
	for _, name := range m.Categories {
		if !memory.LabelFits(name) || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(seen) <= memory.MaxCategories
}

func (f *SnapshotFeedback) sound() bool {
	return f == nil || Verdict(f.Verdict).Known() && dated(&f.At) && (f.Reason == nil || fits(*f.Reason, MaxReason))
}

func (c *SnapshotCheck) takeHistory(h *SnapshotHistory) bool {
	if c.memory == nil || c.item != nil || h.MemoryID != c.memory.ID || h.ID == uuid.Nil || h.Version <= c.version ||
		h.Version > c.memory.Version {
		return false
	}
	c.version = h.Version
	c.seen.History++
	switch memory.Change(h.Change) {
	case memory.Added, memory.Updated, memory.Deleted, memory.Invalidated:
	case memory.None:
		return false
	default:
		return false
	}
	return h.Ordinal >= 0 && dated(&h.At)
}

func (c *SnapshotCheck) takeItem(i *SnapshotItem) bool {
	key := i.Item().Key()
	if !c.complete() || c.item != nil && bytes.Compare(c.item[:], key[:]) >= 0 {
		return false
	}
	c.item = &key
	c.seen.Items++
	return fits(i.Account, MaxScope) && fits(i.ItemID, MaxItemID) && !Blank(i.Text) &&
		utf8.RuneCountInString(i.Text) <= MaxItemText && utf8.RuneCountInString(i.Author) <= MaxScope &&
		utf8.RuneCountInString(i.Session) <= MaxScope && len(i.AtText) <= MaxBody &&
		i.Revision >= 1 && i.Revision <= math.MaxInt32 && i.LandedRevision >= 0 && i.LandedRevision <= i.Revision &&
		dated(&i.At, &i.CreatedAt, &i.UpdatedAt)
}

// fits tells whether text says something in at most so many characters.
func fits(text string, most int) bool { return !Blank(text) && utf8.RuneCountInString(text) <= most }

// dated tells whether the times that are given are times: the database keeps the years 1 to 9999.
func dated(times ...*time.Time) bool {
	for _, t := range times {
		if t != nil && (t.UTC().Year() < 1 || t.UTC().Year() > 9999 || t.IsZero()) {
			return false
		}
	}
	return true
}
