package mem0

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
)

func TestRouting(t *testing.T) {
	t.Parallel()
	t.Run("TheSchemeSelectsTheDialectOnSharedPaths", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := uuid.New()
		w.records = []memory.Record{{ID: id, Text: "x"}}
		path := "/v1/memories/" + id.String() + "/"
		for _, scheme := range []string{"Token ", "token ", "TOKEN "} {
			w.as(scheme+w.key.Reveal(), "GET", path, "").want(t, 200, `"id":"`+id.String()+`"`, `"lifecycle_state"`)
		}
		w.as("Bearer "+w.key.Reveal(), "GET", path, "").want(t, 200, `"id":"mem_`+id.String()+`"`)
		w.as("", "GET", path, "", "X-API-Key", w.key.Reveal()).want(t, 200, `"id":"mem_`+id.String()+`"`)
	})
	t.Run("OtherSchemesReachWhatOnlyTheDialectHas", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, path := range []string{"/v1/ping/", "/v1/ping", "//v1//ping/"} {
			w.as("Bearer "+w.key.Reveal(), "GET", path, "").want(t, 200, `"status":"ok"`)
			w.as("", "GET", path, "", "X-API-Key", w.key.Reveal()).want(t, 200, `"status":"ok"`)
		}
		if a := w.as("Bearer "+w.key.Reveal(), "GET", "/v9/nowhere", ""); a.status != 404 || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("nobody's path: %+v", a)
		}
	})
	t.Run("WithoutAKeyNobodyGetsIn", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		other, err := access.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		for _, authorization := range []string{"", "Token", "Token x", "Token " + other.Reveal(), "Basic " + w.key.Reveal()} {
			w.as(authorization, "GET", "/v1/ping/", "").want(t, 401, `"code":"INVALID_API_KEY"`, `"detail":`)
			w.as(authorization, "POST", "/v3/memories/add/", "{").want(t, 401)
		}
	})
	t.Run("UnknownIs404InTheDialectsShape", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, ask := range [][2]string{
			{"GET", "/"},
			{"DELETE", "/v1/"},
			{"DELETE", "/v2/entities/"},
			{"DELETE", "/v2/entities/user/"},
			{"PATCH", "/v1/memories/"},
			{"GET", "/v1/credits"},
			{"DELETE", "/v1/memories/.."},
			{"DELETE", "/v1/memories/."},
			{"GET", "/v1/memories/../ping"},
			{"GET", "/v1/memories/a/b/c"},
			{"POST", "/v3/memories/" + canary + "/"},
			{"DELETE", "/v2/entities/planet/x/"},
		} {
			a := w.send(ask[0], ask[1], "")
			a.want(t, 404, `"code":"ROUTE_NOT_FOUND"`)
			a.five(t)
			if strings.Contains(a.body, canary) {
				t.Errorf("%s quotes the caller", a.body)
			}
		}
		if len(w.erases)+len(w.changes) > 0 {
			t.Error("something was deleted")
		}
	})
	t.Run("PermissionsAreThoseOfTheNativeRoutes", func(t *testing.T) {
		t.Parallel()
		w := setup(t, access.MemoryRead)
		w.send("GET", "/v1/ping/", "").want(t, 200)
		id := uuid.NewString()
		for _, ask := range [][2]string{
			{"POST", "/v3/memories/add/"},
			{"POST", "/v1/memories/"},
			{"PUT", "/v1/memories/" + id + "/"},
			{"DELETE", "/v1/memories/" + id + "/"},
			{"DELETE", "/v1/memories/?user_id=u"},
			{"DELETE", "/v2/entities/user/u/"},
			{"PUT", "/v1/batch/"},
			{"DELETE", "/v1/batch/"},
			{"GET", "/v1/event/" + id + "/"},
			{"GET", "/v1/events/"},
		} {
			w.send(ask[0], ask[1], `{"messages":"x","user_id":"u"}`).want(t, 403, `"code":"INSUFFICIENT_PERMISSION"`)
		}
	})
	t.Run("WhatHasNoMeaningIs501", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, ask := range [][2]string{
			{"POST", "/v1/summary/"},
			{"GET", "/v2/entities/user/u/profile/"},
			{"POST", "/v2/profiles/jobs/"},
			{"GET", "/v2/profiles/settings/"},
			{"POST", "/api/v1/orgs/organizations/o/projects/"},
			{"GET", "/api/v1/orgs/organizations/o/projects/p/members/"},
			{"DELETE", "/api/v1/orgs/organizations/o/projects/p/"},
		} {
			a := w.send(ask[0], ask[1], "")
			a.want(t, 501, `"code":"NOT_IMPLEMENTED"`)
			a.five(t)
		}
	})
}

