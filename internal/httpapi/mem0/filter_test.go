package mem0

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// translated is a filter of the clients as a native one.
func translated(t *testing.T, text string) string {
	t.Helper()
	var reader filterReader
	native, err := reader.object(plain([]byte(text)).(map[string]any), 1)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	raw, err := json.Marshal(native)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := memory.ParseFilter(raw); err != nil {
		t.Fatalf("%s: %s: %v", text, raw, err)
	}
	return string(raw)
}

func TestFilter(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	for text, want := range map[string]string{
		`{"user_id":" u "}`:                     `{"user_id":{"eq":"u"}}`,
		`{"userId":"u"}`:                        `{"user_id":{"eq":"u"}}`,
		`{"agent_id":"*"}`:                      `{"agent_id":{"ne":null}}`,
		`{"agent_id":null}`:                     `{"agent_id":{"eq":null}}`,
		`{"run_id":{"ne":"*"}}`:                 `{"NOT":[{"run_id":{"ne":null}}]}`,
		`{"app_id":{"in":["a","*"]}}`:           `{"app_id":{"ne":null}}`,
		`{"app_id":["a","b"]}`:                  `{"app_id":{"in":["a","b"]}}`,
		`{"user_id":"u","agent_id":{"ne":"a"}}`: `{"AND":[{"agent_id":{"ne":"a"}},{"user_id":{"eq":"u"}}]}`,
		`{"AND":[{"user_id":"u"},{"OR":[{"run_id":"a"},{"run_id":"b"}]}]}`: `{"AND":[{"user_id":{"eq":"u"}},{"OR":[{"run_id":{"eq":"a"}},{"run_id":{"eq":"b"}}]}]}`,
		`{"NOT":[{"categories":{"in":["food"]}}]}`:                         `{"NOT":[{"categories":{"in":["food"]}}]}`,
		`{"NOT":{"categories":{"contains":"food"}}}`:                       `{"NOT":[{"categories":{"contains":"food"}}]}`,
		`{"created_at":"2026-01-31"}`:                                      `{"AND":[{"created_at":{"gte":"2026-01-31T00:00:00Z"}},{"created_at":{"lt":"2026-02-01T00:00:00Z"}}]}`,
		`{"created_at":{"gt":"2026-01-31","lte":"2026-02-01"}}`:            `{"AND":[{"created_at":{"gte":"2026-02-01T00:00:00Z"}},{"created_at":{"lt":"2026-02-02T00:00:00Z"}}]}`,
		`{"updated_at":{"ne":"2026-01-31T10:00:00+01:00"}}`:                `{"NOT":[{"updated_at":{"eq":"2026-01-31T09:00:00Z"}}]}`,
		`{"updatedAt":{"gte":"2026-01-31 10:00:00"}}`:                      `{"updated_at":{"gte":"2026-01-31T10:00:00Z"}}`,
		`{"created_at":{"in":["2026-01-31T09:00:00Z"]}}`:                   `{"created_at":{"eq":"2026-01-31T09:00:00Z"}}`,
		`{"timestamp":{"lt":0}}`:                                           `{"OR":[{"event_date":{"lt":"1970-01-01T00:00:00Z"}},{"AND":[{"event_date":null},{"created_at":{"lt":"1970-01-01T00:00:00Z"}}]}]}`,
		`{"expiration_date":{"gte":"2026-01-31"}}`:                         `{"expires_at":{"gt":"2026-01-31T00:00:00Z"}}`,
		`{"expiration_date":"2026-01-31"}`:                                 `{"AND":[{"expires_at":{"gt":"2026-01-31T00:00:00Z"}},{"expires_at":{"lte":"2026-02-01T00:00:00Z"}}]}`,
		`{"expiration_date":"*"}`:                                          `{"expires_at":{"ne":null}}`,
		`{"expiration_date":null}`:                                         `{"expires_at":null}`,
		`{"text":{"icontains":"tea"}}`:                                     `{"memory":{"icontains":"tea"}}`,
		`{"keywords":"tea"}`:                                               `{"memory":{"icontains":"tea"}}`,
		`{"memory_ids":["mem_` + strings.ToUpper(id) + `"]}`:               `{"id":{"in":["` + id + `"]}}`,
		`{"metadata":{"a":1,"b":{"c":"x"}}}`:                               `{"AND":[{"metadata.a":{"eq":1}},{"metadata.b.c":{"eq":"x"}}]}`,
		`{"metadata":{"contains":{"a":1}}}`:                                `{"metadata.a":{"eq":1}}`,
		`{"metadata":{"ne":{"a":true}}}`:                                   `{"NOT":[{"metadata.a":{"eq":true}}]}`,
		`{"metadata":{"ne":"x"}}`:                                          `{"metadata.ne":{"eq":"x"}}`,
		`{"metadata":{"price":{"gte":1.50}}}`:                              `{"metadata.price":{"gte":1.50}}`,
	} {
		if got := translated(t, text); got != want {
			t.Errorf("%s is\n%s, want\n%s", text, got, want)
		}
	}
}

func TestFilterRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"AND":[`, 40) + `{"user_id":"u"}` + strings.Repeat(`]}`, 40)
	for text, rule := range map[string]string{
		`{"userid":"u"}`:                           "userid",
		`{"session_id":"u"}`:                       "session_id",
		`{"and":[{"user_id":"u"}]}`:                "and",
		`{"user_id":"u","` + canary + ` x":1}`:     "unknown keys",
		`{"user_id":{"nin":["a"]}}`:                "user_id",
		`{"user_id":{"gt":"a"}}`:                   "user_id",
		`{"user_id":{}}`:                           "operator",
		`{"user_id":7}`:                            "string",
		`{"user_id":{"in":[]}}`:                    "list",
		`{"AND":[]}`:                               "lists",
		`{"AND":["` + canary + `"]}`:               "lists",
		`{"OR":"x"}`:                               "lists",
		`{"OR":[{}]}`:                              "condition",
		`{"created_at":"` + canary + `"}`:          "date",
		`{"created_at":null}`:                      "date",
		`{"created_at":{"contains":"2026-01-31"}}`: "times",
		`{"created_at":{"in":"2026-01-31"}}`:       "list",
		`{"memory_ids":["x"]}`:                     "ids",
		`{"metadata":{}}`:                          "metadata",
		`{"metadata":"x"}`:                         "metadata",
		`{"metadata":{"a.b":1}}`:                   "dot",
		`{"metadata":{"a":[1,2]}}`:                 "lists",
		`{"metadata":{"eq":{"a":1},"ne":{"b":1}}}`: "one operator",
		`{"categories":{"icontains":"food"}}`:      "categories",
		`{"keywords":{"eq":"x"}}`:                  "memory",
		`[{"user_id":"u"}]`:                        "object",
		deep:                                       "levels",
	} {
		_, _, _, err := filterOf(plain([]byte(text)))
		f, isFault := errors.AsType[*fault.Error](err)
		if !isFault || f.Code != fault.InvalidFilter || f.Pointer != "/filters" || !strings.Contains(f.Rule, rule) || strings.Contains(f.Error(), canary) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFilterNarrows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]memory.Scope{
		`{"user_id":"u"}`: {UserID: "u"},
		`{"AND":[{"user_id":"u"},{"AND":[{"run_id":"r"}]}],"app_id":{"eq":"p"}}`: {UserID: "u", RunID: "r", AppID: "p"},
		`{"OR":[{"user_id":"u"},{"user_id":"v"}]}`:                               {},
		`{"NOT":[{"user_id":"u"}]}`:                                              {},
		`{"user_id":{"in":["u","v"]}}`:                                           {},
		`{"user_id":"*"}`:                                                        {},
		`{"user_id":{"ne":"u"}}`:                                                 {},
	} {
		filter, scope, scoped, err := filterOf(plain([]byte(text)))
		if err != nil || filter == nil || !scoped || scope != want {
			t.Errorf("%s: %+v, scoped %v, %v", text, scope, scoped, err)
		}
	}
	filter, _, scoped, err := filterOf(native{}, native{"metadata": native{"a": "x"}})
	if err != nil || filter == nil || scoped {
		t.Errorf("without ids: %+v, scoped %v, %v", filter, scoped, err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.records = []memory.Record{{ID: uuid.New(), Text: "x", Score: 0.05, Explain: &memory.Explain{LexicalScore: 0.5, LexicalRank: 1, SemanticScore: 0.25, SemanticRank: 2}}}
	w.send("POST", "/v3/memories/search/", `{"query":"q","output_format":"v1.1","filters":{"user_id":"u"}}`).want(t, 200,
		`{"results":[{"id":`, `"score":0.05`, `"score_breakdown":{"semantic":0.25,"bm25":0.5,"entity":0}`)
	if q := w.searched; q.Limit != 10 || q.MinScore != 0 || !q.LatestOnly || q.Scope.UserID != "u" || q.Filter == nil {
		t.Errorf("searched %+v", q)
	}
	w.send("POST", "/v3/memories/search/", `{"query":"q","user_id":"u","filters":{"AND":[{"run_id":"r"}]},"top_k":500,"threshold":0.3,"latest_only":false,
		"rerank":true,"fields":["memory"],"keyword_search":true,"source":"s","metadata":{"a":1},"categories":["food"]}`).want(t, 200)
	if q := w.searched; q.Limit != 100 || q.MinScore != 0.3 || q.LatestOnly || q.Scope != (memory.Scope{UserID: "u"}) || q.Filter.Op != memory.FilterAll || len(q.Filter.Of) != 3 {
		t.Errorf("searched %+v", q)
	}
	for flag, expired := range map[string]bool{``: false, `,"show_expired":false`: false, `,"show_expired":null`: false, `,"show_expired":true`: true} {
		w.send("POST", "/v3/memories/search/", `{"query":"q","filters":{"user_id":"u"}`+flag+`}`).want(t, 200)
		w.send("POST", "/v3/memories/", `{"filters":{"user_id":"u"}`+flag+`}`).want(t, 200)
		if w.searched.Expired != expired || w.browsed.Expired != expired {
			t.Errorf("%q shows expired: %v, %v", flag, w.searched.Expired, w.browsed.Expired)
		}
	}
	w.send("POST", "/v1/memories/search/", `{"query":"q","user_id":"u"}`).want(t, 200, `[{"id":`)
	w.send("POST", "/v1/memories/search/", `{"query":"q","user_id":"u","output_format":"v1.1"}`).want(t, 200, `{"results":[{"id":`, `"relations":[]`)
	w.send("POST", "/v2/memories/search/", `{"query":"q","filters":{"user_id":"u"},"limit":3}`).want(t, 200, `[{"id":`)
	if w.searched.Limit != 3 {
		t.Errorf("searched %+v", w.searched)
	}
	for body, words := range map[string]string{
		``: "/query", `{"query":"  ","filters":{"user_id":"u"}}`: "/query", `{"query":7,"filters":{"user_id":"u"}}`: "/query",
		`{"query":"q"}`: "SCOPE_REQUIRED", `{"query":"q","filters":{"created_at":"2026-01-01"}}`: "SCOPE_REQUIRED",
		`{"query":"q","filters":{"userid":"u"}}`: "userid", `{"query":"q","filters":{"user_id":"u"},"top_k":0}`: "/top_k",
		`{"query":"q","filters":{"user_id":"u"},"top_k":1001}`: "/top_k", `{"query":"q","filters":{"user_id":"u"},"top_k":1.5}`: "/top_k",
		`{"query":"q","filters":{"user_id":"u"},"threshold":2}`: "/threshold", `{"query":"q","filters":{"user_id":"u"},"show_expired":1}`: "/show_expired",
		`{"query":"q","filters":{"user_id":"u"},"reference_date":"2020-01-01"}`: "/reference_date", `{"query":"q","filters":"u"}`: "INVALID_FILTER",
		`{"query":"q","filters":{"user_id":"u"},"metadata":"x"}`: "INVALID_FILTER", `{"query":"q","user_id":""}`: "/user_id",
	} {
		a := w.send("POST", "/v3/memories/search/", body)
		a.want(t, 400, words)
		a.five(t)
	}
}
