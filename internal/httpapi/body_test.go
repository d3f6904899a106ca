package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestBody(t *testing.T) {
	t.Parallel()
	w := setup(t)
	cases := []struct {
		name    string
		target  string
		body    string
		code    fault.Code
		pointer string
	}{
		{"NotJSON", "/v1/memories", canary, fault.InvalidBody, ""},
		{"TrailingData", "/v1/memories", `{"user_id":"u","content":"x"}"` + canary + `"`, fault.InvalidBody, ""},
		{"DuplicateMember", "/v1/memories", `{"user_id":"u","content":"x","content":"` + canary + `"}`, fault.InvalidBody, "/content"},
		{"LoneSurrogate", "/v1/memories", `{"user_id":"u","content":"` + canary + `\ud83d"}`, fault.InvalidBody, "/content"},
		{"NUL", "/v1/memories", `{"user_id":"u","content":"` + canary + `\u0000"}`, fault.InvalidBody, "/content"},
		{"BigInteger", "/v1/memories", `{"user_id":"u","content":"x","metadata":{"` + canary + `":9007199254740993}}`, fault.InvalidBody, "/metadata"},
		{"Depth", "/v1/memories", `{"user_id":"u","content":"x","metadata":` + strings.Repeat(`{"`+canary+`":`, 33) + "1" + strings.Repeat("}", 33) + `}`, fault.InvalidBody, "/metadata"},
		{"UnknownMember", "/v1/memories", `{"user_id":"u","content":"x","` + canary + `":1}`, fault.InvalidRequest, ""},
		{"MemberInOtherCase", "/v1/memories", `{"User_ID":"` + canary + `","content":"x"}`, fault.InvalidRequest, ""},
		{"WrongType", "/v1/memories", `{"user_id":["` + canary + `"],"content":"x"}`, fault.InvalidRequest, "/user_id"},
		{"Null", "/v1/memories", `{"user_id":"u","content":"x","infer":null}`, fault.InvalidRequest, "/infer"},
		{"NullMessages", "/v1/memories", `{"user_id":"u","messages":null}`, fault.InvalidRequest, "/messages"},
		{"NullMetadata", "/v1/memories", `{"user_id":"u","content":"x","metadata":null}`, fault.InvalidRequest, "/metadata"},
		{"MetadataText", "/v1/memories", `{"user_id":"u","content":"x","metadata":"` + canary + `"}`, fault.InvalidRequest, "/metadata"},
		{"NotAnObject", "/v1/memories", `["` + canary + `"]`, fault.InvalidRequest, ""},
		{"TextForBoolean", "/v1/memories", `{"user_id":"u","content":"x","infer":"` + canary + `"}`, fault.InvalidRequest, "/infer"},
		{"LongInstructions", "/v1/memories", `{"user_id":"u","content":"x","instructions":"` + strings.Repeat(canary, 500) + `"}`, fault.InvalidRequest, "/instructions"},
		{"MessageMember", "/v1/memories", `{"user_id":"u","messages":[{"role":"user","content":"x"},{"role":"user","content":"x","` + canary + `":1}]}`, fault.InvalidRequest, "/messages/1"},
		{"BlankContent", "/v1/memories", `{"user_id":"u","content":"\u200b \n"}`, fault.InvalidRequest, "/content"},
		{"NaiveDate", "/v1/memories", `{"user_id":"u","content":"x","event_date":"` + canary + `"}`, fault.InvalidRequest, "/event_date"},
		{"NoScope", "/v1/memories", `{"content":"` + canary + `"}`, fault.ScopeRequired, ""},
		{"EmptyBody", "/v1/memories", "", fault.InvalidBody, ""},
		{"SearchWithoutQuery", "/v1/memories/search", `{"user_id":"` + canary + `"}`, fault.InvalidRequest, "/query"},
		{"SearchBlank", "/v1/memories/search", `{"user_id":"u","query":" "}`, fault.InvalidRequest, "/query"},
		{"SearchLong", "/v1/memories/search", `{"user_id":"u","query":"` + strings.Repeat("q", 2001) + `"}`, fault.InvalidRequest, "/query"},
		{"SearchLimit", "/v1/memories/search", `{"user_id":"u","query":"q","limit":101}`, fault.InvalidRequest, "/limit"},
		{"SearchTopK", "/v1/memories/search", `{"user_id":"u","query":"q","top_k":0}`, fault.InvalidRequest, "/top_k"},
		{"SearchLimitFraction", "/v1/memories/search", `{"user_id":"u","query":"q","limit":1.5}`, fault.InvalidRequest, "/limit"},
		{"SearchTopKText", "/v1/memories/search", `{"user_id":"u","query":"q","top_k":"1"}`, fault.InvalidRequest, "/top_k"},
		{"SearchBothLimits", "/v1/memories/search", `{"user_id":"u","query":"q","limit":1,"top_k":1}`, fault.InvalidRequest, "/top_k"},
		{"SearchMode", "/v1/memories/search", `{"user_id":"u","query":"q","mode":"` + canary + `"}`, fault.InvalidRequest, "/mode"},
		{"SearchFilters", "/v1/memories/search", `{"user_id":"u","query":"q","filters":{"` + canary + `":1}}`, fault.InvalidFilter, "/filters"},
		{"SearchScope", "/v1/memories/search", `{"query":"q"}`, fault.ScopeRequired, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused := w.do(t, "all", "POST", c.target, c.body, header("Idempotency-Key", "k"), header("Content-Type", "application/json"))
			refused.want(t, 400, c.code)
			if c.code == fault.ScopeRequired {
				return
			}
			if refused.problem.Details["pointer"] != c.pointer || refused.problem.Details["rule"] == "" {
				t.Fatalf("details %v, want pointer %q", refused.problem.Details, c.pointer)
			}
		})
	}
}

