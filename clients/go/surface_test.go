package holdfast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

// newPipe is a reader that can't be read again.
func newPipe(text []byte) io.Reader { return io.MultiReader(bytes.NewReader(text)) }

// TestMemories goes through what a memory can live through.
func TestMemories(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := working.client(t, 100)
	at := time.Date(2026, 5, 1, 9, 0, 0, 123456000, time.UTC)
	var messages []holdfast.Message
	for i := range 3 {
		messages = append(messages, holdfast.Message{Role: "user", Content: fmt.Sprintf("Note %d <b>& more</b>", i), Name: "Ada"})
	}
	stored := must[*holdfast.Verbatim](t)(client.AddVerbatim(ctx, holdfast.AddRequest{
		Scope: holdfast.Scope{UserID: "ada", RunID: "run-1"}, Messages: messages, EventDate: at,
		Metadata: json.RawMessage(`{"price":12.50,"n":9007199254740991}`),
	}))
	if len(stored.Results) != 3 || stored.Key == "" || stored.EventID == "" || *stored.Results[0].Memory != messages[0].Content {
		t.Fatalf("got %+v", stored)
	}
	first := stored.Results[0].ID
	memory := must[*holdfast.Memory](t)(client.Memories.Get(ctx, first))
	if memory.Memory != messages[0].Content || memory.UserID != "ada" || memory.RunID != "run-1" || memory.AgentID != "" || memory.Role != "user" ||
		memory.Version != 1 || memory.EventDate == nil || !memory.EventDate.Equal(at) || string(memory.Metadata) != `{"price":12.50,"n":9007199254740991}` {
		t.Fatalf("got %+v", memory)
	}
	var ids []string
	for memory, err := range client.Memories.All(ctx, holdfast.User("ada")) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, memory.ID)
	}
	page := must[*holdfast.Page[holdfast.Memory]](t)(client.Memories.List(ctx, holdfast.User("ada"), holdfast.PageOptions{Limit: 2}))
	rest := must[*holdfast.Page[holdfast.Memory]](t)(client.Memories.List(ctx, holdfast.User("ada"), holdfast.PageOptions{Limit: 2, Cursor: page.NextCursor}))
	if len(ids) != 3 || len(page.Results) != 2 || len(rest.Results) != 1 || rest.NextCursor != "" || rest.Results[0].ID != ids[2] {
		t.Fatalf("two pages of %v", ids)
	}
	updates(ctx, t, client, first)
	batches(ctx, t, client, stored)
	entities(ctx, t, client)
	categories(ctx, t, client)
}

func categories(ctx context.Context, t *testing.T, client *holdfast.Client) {
	t.Helper()
	event := must[*holdfast.Event](t)(client.AddAndWait(ctx, holdfast.AddRequest{
		Scope: holdfast.User("eve"), Content: "I am allergic to peanuts.",
		Categories: []holdfast.Category{{Name: "health", Description: "allergic"}, {Name: "work"}},
	}))
	memory := must[*holdfast.Memory](t)(client.Memories.Get(ctx, event.Results[0].ID))
	if !slices.Equal(memory.Categories, []string{"health"}) {
		t.Fatalf("got %+v", memory)
	}
}

