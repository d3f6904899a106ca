package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestSearchBody(t *testing.T) {
	t.Parallel()
	t.Run("FiltersAndExplainReachTheUseCase", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "POST", "/v1/memories/search", `{"query":"tea","user_id":"u","explain":true,"filters":{"NOT":{"metadata.a.b":{"in":[1,"x"]}}}}`).want(t, 200, "")
		f := w.asked.Filter
		if !w.asked.Explain || f == nil || f.Op != memory.FilterNone || len(f.Of) != 1 || strings.Join(f.Of[0].Path, ".") != "a.b" || len(f.Of[0].Values) != 2 {
			t.Fatalf("asked %+v", w.asked)
		}
		for _, empty := range []string{"{}", " { } "} {
			w.do(t, "all", "POST", "/v1/memories/search", `{"query":"tea","user_id":"u","filters":`+empty+`}`).want(t, 200, "")
			if w.asked.Filter != nil {
				t.Fatalf("%s asked %+v", empty, w.asked)
			}
		}
	})
	t.Run("ARefusedFilterNamesPlaceAndRuleOnly", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for filter, pointer := range map[string]string{
			`{"OR":[{"type":"fact"},{"` + canary + `":1}]}`:    "/filters/OR/1",
			`{"created_at":{"gt":"` + canary + `"}}`:           "/filters/created_at/gt",
			`{"metadata.` + canary + `":{"` + canary + `":1}}`: "/filters/metadata",
			`"` + canary + `"`: "/filters",
		} {
			answer := w.do(t, "all", "POST", "/v1/memories/search", `{"query":"tea","user_id":"u","filters":`+filter+`}`)
			answer.want(t, 400, fault.InvalidFilter)
			if body := answer.Body.String(); !strings.Contains(body, `"`+pointer+`"`) || strings.Contains(body, canary) {
				t.Errorf("%s: %s", filter, body)
			}
		}
	})
	t.Run("ShowsPartsOfAScoreAndSuccessors", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		successor, ended := uuid.UUID{15: 9}, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		w.records = []memory.Record{{
			ID: uuid.UUID{15: 1}, Text: "tea", Score: 0.5, SupersededBy: &successor, ValidTo: &ended, ItemID: "i",
			Explain: &memory.Explain{LexicalScore: 0.25, LexicalRank: 2},
		}}
		body := w.do(t, "all", "POST", "/v1/memories/search", `{"query":"tea","user_id":"u","explain":true,"latest_only":false}`).Body.String()
		for _, part := range []string{
			`"explain":{"lexical":{"rank":2,"score":0.25},"semantic":null}`, `"superseded_by":"` + memoryID(successor) + `"`,
			`"valid_to":"2026-01-02T00:00:00Z"`, `"item_id":"i"`,
		} {
			if !strings.Contains(body, part) {
				t.Errorf("%s is not in %s", part, body)
			}
		}
	})
}