func TestBodyReadsIntegersHoweverSpelled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.do(t, "all", "POST", "/v1/memories/search", `{"user_id":"u","query":"q","limit":20.0,"min_score":0.0}`).want(t, 200, "")
	if w.asked.Limit != 20 {
		t.Fatalf("asked for %d", w.asked.Limit)
	}
	event := w.put("all", eventIn(task.EventFailed))
	w.do(t, "all", "POST", path(event.ID)+"/retry", `{"generation":30e-1}`).want(t, 202, "")
	if len(w.retried) != 1 || w.retried[0] != 3 {
		t.Fatalf("retried %v", w.retried)
	}
	refused := w.do(t, "all", "POST", path(event.ID)+"/retry", `{"generation":1.5}`)
	if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["pointer"] != "/generation" {
		t.Fatalf("details %v", refused.problem.Details)
	}
}

func TestBodyThatEndsEarly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, cut := range map[string]option{
		"InTheJSON": func(*http.Request) {},
		"BeforeItsLength": func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(r.Body, iotest.ErrReader(io.ErrUnexpectedEOF)))
		},
	} {
		refused := w.do(t, "all", "POST", "/v1/memories", `{"user_id":"u","content":"`, header("Idempotency-Key", "k"), cut)
		refused.want(t, 400, fault.InvalidBody)
		if refused.problem.Details["rule"] != command.CompleteJSON || !strings.Contains(refused.problem.Detail, command.CompleteJSON) {
			t.Errorf("%s: %+v", name, refused.problem)
		}
	}
}

