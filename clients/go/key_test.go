package holdfast_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

func TestNewKey(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	before := time.Now().UnixMilli()
	known := map[string]bool{}
	for range 1000 {
		key := holdfast.NewKey()
		if !form.MatchString(key) || known[key] {
			t.Fatalf("%s is no new UUIDv7", key)
		}
		known[key] = true
		at, err := strconv.ParseInt(strings.ReplaceAll(key[:13], "-", ""), 16, 64)
		if err != nil || at < before || at > time.Now().UnixMilli() {
			t.Fatalf("%s is of another time: %v", key, err)
		}
	}
}

func TestWithKey(t *testing.T) {
	t.Parallel()
	s := newScript(t, accepted("Idempotent-Replayed", "true"))
	client, _ := s.client()
	ctx := context.Background()
	for _, key := range []string{"", " ", "a b", "é", strings.Repeat("k", 201)} {
		if _, err := client.Add(ctx, tea, holdfast.WithKey(key)); err == nil {
			t.Errorf("%q was taken", key)
		}
		if _, _, err := client.Events.ByKey(ctx, key); err == nil {
			t.Errorf("%q was asked for", key)
		}
	}
	if len(s.requests()) != 0 {
		t.Fatal("a key that is none was sent")
	}
	for i, c := range [][2]string{{"order-17", "order-17"}, {strings.Repeat("k", 200), strings.Repeat("k", 200)}, {`a,"b\`, `"a,\"b\\"`}} {
		receipt, err := client.Add(ctx, tea, holdfast.WithKey(c[0]))
		if err != nil || receipt.Key != c[0] || !receipt.Replayed {
			t.Fatalf("%+v: %v", receipt, err)
		}
		if got := s.requests()[i].key; got != c[1] {
			t.Errorf("%s was sent as %s", c[0], got)
		}
	}
}

// TestItemsKey is about who names an item: a key that nobody asked for would take the place of an item's own name.
func TestItemsKey(t *testing.T) {
	t.Parallel()
	s := newScript(t, reset, replies(200, "application/json", `{"items":[],"queued":0,"pending":0}`))
	client, _ := s.client()
	ctx := context.Background()
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	receipt, err := client.Items("ann").Add(ctx, []holdfast.NewItem{{Text: "a"}, {ID: "own", Text: "b"}})
	got := s.requests()
	if err != nil || len(got) != 2 || got[0].key == "" || got[0].key != got[1].key || receipt.Key != got[0].key {
		t.Fatalf("%v: one key for both attempts and the receipt, not %+v", err, got)
	}
	if receipt, err = client.Items("ann").Add(ctx, []holdfast.NewItem{{Text: "a", At: at}, {ID: "own", Text: "b"}}); err != nil || receipt.Key != "" {
		t.Fatalf("%v %+v", err, receipt)
	}
	if last := s.requests()[2]; last.key != "" || last.header.Get("X-Twin-Account") != "ann" || !strings.Contains(last.body, `"at":"2026-05-01T09:00:00Z"`) {
		t.Fatalf("no key where all have names: %+v", last)
	}
	if receipt, err = client.Items("ann").Add(ctx, []holdfast.NewItem{{Text: "a", At: at}}, holdfast.WithKey("batch-7")); err != nil || receipt.Key != "batch-7" {
		t.Fatalf("%v %+v", err, receipt)
	}
}
