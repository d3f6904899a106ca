package chaos

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	domain "github.com/holdfast-memory/holdfast/internal/command"
)

func TestBaggage(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 5}
	snapshot, words, err := cfg.baggage(3)
	if err != nil {
		t.Fatal(err)
	}
	_, again, _ := cfg.baggage(3)
	_, other, _ := cfg.baggage(4)
	if !slices.Equal(words, again) || slices.Equal(words, other) || len(words) != imported {
		t.Errorf("%d words of one place in the plan differ, or those of two don't", len(words))
	}
	last := uuid.Nil
	for _, raw := range domain.SnapshotLines(snapshot) {
		line, err := domain.DecodeSnapshotLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		if line.Memory != nil {
			if line.Memory.ID.String() <= last.String() {
				t.Fatal("memories are not in order")
			}
			last = line.Memory.ID
		}
	}
	if found := canariesIn(snapshot); len(found) != imported {
		t.Errorf("%d words are in the snapshot", len(found))
	}
}

func TestUnpacked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"a receipt":            {`{"result":{"structuredContent":{"event_id":"evt_1"}}}`, 200, ""},
		"a refusal":            {`{"result":{"isError":true,"structuredContent":{"error":{"code":"IDEMPOTENCY_CONFLICT"}}}}`, 400, "IDEMPOTENCY_CONFLICT"},
		"nothing definite":     {`{"result":{"isError":true,"structuredContent":{"error":{"code":"UNAVAILABLE"}}}}`, 503, "UNAVAILABLE"},
		"a message, no answer": {`{"error":{"code":-32600}}`, 0, ""},
	} {
		got, err := unpacked(answer{status: http.StatusOK, body: []byte(c.body)})
		if got.status != c.status || got.code() != c.code || (err != nil) != (c.status == 0) {
			t.Errorf("%s: %d %s, %v", name, got.status, got.code(), err)
		}
	}
}

// TestHookCheck shows a receiver each thing that must not be.
func TestHookCheck(t *testing.T) {
	t.Parallel()
	verify, err := standardwebhooks.NewWebhook("whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	said := func(kind string) string {
		return `{"type":"event.succeeded","data":{"event_id":"evt_1","event_type":"` + kind + `","generation":1}}`
	}
	for name, c := range map[string]struct {
		messages map[string]string
		column   string
	}{
		"one message":           {map[string]string{"msg_1": said(kindInfer)}, ""},
		"two of one end":        {map[string]string{"msg_1": said(kindInfer), "msg_2": said(kindInfer)}, duplicated},
		"one of a delivery":     {map[string]string{"msg_1": said(kindDelivery)}, duplicated},
		"one that says nothing": {map[string]string{"msg_1": `{}`}, lost},
		"one with content":      {map[string]string{"msg_1": said(Config{}.canary(canaryFact, 1, 2, 3))}, leaked},
	} {
		h := &hook{space: &space{}, verify: verify, messages: map[string]*message{}}
		for id, body := range c.messages {
			h.messages[id] = &message{body: body, taken: true}
		}
		r := &report{}
		h.check(r)
		if r.clean() != (c.column == "") || !r.clean() && r.found[0].column != c.column {
			t.Errorf("%s: %+v", name, r.found)
		}
	}
	h := &hook{space: &space{}, verify: verify, messages: map[string]*message{}}
	for _, body := range []string{said(kindInfer), said(kindAdd)} {
		h.note(http.Header{"Webhook-Id": {"msg_1"}}, []byte(body))
	}
	r := &report{}
	if h.check(r); len(r.found) != 3 { // two without a right signature, and another body
		t.Errorf("%+v", r.found)
	}
}
