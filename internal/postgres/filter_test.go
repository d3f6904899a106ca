package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// filtered searches user ana for the word tea under a filter and answers the names of what was found, in order.
func (w *world) filtered(filter string) string {
	w.t.Helper()
	parsed, err := memory.ParseFilter([]byte(filter))
	if err != nil {
		w.t.Fatalf("%s: %v", filter, err)
	}
	found, err := w.searcher(offline.NewEmbedder()).Search(w.t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
		Text: "tea", Scope: memory.Scope{UserID: "ana"}, Filter: parsed, Limit: 100, Mode: recall.Lexical, LatestOnly: true,
	})
	if err != nil {
		w.t.Fatalf("%s: %v", filter, err)
	}
	var names []string
	for _, r := range found {
		names = append(names, strings.Fields(r.Text)[0])
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestSearchFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	ana := memory.Scope{UserID: "ana"}
	one := w.store(ana, `{"n":1,"tags":["hot","green"],"deep":{"er":"x","é":null},"at":"2026-02-01T09:00:00+09:00","ok":true,"s":"Ünit 100%_a.b"}`, "one tea Ärger").ids()[0]
	two := w.store(memory.Scope{UserID: "ana", RunID: "r'1", AgentID: "bot"}, `{"n":10,"tags":"hot","at":"2026-01-31T23:30:00Z","ok":false,"s":"unit"}`, `two tea 100% [a-z]* \d`).ids()[0]
	three := w.store(ana, `{"n":2.50,"at":"2026-02-31T00:00:00Z","s":7}`, "three tea 茶").ids()[0]
	w.store(ana, "", "four tea").ids()
	w.exec(`UPDATE memories SET type = 'fact', event_date = '2026-01-01T00:00:00Z', created_at = '2026-01-01T00:00:00.000005Z' WHERE id = $1`, one)
	w.exec(`UPDATE memories SET type = 'goal', event_date = '2026-01-01T09:00:00Z', expires_at = '2999-01-01' WHERE id = $1`, two)
	w.exec(`UPDATE memories SET version = 3, item_id = 'i-3' WHERE id = $1`, three)
	const all = "four one three two"
	for _, c := range []struct{ filter, want string }{
		{``, all},
		{`{"user_id":"ana"}`, all},
		{`{"user_id":"bob"}`, ""},
		{`{"run_id":"r'1"}`, "two"},
		{`{"run_id":null}`, "four one three"},
		{`{"agent_id":{"ne":null}}`, "two"},
		{`{"agent_id":{"ne":"bot"}}`, "four one three"},
		{`{"app_id":"x"}`, ""},
		{`{"type":"fact"}`, "one"},
		{`{"type":{"in":["fact","goal","x"]}}`, "one two"},
		{`{"NOT":{"type":{"in":["fact","goal"]}}}`, "four three"},
		{`{"role":"user"}`, all},
		{`{"item_id":"i-3"}`, "three"},
		{`{"version":3}`, "three"},
		{`{"version":{"in":[1,2]}}`, "four one two"},
		{`{"version":{"gt":1.5}}`, "three"},
		{`{"version":{"gte":3,"lte":3}}`, "three"},
		{`{"version":{"lt":1e308}}`, all},
		{`{"version":{"gt":-1e-320}}`, all},
		// Instants, whatever offset they are written with.
		{`{"event_date":"2026-01-01T09:00:00+09:00"}`, "one"},
		{`{"event_date":{"gt":"2026-01-01T09:00:00+09:00"}}`, "two"},
		{`{"event_date":{"gte":"2026-01-01T00:00:00Z","lt":"2026-01-01T09:00:00Z"}}`, "one"},
		{`{"event_date":null}`, "four three"},
		{`{"event_date":{"ne":"2026-01-01T00:00:00Z"}}`, "four three two"},
		{`{"event_date":{"in":["2026-01-01T00:00:00Z","2025-12-31T23:00:00-10:00"]}}`, "one two"},
		{`{"NOT":{"event_date":{"lt":"2026-01-01T09:00:00Z"}}}`, "four three two"},
		{`{"created_at":{"lt":"2026-01-01T00:00:00.000006Z","gt":"2026-01-01T00:00:00.000004Z"}}`, "one"},
		{`{"updated_at":{"gt":"2026-01-01T00:00:00Z"}}`, all},
		{`{"expires_at":{"gt":"2998-01-01T00:00:00Z"}}`, "two"},
		{`{"memory":"four tea"}`, "four"},
		{`{"memory":{"contains":"Ärger"}}`, "one"},
		{`{"memory":{"contains":"ärger"}}`, ""},
		{`{"memory":{"icontains":"äRGER"}}`, "one"},
		{`{"memory":{"contains":"100%"}}`, "two"},
		{`{"memory":{"icontains":"100% [A-Z]* \\D"}}`, "two"},
		{`{"memory":{"icontains":"***:tea"}}`, ""},
		{`{"memory":{"icontains":"茶"}}`, "three"},
		// Metadata, by its own types.
		{`{"metadata.n":1}`, "one"},
		{`{"metadata.n":1.0}`, "one"},
		{`{"metadata.n":"1"}`, ""},
		{`{"metadata.n":{"gt":2}}`, "three two"},
		{`{"metadata.n":{"gt":2,"lt":10}}`, "three"},
		{`{"metadata.n":{"in":[2.5,10,"x",true]}}`, "three two"},
		{`{"NOT":{"metadata.n":{"gt":2}}}`, "four one"},
		{`{"metadata.ok":true}`, "one"},
		{`{"metadata.ok":{"ne":true}}`, "four three two"},
		{`{"metadata.deep.er":"x"}`, "one"},
		{`{"metadata.deep.er.there":"x"}`, ""},
		{`{"metadata.deep.é":null}`, all},
		{`{"metadata.n":null}`, "four"},
		{`{"metadata.n":{"ne":null}}`, "one three two"},
		{`{"metadata.tags":{"contains":"hot"}}`, "one two"},
		{`{"metadata.tags":{"contains":"ho"}}`, "two"},
		{`{"metadata.n":{"contains":1}}`, ""},
		{`{"metadata.s":{"contains":"100%_a.b"}}`, "one"},
		{`{"metadata.s":{"icontains":"üNIT"}}`, "one"},
		{`{"metadata.s":{"icontains":"unit"}}`, "two"},
		// Texts that are times are compared as instants; the 31st of February breaks no search.
		{`{"metadata.at":{"gte":"2026-02-01T00:00:00Z","lt":"2026-02-02T00:00:00Z"}}`, "one"},
		{`{"metadata.at":{"lt":"2026-02-01T00:00:00+00:00"}}`, "two"},
		{`{"metadata.s":{"lt":"2026-02-01T00:00:00+00:00"}}`, ""},
		// Groups.
		{`{"OR":[{"type":"fact"},{"version":3}]}`, "one three"},
		{`{"AND":[{"OR":[{"type":"fact"},{"type":"goal"}]},{"NOT":[{"run_id":"r'1"}]}]}`, "one"},
		{`{"NOT":[{"type":"fact"},{"type":"goal"}]}`, "four three"},
		{`{"NOT":{"NOT":{"NOT":{"AND":[{"type":"fact"},{"version":1}]}}}}`, "four three two"},
		{`{"type":"fact","metadata.n":1,"OR":[{"version":1},{"version":2}]}`, "one"},
		{`{"memory":{"contains":"'; DROP TABLE memories; --"}}`, ""},
		{`{"metadata.a'); DROP TABLE memories; --":1}`, ""},
	} {
		if got := w.filtered(c.filter); got != c.want {
			t.Errorf("%s finds %q, want %q", c.filter, got, c.want)
		}
	}
}

func TestSearchFilterBeforeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.corpus("ana", 1001)
	w.exec(`UPDATE memories SET type = 'goal' WHERE created_at = (SELECT min(created_at) FROM memories)`)
	parsed, err := memory.ParseFilter([]byte(`{"type":"goal"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid} {
		found, err := w.searcher(offline.NewEmbedder()).Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
			Text: "what did she tell us in the morning", Scope: memory.Scope{UserID: "ana"}, Filter: parsed, Limit: 1, Mode: mode,
		})
		if err != nil || len(found) != 1 || found[0].Type != "goal" {
			t.Errorf("%s: %+v, %v", mode, found, err)
		}
	}
	within := recall.Searched{Scope: memory.Scope{UserID: "ana"}, Limit: 10_000}
	if refs, err := w.db.Searched(t.Context(), w.caller.Workspace.ID, within); err != nil || len(refs) != 1001 {
		t.Fatalf("%d records, %v", len(refs), err)
	}
}