func TestBodyLimits(t *testing.T) {
	t.Parallel()
	frame := `{"user_id":"u","content":""}`
	fit := strings.Replace(frame, `""`, `"`+strings.Repeat("x", command.MaxBody-len(frame))+`"`, 1)
	t.Run("TheLargestBodyFits", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "POST", "/v1/memories", fit, header("Idempotency-Key", "k")).want(t, 202, "")
	})
	t.Run("OneByteMoreIsTooLarge", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "POST", "/v1/memories", fit+" ", header("Idempotency-Key", "k")).want(t, 413, fault.PayloadTooLarge)
	})
	t.Run("AlsoWithoutALength", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		unknown := func(r *http.Request) { r.ContentLength = -1 }
		w.do(t, "all", "POST", "/v1/memories", fit+" ", header("Idempotency-Key", "k"), unknown).want(t, 413, fault.PayloadTooLarge)
	})
	t.Run("OnlyJSONIsTaken", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		body := `{"user_id":"u","content":"x"}`
		for _, types := range [][]string{nil, {"text/plain"}, {"application/x-www-form-urlencoded"}, {"application/json; charset=latin1"}, {"application/problem+json"}, {"application/json", "application/json"}, {";"}} {
			w.do(t, "all", "POST", "/v1/memories", body, header("Content-Type", types...)).want(t, 415, fault.UnsupportedMediaType)
		}
		w.do(t, "all", "POST", "/v1/memories", body, header("Content-Encoding", "gzip")).want(t, 415, fault.UnsupportedMediaType)
		w.do(t, "all", "POST", "/v1/memories", body, header("Content-Encoding", "identity"), header("Idempotency-Key", "plain")).want(t, 202, "")
		for i, taken := range []string{"application/json", "application/json; charset=UTF-8", "Application/JSON"} {
			w.do(t, "all", "POST", "/v1/memories", body, header("Content-Type", taken), header("Idempotency-Key", string(rune('a'+i)))).want(t, 202, "")
		}
	})
}

func TestQuery(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, target := range map[string]string{
		"Unknown":        "/v1/memories?user_id=u&" + canary + "=1",
		"Twice":          "/v1/memories?user_id=u&user_id=" + canary,
		"LimitZero":      "/v1/memories?user_id=u&limit=0",
		"LimitTooLarge":  "/v1/memories?user_id=u&limit=101",
		"LimitText":      "/v1/memories?user_id=u&limit=" + canary,
		"LimitEmpty":     "/v1/memories?user_id=u&limit=",
		"LimitHuge":      "/v1/memories?user_id=u&limit=99999999999999999999",
		"BlankScope":     "/v1/memories?user_id=%20",
		"NUL":            "/v1/memories?user_id=" + canary + "%00",
		"InvalidUTF8":    "/v1/memories?user_id=" + canary + "%ff",
		"BadEscape":      "/v1/memories?user_id=" + canary + "%zz",
		"Semicolon":      "/v1/memories?user_id=u;limit=1",
		"Status":         "/v1/events?status=" + canary,
		"StatusCase":     "/v1/events?status=pending",
		"Type":           "/v1/operations?type=" + canary,
		"WaitNegative":   "/v1/events/evt_01900000-0000-7000-8000-000000000000?wait=-1",
		"WaitTooLong":    "/v1/events/evt_01900000-0000-7000-8000-000000000000?wait=61",
		"WaitOfOther":    "/v1/memories/mem_01900000-0000-7000-8000-000000000000?wait=1",
		"QueryOfAnother": "/v1/credits?limit=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := w.do(t, "all", "GET", target, "")
			if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["in"] != "query" {
				t.Fatalf("details %v", refused.problem.Details)
			}
		})
	}
	t.Run("AnEmptyNumberHasARule", func(t *testing.T) {
		t.Parallel()
		for _, target := range []string{"/v1/memories?user_id=u&limit=", "/v1/events/evt_01900000-0000-7000-8000-000000000000?wait="} {
			refused := w.do(t, "all", "GET", target, "")
			if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["rule"] != "an integer, not empty" {
				t.Errorf("%s: %v", target, refused.problem.Details)
			}
		}
	})
	t.Run("NoScope", func(t *testing.T) {
		t.Parallel()
		w.do(t, "all", "GET", "/v1/memories", "").want(t, 400, fault.ScopeRequired)
	})
}
