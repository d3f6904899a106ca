package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func snapshotLine(t testing.TB, line SnapshotLine) string {
	t.Helper()
	body, err := line.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func snapshotOf(t testing.TB, change func(m *SnapshotMemory, h *SnapshotHistory, i *SnapshotItem)) []string {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	user, text := "u", "said <&> \u2028"
	m := &SnapshotMemory{
		ID: uuid.New(), Event: uuid.New(), UserID: &user, Text: text, Version: 2, AcceptedAt: at, SaidAt: at, ValidFrom: at,
		CreatedAt: at, UpdatedAt: at, Metadata: []byte(`{"b":1.50,"a":"<x>"}`),
	}
	h := &SnapshotHistory{ID: uuid.New(), MemoryID: m.ID, Event: m.Event, Change: "ADD", Version: 1, NewText: &text, At: at}
	i := &SnapshotItem{Account: "u", ItemID: "i", Event: uuid.New(), Revision: 2, LandedRevision: 1, Text: "x", At: at, CreatedAt: at, UpdatedAt: at}
	if change != nil {
		change(m, h, i)
	}
	return []string{
		snapshotLine(t, SnapshotLine{Header: &SnapshotHeader{Version: SnapshotVersion, Workspace: uuid.New(), CreatedAt: at}}),
		snapshotLine(t, SnapshotLine{Memory: m}), snapshotLine(t, SnapshotLine{History: h}), snapshotLine(t, SnapshotLine{Item: i}),
		snapshotLine(t, SnapshotLine{Footer: &SnapshotFooter{Memories: 1, History: 1, Items: 1}}),
	}
}

// checkAll answers the number of the first wrong line, 0 without one.
func checkAll(t testing.TB, lines []string) int {
	t.Helper()
	check := NewSnapshotCheck(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	for n, raw := range lines {
		if _, err := check.Line([]byte(raw)); err != nil {
			if !errors.Is(err, ErrUnreadable) {
				t.Fatal(err)
			}
			return n + 1
		}
	}
	if _, err := check.End(); err != nil {
		return len(lines) + 1
	}
	return 0
}

func TestSnapshotLine(t *testing.T) {
	t.Parallel()
	for n, raw := range snapshotOf(t, nil) {
		line, err := DecodeSnapshotLine([]byte(raw))
		if err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		if again := snapshotLine(t, line); again != raw {
			t.Errorf("line %d is %s, was %s", n+1, again, raw)
		}
	}
}

func TestSnapshotCheck(t *testing.T) {
	t.Parallel()
	blank, long := " ", strings.Repeat("x", MaxScope+1)
	zero := time.Time{}
	for name, c := range map[string]struct {
		line   int
		change func(m *SnapshotMemory, h *SnapshotHistory, i *SnapshotItem)
	}{
		"AsItIs":          {0, nil},
		"NoScope":         {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { m.UserID = nil }},
		"UntrimmedScope":  {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { s := "u "; m.UserID = &s }},
		"LongScope":       {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { m.RunID = &long }},
		"NoText":          {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { m.Text = blank }},
		"NoVersion":       {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { m.Version = 0 }},
		"UnknownFactType": {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { m.FactType = &blank }},
		"ListAsMetadata":  {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { m.Metadata = []byte(`[1]`) }},
		"NoTime":          {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) { m.SaidAt = zero }},
		"ItemWithoutUser": {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) {
			m.UserID, m.RunID, m.ItemID = nil, m.UserID, m.UserID
		}},
		"AcceptedLater": {2, func(m *SnapshotMemory, _ *SnapshotHistory, _ *SnapshotItem) {
			m.AcceptedAt = m.AcceptedAt.AddDate(1, 0, 0)
		}},
		"OthersHistory":    {3, func(_ *SnapshotMemory, h *SnapshotHistory, _ *SnapshotItem) { h.MemoryID = uuid.New() }},
		"HistoryTooNew":    {3, func(_ *SnapshotMemory, h *SnapshotHistory, _ *SnapshotItem) { h.Version = 3 }},
		"UnknownChange":    {3, func(_ *SnapshotMemory, h *SnapshotHistory, _ *SnapshotItem) { h.Change = "NONE" }},
		"NoAccount":        {4, func(_ *SnapshotMemory, _ *SnapshotHistory, i *SnapshotItem) { i.Account = "" }},
		"LandedTooFar":     {4, func(_ *SnapshotMemory, _ *SnapshotHistory, i *SnapshotItem) { i.LandedRevision = 3 }},
		"ItemWithoutWords": {4, func(_ *SnapshotMemory, _ *SnapshotHistory, i *SnapshotItem) { i.Text = blank }},
	} {
		if got := checkAll(t, snapshotOf(t, c.change)); got != c.line {
			t.Errorf("%s: line %d is wrong, want %d", name, got, c.line)
		}
	}

	t.Run("OrderIsPartOfIt", func(t *testing.T) {
		t.Parallel()
		good := snapshotOf(t, nil)
		for name, c := range map[string]struct {
			places []int
			line   int
		}{
			"Nothing": {nil, 1}, "HeaderTwice": {[]int{0, 0}, 2}, "MemoryTwice": {[]int{0, 1, 2, 1}, 4},
			"HistoryTwice": {[]int{0, 1, 2, 2}, 4}, "NoHistory": {[]int{0, 1, 3}, 3}, "ItemBeforeMemory": {[]int{0, 3, 1}, 3},
			"ItemTwice": {[]int{0, 1, 2, 3, 3}, 5}, "HistoryAlone": {[]int{0, 2}, 2}, "NoFooter": {[]int{0, 1, 2, 3}, 5},
			"AfterFooter": {[]int{0, 1, 2, 3, 4, 3}, 6}, "CountsDiffer": {[]int{0, 1, 2, 4}, 4},
		} {
			lines := make([]string, len(c.places))
			for i, place := range c.places {
				lines[i] = good[place]
			}
			if got := checkAll(t, lines); got != c.line {
				t.Errorf("%s: line %d is wrong, want %d", name, got, c.line)
			}
		}
	})
}

func TestSplitSnapshot(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("line\n", 450) + strings.Repeat("y", 2<<20) + "\nlast"
	var joined []byte
	parts := 0
	err := SplitSnapshot(strings.NewReader(body), func(part []byte) error {
		parts++
		if n := bytes.Count(part, []byte("\n")); n > SnapshotPartLines || n != len(SnapshotLines(part)) {
			t.Errorf("a part of %d lines", n)
		}
		joined = append(joined, part...)
		return nil
	})
	if err != nil || string(joined) != body+"\n" || parts != 5 {
		t.Errorf("%d parts of %d bytes, %v", parts, len(joined), err)
	}
	for name, bad := range map[string]string{"Empty": "", "LongLine": strings.Repeat("x", MaxSnapshotLine+2)} {
		if err := SplitSnapshot(strings.NewReader(bad), func([]byte) error { return nil }); !fault.Is(err, fault.InvalidBody) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