// five fails unless a refusal has all members that some client reads.
func (r reply) five(t *testing.T) {
	t.Helper()
	var raw map[string]any
	if err := json.Unmarshal([]byte(r.body), &raw); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"detail", "error", "message", "code", "request_id"} {
		if text, isText := raw[name].(string); !isText || text == "" {
			t.Errorf("%s lacks %s", r.body, name)
		}
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var first, second map[string]string
	for _, into := range []*map[string]string{&first, &second} {
		if err := json.Unmarshal([]byte(w.send("GET", "/v1/ping/", "").body), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"org_id", "project_id", "user_email"} {
		if first[name] == "" || first[name] != second[name] || strings.Contains(first[name], "@") {
			t.Errorf("%s: %q and %q", name, first[name], second[name])
		}
	}
	if first["status"] != "ok" {
		t.Errorf("status %q", first["status"])
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for code, want := range map[fault.Code]int{
		fault.InsufficientCredits: 402, fault.IdempotencyConflict: 409, fault.IdempotencyInProgress: 409, fault.RateLimited: 429,
		fault.TooManyPending: 429, fault.UnavailableNow: 503, fault.AcceptanceUnknown: 503, fault.InternalError: 500,
	} {
		w.fail = fault.New(code)
		a := w.send("POST", "/v3/memories/add/", `{"messages":"`+canary+`","user_id":"u"}`)
		a.want(t, want, `"code":"`+string(code)+`"`)
		a.five(t)
		if (want == 429 || want == 503) != (a.header.Get("Retry-After") != "") && code != fault.IdempotencyInProgress {
			t.Errorf("%s: Retry-After %q", code, a.header.Get("Retry-After"))
		}
	}
	w.fail = nil
	id := uuid.NewString()
	w.send("GET", "/v1/memories/"+id+"/", "").want(t, 404, `"error":"Memory not found!"`, `"detail":"Memory not found!"`)
	for _, path := range []string{"/v1/memories/undefined/", "/v1/memories/a%2Fb%3Fc/", "/v1/memories/x/history/"} {
		a := w.send("GET", path, "")
		a.want(t, 400, `"error":"memory_id should be a valid UUID"`)
		a.five(t)
	}
	for _, body := range []string{`{"messages":"a\ud83d","user_id":"u"}`, `{"messages":"a\u0000","user_id":"u"}`, `{"user_id":"a","user_id":"b","messages":"x"}`, `{`, `[]`} {
		w.send("POST", "/v3/memories/add/", body).want(t, 400)
	}
	w.send("POST", "/v3/memories/add/", `{"messages":"`+strings.Repeat("x", 250_001)+`","user_id":"u"}`).want(t, 413, "PAYLOAD_TOO_LARGE")
	if len(w.adds) != 8 {
		t.Errorf("%d adds", len(w.adds))
	}
}

func TestErase(t *testing.T) {
	t.Parallel()
	t.Run("WithoutAFilterNothingIsErased", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, path := range []string{
			"/v1/memories/", "/v1/memories", "/v1/memories//", "/v1/memories/?", "/v1/memories/?user_id=", "/v1/memories/?user_id=%20",
			"/v1/memories/?org_id=o&project_id=p", "/v1/memories/?user_id=*", "/v1/memories/?user_id=u&agent_id=*", "/v1/memories/?userid=u",
			"/v1/memories/?user_id=u&metadata=x", "/v1/memories/?user_id=u&user_id=v", "/v1/memories/?user_id=u&userId=v", "/v2/entities/user/*/",
		} {
			w.send("DELETE", path, "").want(t, 400)
		}
		if len(w.erases) > 0 {
			t.Errorf("erased %+v", w.erases)
		}
	})
	t.Run("AnotherNameIsNotErasedInItsPlace", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, path := range []string{ // what npm 2.4.6, which escapes nothing, makes of /ada, ada/, ada//x, ada?x and ada?user_id=x
			"/v2/entities/user//ada/", "/v2/entities/user/ada//", "/v2/entities/user/ada//x/", "/v2/entities/user//ada",
			"/v2/entities/user/ada?x/?org_id=o&project_id=p", "/v2/entities/user/ada?user_id=x", "/v1/entities/user/ada/?page=1",
		} {
			w.send("DELETE", path, "").want(t, 400, `"code":"INVALID_REQUEST"`)
		}
		if len(w.erases) > 0 {
			t.Errorf("erased %+v", w.erases)
		}
		for _, path := range []string{"//v2/entities/user/ada/", "//v2//entities//user/ada", "/v2/entities/user/ada/?project_id=p"} {
			w.send("DELETE", path, "").want(t, 200)
		}
		w.send("DELETE", "/v2/entities/user/%2Fada%2F/", "").want(t, 200)
		if got := w.erases; len(got) != 4 || got[0].UserID != "ada" || got[3].UserID != "/ada/" {
			t.Errorf("erased %+v", got)
		}
	})
	t.Run("ANameIsErasedAsItIsOrNotAtAll", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		names := rapid.StringOfN(rapid.SampledFrom([]rune("abA1/?.*&=+;:@!$'()[] é咖🦊")), 1, 8, -1)
		property.Check(t, func(t *rapid.T) {
			name, escaped := names.Draw(t, "name"), rapid.Bool().Draw(t, "escaped")
			path := strings.ReplaceAll(name, " ", "%20") // as npm 2.4.6 sends it
			if escaped {
				path = url.PathEscape(name)
			}
			before := len(w.erases)
			a := w.send("DELETE", "/v2/entities/user/"+path+"/", "")
			switch erased := w.erases[before:]; {
			case len(erased) == 1 && erased[0] == (memory.Scope{UserID: strings.TrimSpace(name)}):
			case len(erased) > 0:
				t.Fatalf("%q erases %+v", name, erased)
			case a.status != 400 && a.status != 404:
				t.Fatalf("%q: %d %s", name, a.status, a.body)
			case escaped && strings.TrimSpace(name) != "" && !slices.Contains([]string{"*", ".", ".."}, name):
				t.Fatalf("%q was refused: %s", name, a.body)
			}
		})
	})
	t.Run("NamesAreTakenAsTheyAre", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, c := range []struct {
			path string
			want memory.Scope
		}{
			{"/v1/memories/?user_id=a%2Cb&org_id=o&project_id=p", memory.Scope{UserID: "a,b"}},
			{"/v1/memories/?user_id=a+b&run_id=%2B", memory.Scope{UserID: "a b", RunID: "+"}},
			{"/v2/entities/user/a/b%20c/?org_id=o", memory.Scope{UserID: "a/b c"}},
			{"/v2/entities/agent/a%2Fb+c/", memory.Scope{AgentID: "a/b+c"}},
			{"/v1/entities/run/%F0%9F%A6%8A%26/", memory.Scope{RunID: "🦊&"}},
			{"/v2/entities/app/x", memory.Scope{AppID: "x"}},
		} {
			w.send("DELETE", c.path, "").want(t, 200, `"message":`, `"event_id":"`+w.event.ID.String()+`"`)
			if got := w.erases[len(w.erases)-1]; got != c.want {
				t.Errorf("%s erases %+v", c.path, got)
			}
		}
		w.unended = true
		w.send("DELETE", "/v1/memories/?user_id=u", "").want(t, 202, `"status":"RUNNING"`)
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	text := "fact"
	completed := time.Unix(101, 0).UTC()
	for status, want := range map[task.EventStatus]string{
		task.EventPending: "PENDING", task.EventRunning: "RUNNING", task.EventRetrying: "RUNNING", task.EventSucceeded: "SUCCEEDED", task.EventFailed: "FAILED",
	} {
		w.event.Status, w.event.CompletedAt = status, nil
		w.event.ErrorCode, w.event.Results = "", nil
		switch status {
		case task.EventSucceeded:
			w.event.Results = []memory.Result{{RecordID: uuid.New(), Change: memory.Added, Text: &text}}
			w.event.CompletedAt = &completed
		case task.EventFailed:
			w.event.ErrorCode, w.event.CompletedAt = task.CodeAttemptsExhausted, &completed
		case task.EventPending, task.EventRunning, task.EventRetrying:
		}
		for _, path := range []string{"/v1/event/" + w.event.ID.String() + "/", "/v1/events/evt_" + w.event.ID.String()} {
			a := w.send("GET", path, "")
			a.want(t, 200, `"status":"`+want+`"`, `"results":[`, `"id":"`+w.event.ID.String()+`"`, `"event_type":"ADD"`)
			switch status {
			case task.EventSucceeded:
				a.want(t, 200, `"data":{"memory":"fact"}`, `"latency":1000`, `"error":null`)
			case task.EventFailed:
				a.want(t, 200, `"results":[]`, `"error_code":"`+string(w.event.ErrorCode)+`"`, `"error":"`, `"message":"`)
			case task.EventPending, task.EventRunning, task.EventRetrying:
				a.want(t, 200, `"results":[]`, `"latency":null`, `"completed_at":null`)
			}
		}
	}
	w.send("GET", "/v1/events/", "").want(t, 200, `"count":1`, `"next":null`, `"previous":null`)
	for _, id := range []string{uuid.NewString(), "undefined", "ev_0123456789abcdef"} {
		w.send("GET", "/v1/event/"+id+"/", "").want(t, 404, `"code":"EVENT_NOT_FOUND"`, `"error":"Event not found or `)
	}
}

