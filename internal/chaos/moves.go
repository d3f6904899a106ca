package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	domain "github.com/holdfast-memory/holdfast/internal/command"
)

// export asks for a snapshot of the whole workspace, while everything in it changes.
func (a *actor) export(ctx context.Context, n int, _ choice) bool {
	cmd := &command{
		space: a.space, kind: kindExport,
		request: request{method: http.MethodPost, path: "/v1/exports", key: a.cfg.key(a.number, n)},
	}
	a.exports = append(a.exports, cmd)
	a.issue(ctx, cmd)
	return true
}

// readExport reads a snapshot that may not be there yet, or not any more.
func (a *actor) readExport(ctx context.Context, _ int, c choice) bool {
	cmd, found := pick(a.exports, c.target)
	if !found || cmd.event == uuid.Nil {
		return false
	}
	if _, err := a.client.snapshot(ctx, cmd); err != nil && !errors.Is(err, errNoAnswer) {
		a.notes.contradict("a snapshot is not whole", fmt.Sprintf("%s: %v", cmd.event, err))
	}
	return true
}

// errNoAnswer says that an outage has outlasted a caller's patience.
var errNoAnswer = errors.New("no definite answer")

// snapshot reads a whole snapshot, nil if there is none.
func (c *client) snapshot(ctx context.Context, cmd *command) ([]byte, error) {
	got, err := c.send(ctx, cmd.space, request{method: http.MethodGet, path: "/v1/exports/evt_" + cmd.event.String()})
	switch {
	case err != nil:
		return nil, errors.Join(errNoAnswer, err)
	case got.status == http.StatusNotFound, got.status == http.StatusGone:
		return nil, nil
	case !got.ok():
		return nil, fmt.Errorf("%d %s", got.status, got.code())
	}
	memories, footer := int64(0), (*domain.SnapshotFooter)(nil)
	for _, raw := range domain.SnapshotLines(got.body) {
		line, err := domain.DecodeSnapshotLine(raw)
		if err != nil {
			return nil, err
		}
		if line.Memory != nil {
			memories++
		}
		footer = line.Footer
	}
	if footer == nil || footer.Memories != memories {
		return nil, fmt.Errorf("%d memories before the end %+v", memories, footer)
	}
	return got.body, nil
}

// checkExports holds that every snapshot that is still given out is whole, and has nothing that was not to be kept.
func (w *world) checkExports(ctx context.Context, n *notes, r *report) error {
	gone := map[string]string{}
	for _, c := range n.commands {
		if c.event != uuid.Nil && !c.late && c.erased {
			for _, word := range append(append([]string{}, c.facts...), c.raw...) {
				gone[word] = "erased content is in a snapshot"
			}
		}
	}
	for _, it := range n.items {
		if it.sure && it.forgotten {
			for _, word := range it.texts {
				gone[word] = "forgotten content is in a snapshot"
			}
		}
	}
	reader := w.client("exports", n)
	for _, c := range n.accepted() {
		if c.kind != kindExport {
			continue
		}
		snapshot, err := reader.snapshot(ctx, c)
		if err != nil {
			r.find(lost, "a snapshot is not whole", "%s: %v", c.event, err)
		}
		for _, word := range canariesIn(snapshot) {
			if why := gone[word]; why != "" {
				r.find(leaked, why, "%s is in %s", word, c.event)
			}
			if word[3] != canaryFact {
				r.find(leaked, "raw input is in a snapshot", "%s is in %s", word, c.event)
			}
		}
	}
	return nil
}

// imported is how many memories a newcomer brings: more than an import takes in one piece.
const imported = 120

// baggage is the snapshot that a newcomer brings, and the words in it. Equal seeds bring the same.
func (c Config) baggage(n int) (snapshot []byte, words []string, err error) {
	at := time.Now().UTC().Truncate(time.Microsecond).Add(-time.Hour)
	user, event := "newcomer", c.identity("event", n, 0)
	lines := []domain.SnapshotLine{{Header: &domain.SnapshotHeader{
		Version: domain.SnapshotVersion, Workspace: c.identity("workspace", n, 0), CreatedAt: at.Add(time.Minute),
	}}}
	for i := range imported {
		word := c.canary(canaryFact, newcomerActor, n, i)
		text := "brought along, " + word
		id := c.identity("memory", n, i)
		lines = append(lines, domain.SnapshotLine{Memory: &domain.SnapshotMemory{
			ID: id, Event: event, UserID: &user, Text: text, Version: 1, AcceptedAt: at, SaidAt: at, ValidFrom: at, CreatedAt: at, UpdatedAt: at,
		}}, domain.SnapshotLine{History: &domain.SnapshotHistory{
			ID: c.identity("history", n, i), MemoryID: id, Event: event, Ordinal: int32(i), Change: "ADD", Version: 1, NewText: &text, At: at,
		}})
		words = append(words, word)
	}
	lines = append(lines, domain.SnapshotLine{Footer: &domain.SnapshotFooter{Memories: imported, History: imported}})
	var out bytes.Buffer
	for _, line := range lines {
		raw, err := line.AppendTo(nil)
		if err != nil {
			return nil, nil, err
		}
		out.Write(raw)
	}
	return out.Bytes(), words, nil
}

// newcomerActor is the number under which newcomers have their words.
const newcomerActor = 1_000

// identity is an id of one place in the plan; those of one kind sort by place.
func (c Config) identity(kind string, n, place int) uuid.UUID {
	id := uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d/%s/%d/%d", c.Seed, kind, n, place))
	id[0], id[1] = byte(place>>8), byte(place)
	return id
}
