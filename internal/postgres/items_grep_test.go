package postgres_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

func TestGrep(t *testing.T) {
	t.Parallel()
	w := newItemWorld(t, 1000)
	var inputs []command.ItemInput
	for i := range 150 {
		inputs = append(inputs, in("s", input(strconv.Itoa(i), "text "+strconv.Itoa(i))))
	}
	inputs = append(inputs, in("t", input("cat", "I have a Cat")))
	w.keep(inputs...)
	w.remember(memory.Scope{UserID: "u", RunID: "t"}, "has a Cat", "else")
	w.remember(memory.Scope{UserID: "v"}, "has a Cat")
	grep := func(ask recall.Grep) recall.Grepped {
		t.Helper()
		if ask.Account == "" {
			ask.Account = "u"
		}
		if ask.Limit == 0 {
			ask.Limit = 100
		}
		found, err := w.read.Grep(t.Context(), w.caller.Workspace.ID, ask)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, c := range []struct {
		name           string
		ask            recall.Grep
		items, records int
		truncated      bool
	}{
		{"Substring", recall.Grep{Pattern: "Cat"}, 1, 1, false},
		{"CaseCounts", recall.Grep{Pattern: "cat"}, 0, 0, false},
		{"Regex", recall.Grep{Pattern: "(?i)\\bcat$", Regex: true}, 1, 1, false},
		{"ADotIsADot", recall.Grep{Pattern: "."}, 0, 0, false},
		{"Session", recall.Grep{Pattern: "t", Session: "t"}, 1, 1, false},
		{"EveryPage", recall.Grep{Pattern: "text 14"}, 11, 0, false},
		{"Limit", recall.Grep{Pattern: "text", Limit: 7}, 7, 0, true},
		{"AnotherAccount", recall.Grep{Pattern: "Cat", Account: "v"}, 0, 1, false},
	} {
		found := grep(c.ask)
		if len(found.Items) != c.items || len(found.Records) != c.records && c.name != "Session" || found.Truncated != c.truncated {
			t.Errorf("%s: %d items, %d records, truncated %v", c.name, len(found.Items), len(found.Records), found.Truncated)
		}
	}
	for _, pattern := range []string{"", "(", strings.Repeat("a", recall.MaxPattern+1), "a{1001}"} {
		_, err := w.read.Grep(t.Context(), w.caller.Workspace.ID, recall.Grep{Account: "u", Pattern: pattern, Regex: true, Limit: 1})
		if !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
}

func TestAPageOfItemsIsReadFromTheIndex(t *testing.T) {
	t.Parallel()
	w := newItemWorld(t, 0)
	w.exec(`INSERT INTO items (workspace_id, item_key, account, item_id, event_id, revision, content_hash, text, at, task_id, created_at, updated_at)
SELECT $1, sha256(int4send(n)), 'u', n::text, 'ev_0', 1, sha256(''), 'text', now() + n * interval '1 second', gen_random_uuid(), now(), now()
  FROM generate_series(1, 20000) n`, w.caller.Workspace.ID)
	w.exec(`ANALYZE items`)
	page, err := w.db.Items(t.Context(), w.caller.Workspace.ID, recall.ItemQuery{Account: "u", Limit: 10_000})
	if err != nil || len(page) != 10_000 {
		t.Fatalf("%d items, %v", len(page), err)
	}
	last := page[len(page)-1]
	plan := w.plan(postgres.ItemsSQL, pgx.NamedArgs{
		"workspace": w.caller.Workspace.ID, "account": "u", "session": "", "limit": 100, "after_at": last.At,
		"after_created": last.Created, "after_key": last.Key[:],
	})
	if !strings.Contains(plan, "items_order") || strings.Contains(plan, "Sort") {
		t.Fatal(plan)
	}
}