func TestEntities(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.send("GET", "/v1/entities/", "").want(t, 200, `"count":0`, `"results":[]`)
	w.entities = []recall.Entity{{Type: recall.Agent, ID: "a/b", Memories: 2}, {Type: recall.User, ID: "u", Memories: 1}}
	w.send("GET", "/v1/entities/?page=1&page_size=50&org_id=x", "").want(t, 200, `"count":2`, `"total_users":1`, `"total_agents":1`,
		`"name":"a/b"`, `"type":"agent"`, `"total_memories":2`, `"owner":`, `"organization":`)
	w.send("GET", "/v2/entities/agent/a%2Fb/", "").want(t, 200, `[{"id":"a/b"`)
	w.send("GET", "/v1/entities/user/nobody/", "").want(t, 404, "Entity not found!")
	w.send("GET", "/v1/entities/filters/", "").want(t, 200, `["ADD"`)
	w.send("GET", "/v1/entities/?page=2", "").want(t, 404, `"detail":"Invalid page."`)
}

func TestPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.total, w.records = 450, []memory.Record{{ID: uuid.New(), Text: "x"}}
	const ask = `{"filters":{"user_id":"u"}}`
	var page struct {
		Count          int
		Next, Previous *string
		Results        []record
	}
	read := func(path string, header ...string) {
		t.Helper()
		page.Next, page.Previous = nil, nil
		a := w.send("POST", path, ask, header...)
		a.want(t, 200)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || page.Count != 450 || len(page.Results) != 1 {
			t.Fatalf("%s: %s %v", path, a.body, err)
		}
	}
	read("/v3/memories/")
	if w.browsed.Page != 1 || w.browsed.Size != 100 || page.Previous != nil || page.Next == nil || *page.Next != "http://example.com/v3/memories/?page=2" {
		t.Errorf("first page: %+v %v", w.browsed, page.Next)
	}
	read("/v3/memories/?page=3&page_size=500", "X-Forwarded-Proto", "https")
	if w.browsed.Size != 200 || page.Next != nil || page.Previous == nil || *page.Previous != "https://example.com/v3/memories/?page=2&page_size=500" {
		t.Errorf("last page: %+v %v %v", w.browsed, page.Next, page.Previous)
	}
	for _, bad := range []string{"4", "0", "-1", "x", "99999999999999999999"} {
		w.send("POST", "/v3/memories/?page_size=200&page="+bad, ask).want(t, 404, `"detail":"Invalid page."`)
	}
	for _, far := range []string{"?page=9999&page_size=200", "?page=100001&page_size=1", "?page=9223372036854775807"} {
		w.send("POST", "/v3/memories/"+far, ask).want(t, 404, `"detail":"Invalid page."`)
		if w.browsed.Offset() > recall.MaxBrowsed {
			t.Errorf("%s reads from %d", far, w.browsed.Offset())
		}
	}
	w.total = 200_000
	w.send("POST", "/v3/memories/?page=1002&page_size=100", ask).want(t, 400, `"/page"`)
	w.total = 450
	w.send("POST", "/v3/memories/?page_size=x", ask).want(t, 400)
	w.send("POST", "/v2/memories/?page=1&page_size=10", ask).want(t, 200, `[{"id":`)
	w.send("GET", "/v1/memories/?user_id=u&org_id=o&project_id=p", "").want(t, 200, `[{"id":`)
	w.send("GET", "/v1/memories/?user_id=u&limit=7", "").want(t, 200, `[{"id":`)
	if w.browsed.Size != 7 {
		t.Errorf("limit: %+v", w.browsed)
	}
	w.send("GET", "/v1/memories/?user_id=u&limit=x", "").want(t, 400, "/limit")
	w.send("GET", "/v1/memories/?user_id=u&categories=x", "").want(t, 400)
	w.send("GET", "/v1/memories/?user_id=u&page=2", "").want(t, 200, `[{"id":`)
	w.send("GET", "/v1/memories/?user_id=u&page=1&page_size=10", "").want(t, 200, `{"count":450`)
	for _, nobody := range []reply{
		w.send("POST", "/v3/memories/", `{}`), w.send("POST", "/v3/memories/", ""), w.send("GET", "/v1/memories/", ""),
		w.send("POST", "/v3/memories/", `{"filters":{}}`), w.send("POST", "/v3/memories/", `{"filters":{"metadata":{"a":1}}}`),
	} {
		nobody.want(t, http.StatusBadRequest, `"code":"SCOPE_REQUIRED"`)
	}
}