func updates(ctx context.Context, t *testing.T, client *holdfast.Client, id string) {
	t.Helper()
	changed := must[*holdfast.Changed](t)(client.Memories.Update(ctx, id, holdfast.Change{
		Content: "I moved to Porto.", Metadata: map[string]any{}, ExpiresAt: time.Now().Add(time.Hour), Version: 1,
	}))
	if changed.Version != 2 || changed.Event != "UPDATE" || changed.Memory == nil || *changed.Memory != "I moved to Porto." || changed.Key == "" {
		t.Fatalf("got %+v", changed)
	}
	_, err := client.Memories.Update(ctx, id, holdfast.Change{Content: "three", Version: 1})
	var refused *holdfast.Error
	if !errors.As(err, &refused) || refused.Code != "VERSION_CONFLICT" || refused.Retryable {
		t.Fatalf("got %v", err)
	}
	memory := must[*holdfast.Memory](t)(client.Memories.Get(ctx, id))
	if string(memory.Metadata) != "{}" || memory.ExpiresAt == nil {
		t.Fatalf("got %+v", memory)
	}
	must[*holdfast.Changed](t)(client.Memories.Update(ctx, id, holdfast.Change{NeverExpires: true}))
	memory = must[*holdfast.Memory](t)(client.Memories.Get(ctx, id))
	if memory.ExpiresAt != nil || memory.Version != 3 || memory.Memory != "I moved to Porto." {
		t.Fatalf("got %+v", memory)
	}
	found := must[[]holdfast.Memory](t)(client.Search(ctx, holdfast.SearchRequest{
		Scope: holdfast.User("ada"), Query: "Where is Porto?", Limit: 1, Explain: true, Mode: "hybrid", Superseded: true,
		Filters: map[string]any{"version": map[string]any{"gte": 3}},
	}))
	if len(found) != 1 || found[0].ID != id || found[0].Score <= 0 || found[0].Explain == nil || found[0].Explain.Lexical == nil {
		t.Fatalf("got %+v", found)
	}
	history := must[*holdfast.Page[holdfast.HistoryEntry]](t)(client.Memories.History(ctx, id, holdfast.PageOptions{}))
	if len(history.Results) != 3 || history.Results[0].Event != "ADD" || history.Results[1].OldMemory == nil || history.Results[2].Version != 3 {
		t.Fatalf("got %+v", history.Results)
	}
	if gone := must[*holdfast.Changed](t)(client.Memories.Delete(ctx, id)); gone.Event != "DELETE" {
		t.Fatalf("got %+v", gone)
	}
	if _, err := client.Memories.Get(ctx, id); !errors.As(err, &refused) || refused.Code != "MEMORY_NOT_FOUND" || refused.Status != 404 {
		t.Fatalf("got %v", err)
	}
}

func batches(ctx context.Context, t *testing.T, client *holdfast.Client, stored *holdfast.Verbatim) {
	t.Helper()
	gone, second, third := stored.Results[0].ID, stored.Results[1].ID, stored.Results[2].ID
	receipt := must[*holdfast.Receipt](t)(client.Memories.UpdateBatch(ctx, []holdfast.BatchChange{
		{ID: second, Change: holdfast.Change{Content: "second"}}, {ID: gone, Change: holdfast.Change{Content: "gone"}},
	}))
	event := must[*holdfast.Event](t)(client.Events.Wait(ctx, receipt.EventID))
	if len(event.Results) != 2 || event.Results[0].Event != "UPDATE" || event.Results[1].Error == nil || event.Results[1].Error.Code != "MEMORY_NOT_FOUND" {
		t.Fatalf("got %+v", event.Results)
	}
	receipt = must[*holdfast.Receipt](t)(client.Memories.DeleteBatch(ctx, []string{third}))
	must[*holdfast.Event](t)(client.Events.Wait(ctx, receipt.EventID))
	page := must[*holdfast.Page[holdfast.Memory]](t)(client.Memories.List(ctx, holdfast.Scope{RunID: "run-1"}, holdfast.PageOptions{}))
	if len(page.Results) != 1 || page.Results[0].Memory != "second" {
		t.Fatalf("got %+v", page.Results)
	}
	events := must[*holdfast.Page[holdfast.Event]](t)(client.Events.List(ctx, holdfast.EventFilter{Type: "memory_batch_delete", Status: holdfast.Succeeded}, holdfast.PageOptions{}))
	if len(events.Results) != 1 || events.Results[0].ID != receipt.EventID || events.Results[0].Type != "memory_batch_delete" {
		t.Fatalf("got %+v", events.Results)
	}
	var refused *holdfast.Error
	if _, err := client.Memories.DeleteBatch(ctx, nil); !errors.As(err, &refused) || refused.Code != "INVALID_REQUEST" || refused.Details["pointer"] == nil {
		t.Fatalf("got %v", err)
	}
}

