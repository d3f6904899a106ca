package command

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func changed(t *testing.T, input ChangeInput) Change {
	t.Helper()
	c, err := NewChange("", input)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChange(t *testing.T) {
	t.Parallel()
	text, blank, version, none, said := "x", " \u200b", 2, 0, "2026-01-01T00:00:00Z"

	t.Run("RefusesAtThePlaceOfTheRule", func(t *testing.T) {
		t.Parallel()
		for pointer, input := range map[string]ChangeInput{
			"/m/3":            {Version: &version},
			"/m/3/content":    {Content: &blank},
			"/m/3/metadata":   {Metadata: json.RawMessage(`[]`)},
			"/m/3/event_date": {EventDate: &text},
			"/m/3/expires_at": {ExpiresAt: json.RawMessage(`"2026-01-01"`)},
			"/m/3/version":    {Content: &text, Version: &none},
		} {
			_, err := NewChange("/m/3", input)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.InvalidRequest || f.Pointer != pointer {
				t.Errorf("%s: %v", pointer, err)
			}
		}
	})

	t.Run("FingerprintsTellCommandsApart", func(t *testing.T) {
		t.Parallel()
		id := uuid.New()
		inputs := []ChangeInput{
			{ID: id, Content: &text},
			{ID: uuid.New(), Content: &text},
			{ID: id, Content: &text, Version: &version},
			{ID: id, Metadata: json.RawMessage(`{}`)},
			{ID: id, Metadata: json.RawMessage(`{"a":1}`)},
			{ID: id, EventDate: &said},
			{ID: id, ExpiresAt: json.RawMessage(`null`)},
			{ID: id, ExpiresAt: json.RawMessage(`"2026-01-01T00:00:00Z"`)},
		}
		prints := map[Fingerprint]bool{}
		for _, input := range inputs {
			c := changed(t, input)
			print, err := c.Fingerprint()
			if err != nil {
				t.Fatal(err)
			}
			batch, err := NewBatch("", false, []Change{c})
			if err != nil {
				t.Fatal(err)
			}
			whole, err := batch.Fingerprint()
			if err != nil {
				t.Fatal(err)
			}
			prints[print], prints[whole] = true, true
		}
		end, err := Change{ID: id, Delete: true}.Fingerprint()
		if err != nil || prints[end] || len(prints) != 2*len(inputs) {
			t.Errorf("%d fingerprints, the end's among them: %v, %v", len(prints), prints[end], err)
		}
		offset := changed(t, ChangeInput{ID: id, ExpiresAt: json.RawMessage(`"2026-01-01T01:00:00+01:00"`)})
		if print, err := offset.Fingerprint(); err != nil || !prints[print] {
			t.Errorf("one instant in two zones has two fingerprints: %v", err)
		}
	})
}

func TestBatchCodec(t *testing.T) {
	t.Parallel()
	text := "a <b>"
	at := time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)
	batch, err := NewBatch("", false, []Change{
		{ID: uuid.New(), Content: &text, ExpiresAt: &at}, {ID: uuid.New(), Metadata: json.RawMessage(`{"b":1.50,"a":[]}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := batch.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeBatch(Format, payload)
	if err != nil || *again.Changes[0].Content != text || !again.Changes[0].ExpiresAt.Equal(at) || string(again.Changes[1].Metadata) != `{"b":1.50,"a":[]}` {
		t.Fatalf("got %+v, %v", again, err)
	}
	for name, bad := range map[string]string{
		"NotJSON": "x", "Empty": `{"changes":[]}`, "UnknownMember": `{"changes":[{"id":"` + uuid.NewString() + `","x":1}]}`,
		"Trailing": string(payload) + "1", "AnAdd": `{"scope":{"user_id":"u"},"messages":[{"role":"user","content":"x"}]}`,
	} {
		if _, err := DecodeBatch(Format, []byte(bad)); !isUnreadable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DecodeBatch(Format+1, payload); !isUnreadable(err) {
		t.Errorf("another format: %v", err)
	}
}
