package offline

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// kept is a message and the one fact it leaves. An empty text asks only that a fact is left.
type kept struct {
	said string
	text string
	kind memory.FactType
}

// shared is one extractor for all tests: it is safe for concurrent use, and its rules take a moment to compile.
var shared = sync.OnceValue(New)

func factsOf(t *testing.T, messages ...model.Message) []model.Fact {
	t.Helper()
	got, err := shared().Extract(context.Background(), model.Request{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return got.Facts
}

func keeps(t *testing.T, table []kept) {
	t.Helper()
	for _, row := range table {
		got := factsOf(t, model.Message{Role: "user", Content: row.said})
		switch {
		case len(got) == 0:
			t.Errorf("%q left nothing", row.said)
		case row.text == "":
		case len(got) > 1 || got[0].Text != row.text || got[0].Type != row.kind:
			t.Errorf("%q\nleft %q (%s)\nwant %q (%s)", row.said, got[0].Text, got[0].Type, row.text, row.kind)
		}
	}
}

func leaves(t *testing.T, messages []string) {
	t.Helper()
	for _, message := range messages {
		for _, fact := range factsOf(t, model.Message{Role: "user", Content: message}) {
			t.Errorf("%q left %q (%s)", message, fact.Text, fact.Type)
		}
	}
}