func entities(ctx context.Context, t *testing.T, client *holdfast.Client) {
	t.Helper()
	id := "a/b c?d#é"
	must[*holdfast.Verbatim](t)(client.AddVerbatim(ctx, holdfast.AddRequest{Scope: holdfast.User(id), Content: "one"}))
	var users []string
	for entity, err := range client.Entities.All(ctx, holdfast.UserEntity) {
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, entity.ID)
	}
	if !slices.Contains(users, id) || !slices.Contains(users, "ada") {
		t.Fatalf("got %q", users)
	}
	entity := must[*holdfast.Entity](t)(client.Entities.Get(ctx, holdfast.UserEntity, id))
	if entity.TotalMemories != 1 || entity.Type != holdfast.UserEntity || entity.CreatedAt.IsZero() {
		t.Fatalf("got %+v", entity)
	}
	erased := must[*holdfast.Erasure](t)(client.Entities.Erase(ctx, holdfast.UserEntity, id))
	if !erased.Done || erased.Deleted != 1 {
		t.Fatalf("got %+v", erased)
	}
	again := must[*holdfast.Erasure](t)(client.Entities.Erase(ctx, holdfast.UserEntity, id, holdfast.WithKey(erased.Key)))
	if !again.Replayed || again.EventID != erased.EventID || again.Deleted != 1 {
		t.Fatalf("the same erase, not %+v", again)
	}
}

// TestItems goes through the items of one account.
func TestItems(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	client := working.client(t, 100)
	items := client.Items("ann")
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	kept := must[*holdfast.ItemsReceipt](t)(items.Add(ctx, []holdfast.NewItem{
		{ID: "m1", Text: "I have a cat called Rex.", At: at, Author: "Ann", Session: "s"},
		{ID: "m2", Text: "I live in Lisbon.", At: at.Add(time.Minute), Author: "Ann", Session: "s"},
	}))
	if kept.Queued != 2 || len(kept.Items) != 2 || kept.Items[0].ID != "m1" || kept.Key != "" {
		t.Fatalf("got %+v", kept)
	}
	for _, item := range kept.Items {
		must[*holdfast.Event](t)(client.Events.Wait(ctx, item.EventID))
	}
	page := must[*holdfast.ItemsPage](t)(items.Read(ctx, holdfast.ItemsRead{Session: "s", Limit: 1}))
	rest := must[*holdfast.ItemsPage](t)(items.Read(ctx, holdfast.ItemsRead{Session: "s", After: page.Next}))
	if len(page.Items) != 1 || page.Items[0].ID != "m1" || !page.Items[0].Landed || page.Items[0].Author != "Ann" || !page.Items[0].At.Equal(at) ||
		len(rest.Items) != 1 || rest.Items[0].ID != "m2" || rest.Items[0].Revision != 1 {
		t.Fatalf("got %+v and %+v", page, rest)
	}
	found := must[[]holdfast.Memory](t)(items.Search(ctx, holdfast.ItemsSearch{Query: "Where does Ann live, in Lisbon?", Session: "s"}))
	if len(found) == 0 || found[0].ItemID != "m2" {
		t.Fatalf("got %+v", found)
	}
	matches := must[*holdfast.Matches](t)(items.Grep(ctx, holdfast.ItemsGrep{Pattern: "(?i)REX", Regex: true}))
	if len(matches.Items) != 1 || matches.Items[0].ID != "m1" || matches.Truncated {
		t.Fatalf("got %+v", matches)
	}
	correction := must[*holdfast.Correction](t)(items.Correct(ctx, found[0].ID, "Ann lives in Porto."))
	if correction.ID != found[0].ID || correction.Memory == "" || correction.EventID == "" {
		t.Fatalf("got %+v", correction)
	}
	var refused *holdfast.Error
	if none, err := items.Correct(ctx, found[0].ID, ""); none != nil || !errors.As(err, &refused) || refused.Code != "MEMORY_NOT_FOUND" {
		t.Fatalf("got %v", err)
	}
	forgotten := must[*holdfast.Forgotten](t)(items.Forget(ctx, "m1"))
	if forgotten.Items != 1 || forgotten.Waiting == nil || *forgotten.Waiting != 0 {
		t.Fatalf("got %+v", forgotten)
	}
	if forgotten = must[*holdfast.Forgotten](t)(items.ForgetSession(ctx, "s")); forgotten.Items != 1 {
		t.Fatalf("got %+v", forgotten)
	}
	if forgotten = must[*holdfast.Forgotten](t)(items.ForgetAll(ctx)); forgotten.Items != 0 {
		t.Fatalf("got %+v", forgotten)
	}
}
