package postgres_test

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestRoundTrips holds what requests that only read wait for.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea", "Ana likes cake")
	key := w.createKey(w.caller.Workspace.ID, []access.Permission{access.MemoryRead}, nil)
	proxy := testkit.CommitCutProxy(t, w.url)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: proxy.URL(), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	searcher, err := recall.NewSearcher(db, offline.NewEmbedder())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		trips int64
		run   func() error
	}{
		"authenticate": {1, func() error { // setting and question together, no transaction of its own
			_, err := db.Authenticate(t.Context(), key)
			return err
		}},
		"search": {2, func() error { // which records there are, and the found ones; the rest is remembered
			found, err := searcher.Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
				Text: "tea", Scope: memory.Scope{UserID: "ana"}, Limit: 10, LatestOnly: true,
			})
			if err == nil && len(found) == 0 {
				t.Error("nothing is found")
			}
			return err
		}},
	} {
		trips := int64(0)
		for range 3 { // the first prepares the statements and learns the records
			before := proxy.RoundTrips()
			if err := c.run(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			trips = proxy.RoundTrips() - before
		}
		if trips != c.trips {
			t.Errorf("%s: %d round trips, want %d", name, trips, c.trips)
		}
	}
}
