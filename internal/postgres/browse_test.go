package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestKeptMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	at := w.frozen()
	scope := memory.Scope{UserID: "ana", RunID: "r"}
	ids := w.remember(scope, "live", "deleted", "expired", "expires later", "superseded")
	w.exec(`UPDATE memories SET deleted_at = $2 WHERE id = $1`, ids[1], at)
	w.exec(`UPDATE memories SET expires_at = $2 WHERE id = $1`, ids[2], at)
	w.exec(`UPDATE memories SET expires_at = $2 WHERE id = $1`, ids[3], at.Add(time.Microsecond))
	w.exec(`UPDATE memories SET valid_to = $2 WHERE id = $1`, ids[4], at)
	ours := w.caller.Workspace.ID
	for i, want := range []recall.Kept{
		{Record: memory.Record{Text: "live"}},
		{Record: memory.Record{Text: "deleted"}, Deleted: true},
		{Record: memory.Record{Text: "expired"}, Expired: true},
		{Record: memory.Record{Text: "expires later"}},
		{Record: memory.Record{Text: "superseded"}},
	} {
		got, err := w.db.KeptMemory(t.Context(), ours, ids[i])
		if err != nil || got.Text != want.Text || got.Deleted != want.Deleted || got.Expired != want.Expired || got.Scope != scope {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	for name, ask := range map[string][2]uuid.UUID{"another workspace's": {w.workspace(0).Workspace.ID, ids[0]}, "nobody's": {ours, uuid.New()}} {
		if _, err := w.db.KeptMemory(t.Context(), ask[0], ask[1]); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// browse reads one page of what the user has.
func (w *world) browse(user string, page, size int, latest bool) recall.Browsed {
	w.t.Helper()
	found, err := w.db.BrowseMemories(w.t.Context(), w.caller.Workspace.ID, recall.BrowseQuery{
		PageQuery: recall.PageQuery{Page: page, Size: size}, Scope: memory.Scope{UserID: user}, LatestOnly: latest,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestBrowseMemories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20)
	at := w.frozen()
	var texts []string
	for _, text := range []string{"one", "two", "three", "four", "five"} {
		w.remember(memory.Scope{UserID: "ana"}, text)
		w.advance(time.Second)
		texts = append(texts, text)
	}
	gone := w.remember(memory.Scope{UserID: "ana"}, "deleted", "expired", "superseded")
	w.exec(`UPDATE memories SET deleted_at = $2 WHERE id = $1`, gone[0], at)
	w.exec(`UPDATE memories SET expires_at = $2 WHERE id = $1`, gone[1], at)
	w.exec(`UPDATE memories SET valid_to = $2 WHERE id = $1`, gone[2], at)
	w.remember(memory.Scope{UserID: "bob"}, "bob's")
	slices.Reverse(texts)
	for page, want := range [][]string{texts[:2], texts[2:4], texts[4:], {}} {
		got := w.browse("ana", page+1, 2, true)
		if read := textsOf(got.Records); !slices.Equal(read, want) || got.Total != 5 {
			t.Errorf("page %d: %q of %d, want %q", page+1, read, got.Total, want)
		}
	}
	for name, total := range map[string]int64{"page that just fits": w.browse("ana", 1, 5, true).Total, "larger page": w.browse("ana", 1, 100, true).Total} {
		if total != 5 {
			t.Errorf("%s: %d", name, total)
		}
	}
	if got := w.browse("ana", 1, 100, false); got.Total != 6 {
		t.Errorf("with the superseded one: %d", got.Total)
	}
	with, err := w.db.BrowseMemories(t.Context(), w.caller.Workspace.ID, recall.BrowseQuery{
		PageQuery: recall.PageQuery{Page: 1, Size: 10}, Scope: memory.Scope{UserID: "ana"}, LatestOnly: true, Expired: true,
	})
	if err != nil || with.Total != 6 || !slices.Contains(textsOf(with.Records), "expired") || slices.Contains(textsOf(with.Records), "deleted") {
		t.Errorf("with the expired one: %q of %d, %v", textsOf(with.Records), with.Total, err)
	}
	if got := w.browse("nobody", 1, 2, true); got.Total != 0 || len(got.Records) != 0 {
		t.Errorf("nobody has %+v", got)
	}
	w.caller = w.workspace(0)
	if got := w.browse("ana", 1, 2, true); got.Total != 0 || len(got.Records) != 0 {
		t.Errorf("another workspace sees %+v", got)
	}
}

func TestBrowseEntities(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20)
	at := w.frozen()
	w.remember(memory.Scope{UserID: "ana", AgentID: "a"}, "one", "two")
	w.remember(memory.Scope{UserID: "bob", RunID: "r"}, "three")
	gone := w.remember(memory.Scope{UserID: "eve", AppID: "p"}, "deleted", "expired", "superseded")
	w.exec(`UPDATE memories SET deleted_at = $2 WHERE id = $1`, gone[0], at)
	w.exec(`UPDATE memories SET expires_at = $2 WHERE id = $1`, gone[1], at)
	w.exec(`UPDATE memories SET valid_to = $2 WHERE id = $1`, gone[2], at)
	type named struct {
		kind     recall.EntityType
		id       string
		memories int64
	}
	all := []named{{recall.Agent, "a", 2}, {recall.Run, "r", 1}, {recall.User, "ana", 2}, {recall.User, "bob", 1}}
	for page, want := range [][]named{all[:3], all[3:], nil} {
		found, err := w.db.BrowseEntities(t.Context(), w.caller.Workspace.ID, recall.PageQuery{Page: page + 1, Size: 3})
		if err != nil {
			t.Fatal(err)
		}
		var got []named
		for _, e := range found.Entities {
			got = append(got, named{e.Type, e.ID, e.Memories})
		}
		if !slices.Equal(got, want) {
			t.Errorf("page %d: %+v, want %+v", page+1, got, want)
		}
		if found.Total() != 4 || found.Totals[recall.User] != 2 || found.Totals[recall.Agent] != 1 || found.Totals[recall.Run] != 1 || found.Totals[recall.App] != 0 {
			t.Errorf("page %d: totals %v", page+1, found.Totals)
		}
	}
	found, err := w.db.BrowseEntities(t.Context(), w.workspace(0).Workspace.ID, recall.PageQuery{Page: 1, Size: 3})
	if err != nil || found.Total() != 0 || len(found.Entities) != 0 {
		t.Errorf("another workspace sees %+v, %v", found, err)
	}
}

func TestBrowseEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20)
	w.frozen()
	var ids []uuid.UUID
	for _, k := range []string{"k1", "k2", "k3"} {
		ids = append(ids, w.accept(k, say("ana", "I like "+k)))
		w.advance(time.Second)
	}
	w.remember(memory.Scope{UserID: "ana"}, "another kind")
	slices.Reverse(ids)
	reader := w.db.EventReader(maxAttempts)
	for page, want := range [][]uuid.UUID{ids[:2], ids[2:], nil} {
		found, err := reader.BrowseEvents(t.Context(), w.caller.Workspace.ID, []task.Kind{task.Infer}, recall.PageQuery{Page: page + 1, Size: 2})
		if err != nil {
			t.Fatal(err)
		}
		var got []uuid.UUID
		for _, e := range found.Events {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) || found.Total != 3 {
			t.Errorf("page %d: %v of %d, want %v", page+1, got, found.Total, want)
		}
	}
	found, err := reader.BrowseEvents(t.Context(), w.workspace(0).Workspace.ID, []task.Kind{task.Infer}, recall.PageQuery{Page: 1, Size: 2})
	if err != nil || found.Total != 0 || len(found.Events) != 0 {
		t.Errorf("another workspace sees %+v, %v", found, err)
	}
}
