package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	t.Run("ComesBackAsItWasStored", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		at := w.frozen()
		scope := memory.Scope{UserID: "ana", RunID: "r1"}
		metadata := `{"z":1.50,"a":[1e2,{"b":"\u00e9"}],"n":9007199254740991, "deep" : null}`
		text := "  two  spaces\nand 咖啡 ☕️ "
		id := w.store(scope, metadata, text).ids()[0]
		got, err := w.db.Memory(t.Context(), w.caller.Workspace.ID, id)
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != id || got.Scope != scope || got.Text != text || got.Role != "user" || got.Version != 1 ||
			!got.CreatedAt.Equal(at) || got.CreatedAt.Location() != time.UTC || got.ValidTo != nil {
			t.Fatalf("%+v", got)
		}
		if stored := one[string](w, `SELECT metadata::text FROM memories WHERE id = $1`, id); string(got.Metadata) != stored {
			t.Fatalf("metadata %s, stored %s", got.Metadata, stored)
		}
		w.exec(`UPDATE memories SET metadata = $2::text::json WHERE id = $1`, id, metadata)
		if got, err = w.db.Memory(t.Context(), w.caller.Workspace.ID, id); err != nil || string(got.Metadata) != metadata {
			t.Fatalf("metadata %s, %v", got.Metadata, err)
		}
	})
	t.Run("WithoutMetadataHasNone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(memory.Scope{UserID: "ana"}, "x")[0]
		got, err := w.db.Memory(t.Context(), w.caller.Workspace.ID, id)
		if err != nil || got.Metadata != nil {
			t.Fatalf("metadata %q, %v", got.Metadata, err)
		}
	})
	t.Run("WhatIsNotLiveOrNotOursIsUnknown", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		ids := w.remember(memory.Scope{UserID: "ana"}, "kept", "deleted", "expired", "superseded")
		w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = $1`, ids[1])
		w.exec(`UPDATE memories SET expires_at = clock_timestamp() WHERE id = $1`, ids[2])
		w.exec(`UPDATE memories SET valid_to = clock_timestamp() WHERE id = $1`, ids[3])
		ours := w.caller.Workspace.ID
		_, nobodys := w.db.Memory(t.Context(), ours, uuid.New())
		for name, ask := range map[string][2]uuid.UUID{
			"deleted": {ours, ids[1]}, "expired": {ours, ids[2]}, "another workspace's": {uuid.New(), ids[0]},
		} {
			_, err := w.db.Memory(t.Context(), ask[0], ask[1])
			if !fault.Is(err, fault.MemoryNotFound) || err.Error() != nobodys.Error() {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got, err := w.db.Memory(t.Context(), ours, ids[3]); err != nil || got.ValidTo == nil {
			t.Errorf("superseded: %+v, %v", got, err)
		}
	})
}

func TestMemories(t *testing.T) {
	t.Parallel()
	t.Run("ListsOnlyCurrentRecords", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 20)
		w.frozen()
		ids := w.remember(memory.Scope{UserID: "ana"}, "kept", "deleted", "expired", "superseded", "expires later")
		w.exec(`UPDATE memories SET deleted_at = created_at WHERE id = $1`, ids[1])
		w.exec(`UPDATE memories SET expires_at = created_at WHERE id = $1`, ids[2])
		w.exec(`UPDATE memories SET valid_to = created_at WHERE id = $1`, ids[3])
		w.exec(`UPDATE memories SET expires_at = created_at + interval '1 hour' WHERE id = $1`, ids[4])
		if got := textsOf(w.memories(memory.Scope{UserID: "ana"}, 10)); !slices.Equal(got, []string{"expires later", "kept"}) && !slices.Equal(got, []string{"kept", "expires later"}) {
			t.Fatalf("%q", got)
		}
		w.advance(time.Hour)
		if got := textsOf(w.memories(memory.Scope{UserID: "ana"}, 10)); !slices.Equal(got, []string{"kept"}) {
			t.Fatalf("%q", got)
		}
	})
	t.Run("AnyFieldsOfTheScopeFilter", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 20)
		full := memory.Scope{UserID: "ana", AgentID: "a1", RunID: "r1", AppID: "p1"}
		w.remember(full, "full")
		w.remember(memory.Scope{UserID: "ana", AgentID: "a1"}, "two")
		w.remember(memory.Scope{UserID: "ana"}, "user")
		w.remember(memory.Scope{AgentID: "a1"}, "agent")
		w.remember(memory.Scope{UserID: "bob", AppID: "p1"}, "bob")
		for _, c := range []struct {
			scope memory.Scope
			want  []string
		}{
			{memory.Scope{UserID: "ana"}, []string{"full", "two", "user"}},
			{memory.Scope{AgentID: "a1"}, []string{"agent", "full", "two"}},
			{memory.Scope{UserID: "ana", AgentID: "a1"}, []string{"full", "two"}},
			{memory.Scope{RunID: "r1"}, []string{"full"}},
			{memory.Scope{AppID: "p1"}, []string{"bob", "full"}},
			{full, []string{"full"}},
			{memory.Scope{UserID: "a1"}, nil},
			{memory.Scope{}, []string{"agent", "bob", "full", "two", "user"}},
		} {
			got := textsOf(w.memories(c.scope, 2))
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v: %q, want %q", c.scope, got, c.want)
			}
		}
	})
	t.Run("PagesStayStableWhileOthersArrive", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 200)
		w.frozen()
		var want []uuid.UUID
		for i := range 10 {
			want = append(want, w.remember(memory.Scope{UserID: "ana"}, "a"+keyName(i), "b"+keyName(i), "c"+keyName(i))...)
			w.advance(time.Second)
		}
		query := recall.MemoryQuery{Scope: memory.Scope{UserID: "ana"}, Limit: 4}
		var got []memory.Record
		for range 100 {
			page, err := w.db.Memories(t.Context(), w.caller.Workspace.ID, query)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page.Records...)
			if page.Next == nil {
				break
			}
			query.After = page.Next
			w.remember(memory.Scope{UserID: "ana"}, "new "+page.Next.ID.String())
			w.advance(time.Second)
		}
		seen := map[uuid.UUID]bool{}
		for i, record := range got {
			if seen[record.ID] || !slices.Contains(want, record.ID) {
				t.Fatalf("place %d is twice or new: %q", i, record.Text)
			}
			seen[record.ID] = true
			if i > 0 && record.CreatedAt.After(got[i-1].CreatedAt) {
				t.Fatalf("place %d is newer than the one before", i)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d of %d", len(got), len(want))
		}
	})
	t.Run("AnotherWorkspaceSeesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.remember(memory.Scope{UserID: "ana"}, "ours")
		other := w.workspace(0)
		page, err := w.db.Memories(t.Context(), other.Workspace.ID, recall.MemoryQuery{Scope: memory.Scope{UserID: "ana"}, Limit: 10})
		if err != nil || len(page.Records) != 0 {
			t.Fatalf("%+v, %v", page, err)
		}
	})
	t.Run("APageReadsAPagesWorthOfRows", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.fill(20_000)
		args := pgx.NamedArgs{
			"workspace": w.caller.Workspace.ID, "user_id": "user-3", "limit": 51, "now": nil,
			"after_at": one[time.Time](w, `SELECT max(created_at) FROM memories`), "after_id": uuid.Max,
		}
		plan := w.plan(postgres.MemoriesSQL, args)
		if !strings.Contains(plan, "memories_user") || strings.Contains(plan, "Sort") {
			t.Fatalf("the list doesn't walk its index:\n%s", plan)
		}
	})
}

// fill writes n records of ten users straight into the tables, with terms of two words each.
func (w *world) fill(n int) {
	w.t.Helper()
	w.exec(`
INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, accepted_at, said_at, valid_from, created_at, updated_at)
SELECT gen_random_uuid(), $1, gen_random_uuid(), 'user-' || n % 10, sha256('lane'), 'fact number ' || n, sha256(n::text::bytea), at, at, at, at, at
  FROM generate_series(1, $2) n, LATERAL (SELECT timestamptz '2026-01-01' + n * interval '1 second' AS at) x`, w.caller.Workspace.ID, n)
	w.exec(`
INSERT INTO memory_terms (memory_id, workspace_id, version, content_key, terms, counts, length)
SELECT id, workspace_id, 1, content_key, string_to_array(text, ' '), '{1,1,1}', 3 FROM memories WHERE workspace_id = $1`, w.caller.Workspace.ID)
	w.exec(`ANALYZE memories, memory_terms`)
}

func textsOf(records []memory.Record) []string {
	var texts []string
	for _, r := range records {
		texts = append(texts, r.Text)
	}
	return texts
}
