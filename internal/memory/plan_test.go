package memory

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	t.Run("ComesBackAsItWasFrozen", func(t *testing.T) {
		t.Parallel()
		metadata := `{"b":1.50,"a":[1e2,"<&>"]}`
		plan := Plan{Records: []Planned{
			{ID: uuid.MustParse("0192f0c1-2f3a-7000-8000-000000000001"), Text: "likes <tea> & 咖啡", Type: TypePreference},
			{ID: uuid.MustParse("0192f0c1-2f3a-7000-8000-000000000002"), Text: "x", Metadata: json.RawMessage(metadata), Verbatim: true},
		}}
		body, err := plan.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var again Plan
		if err := json.Unmarshal(body, &again); err != nil {
			t.Fatal(err)
		}
		if len(again.Records) != 2 || again.Records[0].ID != plan.Records[0].ID || again.Records[0].Text != plan.Records[0].Text ||
			again.Records[0].Type != TypePreference || !again.Records[1].Verbatim {
			t.Fatalf("%+v", again)
		}
		var want, got map[string]any
		if err := json.Unmarshal([]byte(metadata), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again.Records[1].Metadata, &got); err != nil || len(got) != len(want) || got["b"] != want["b"] {
			t.Fatalf("metadata %s: %v", again.Records[1].Metadata, err)
		}
	})
	t.Run("BrokenMetadataIsRefused", func(t *testing.T) {
		t.Parallel()
		plan := Plan{Records: []Planned{{Text: "x", Metadata: json.RawMessage(`{"a":`)}}}
		if _, err := plan.Encode(); err == nil {
			t.Fatal("it was encoded")
		}
	})
}
