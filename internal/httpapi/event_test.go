package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func path(id uuid.UUID) string { return "/v1/events/" + eventID(id) }

func TestEvent(t *testing.T) {
	t.Parallel()
	t.Run("ShowsASuccess", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := eventIn(task.EventSucceeded)
		text := "Likes tea <b>"
		event.Outcome, event.ErrorCode, event.ErrorClass = task.Stored, task.CodeProviderTimeout, task.ProviderTimeout
		event.Results = []memory.Result{{RecordID: uuid.New(), Change: memory.Added, Text: &text}, {RecordID: uuid.New(), Change: memory.None}}
		w.put("all", event)
		answer := w.do(t, "all", "GET", path(event.ID), "")
		answer.want(t, 200, "")
		var shown contract.Event
		answer.into(t, &shown)
		if shown.Status != "SUCCEEDED" || *shown.Outcome != "STORED" || *shown.LatencyMs != 1500 || shown.Error != nil ||
			len(shown.Results) != 2 || *shown.Results[0].Memory != text || shown.Results[1].Memory != nil || *shown.Scope.UserId != "u" {
			t.Fatalf("got %s", answer.Body)
		}
		if !strings.Contains(answer.Body.String(), `"created_at":"2026-03-01T11:00:00Z"`) || !strings.Contains(answer.Body.String(), "<b>") {
			t.Fatalf("times aren't UTC or texts are escaped: %s", answer.Body)
		}
		if answer.Header().Get("Retry-After") != "" {
			t.Fatal("a terminal event asks to be polled")
		}
	})
	t.Run("ShowsNoResultsBeforeSuccess", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := eventIn(task.EventRetrying)
		next := time.Now().Add(30 * time.Second)
		event.Results = []memory.Result{{RecordID: uuid.New(), Change: memory.Added}}
		event.ErrorCode, event.ErrorClass, event.NextAttemptAt = task.CodeProviderRateLimited, task.ProviderRateLimited, &next
		w.put("all", event)
		answer := w.do(t, "all", "GET", path(event.ID), "")
		var shown contract.Event
		answer.into(t, &shown)
		if len(shown.Results) != 0 || shown.LatencyMs != nil || shown.Error.Code != "PROVIDER_RATE_LIMITED" || !shown.Error.Retryable {
			t.Fatalf("got %s", answer.Body)
		}
		if !strings.Contains(answer.Body.String(), `"results":[]`) || answer.Header().Get("Retry-After") != "30" {
			t.Fatalf("got %v %s", answer.Header(), answer.Body)
		}
	})
	t.Run("AFailureWithoutInputIsNotRetryable", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := eventIn(task.EventFailed)
		event.ErrorCode, event.ErrorClass, event.InputGone = task.CodeCancelled, task.Cancelled, true
		w.put("all", event)
		var shown contract.Event
		w.do(t, "all", "GET", "/v1/operations/"+event.ID.String(), "").into(t, &shown)
		if shown.Error.Retryable || shown.Error.Action == task.Explain(task.CodeCancelled).Action || *shown.LatencyMs != 1500 {
			t.Fatalf("got %+v", shown.Error)
		}
	})
	t.Run("AnErasedOneNamesNobody", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := eventIn(task.EventFailed)
		event.Erased = true
		w.put("all", event)
		if body := w.do(t, "all", "GET", path(event.ID), "").Body.String(); !strings.Contains(body, `"scope":null`) || !strings.Contains(body, `"erased":true`) {
			t.Fatalf("got %s", body)
		}
	})
	t.Run("AnswersTheTagAndNothingIfItIsKnown", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		tag := w.do(t, "all", "GET", path(event.ID), "").Header().Get("ETag")
		for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			again := w.do(t, "all", "GET", path(event.ID), "", header("If-None-Match", known))
			if again.Code != 304 || again.Body.Len() != 0 || again.Header().Get("ETag") != tag || again.Header().Get("Retry-After") != "1" {
				t.Fatalf("%s: got %d %v", known, again.Code, again.Header())
			}
		}
		w.do(t, "all", "GET", path(event.ID), "", header("If-None-Match", `"x"`, tag)).want(t, 304, "")
		w.do(t, "all", "GET", path(event.ID), "", header("If-None-Match", `"x"`)).want(t, 200, "")
		event.Status = task.EventRunning
		w.put("all", event)
		changed := w.do(t, "all", "GET", path(event.ID), "", header("If-None-Match", tag))
		if changed.want(t, 200, ""); changed.Header().Get("ETag") == tag {
			t.Fatal("another representation has the same tag")
		}
	})
}

func TestEventNotFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	foreign := w.put("other", eventIn(task.EventPending))
	w.records = []memory.Record{{ID: uuid.New()}}
	fixed := header("X-Request-Id", "same")
	for _, base := range []string{"/v1/events/", "/v1/operations/"} {
		unknown := w.do(t, "all", "GET", base+"evt_"+uuid.NewString(), "", fixed)
		unknown.want(t, 404, fault.EventNotFound)
		for _, id := range []string{
			eventID(foreign.ID), foreign.ID.String(), "mem_" + uuid.NewString(), canary, "evt_", "evt_" + canary, "%00", "a%2Fb", "a,b",
			"evt_evt_" + uuid.NewString(), strings.ReplaceAll(uuid.NewString(), "-", ""), "{" + uuid.NewString() + "}",
			"urn:uuid:" + uuid.NewString(), strings.Repeat("a", 3000),
		} {
			if got := w.do(t, "all", "GET", base+id, "", fixed); got.Body.String() != unknown.Body.String() || got.Code != 404 {
				t.Errorf("%s%s differs from an unknown id: %s", base, id, got.Body)
			}
		}
		for _, id := range []string{eventID(foreign.ID), canary} {
			for _, action := range []string{"/retry", "/cancel"} {
				if base == "/v1/operations/" && action == "/cancel" {
					continue
				}
				unknown := w.do(t, "all", "POST", base+uuid.NewString()+action, "", fixed, header("Idempotency-Key", "k"))
				got := w.do(t, "all", "POST", base+id+action, "", fixed, header("Idempotency-Key", "k"))
				if id == canary && got.Body.String() != unknown.Body.String() {
					t.Errorf("%s%s%s differs from an unknown id: %s", base, id, action, got.Body)
				}
			}
		}
	}
	unknown := w.do(t, "all", "GET", "/v1/memories/mem_"+uuid.NewString(), "", fixed)
	unknown.want(t, 404, fault.MemoryNotFound)
	for _, id := range []string{"evt_" + uuid.NewString(), canary, "mem_"} {
		if got := w.do(t, "all", "GET", "/v1/memories/"+id, "", fixed); got.Body.String() != unknown.Body.String() {
			t.Errorf("%s differs from an unknown id: %s", id, got.Body)
		}
	}
	if got := w.do(t, "other", "GET", "/v1/memories/"+memoryID(w.records[0].ID), "", fixed); got.Body.String() != unknown.Body.String() {
		t.Errorf("another workspace's memory differs from an unknown id: %s", got.Body)
	}
	w.do(t, "all", "GET", "/v1/memories/"+strings.ToUpper(w.records[0].ID.String()), "").want(t, 200, "")
}

func TestWait(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, w *world, target string, options ...option) <-chan reply {
		t.Helper()
		answered := make(chan reply, 1)
		go func() { answered <- w.do(t, "all", "GET", target, "", options...) }()
		<-w.waiting
		return answered
	}
	t.Run("EndsWithTheEvent", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		for _, way := range []struct {
			target  string
			options []option
			applied string
		}{
			{path(event.ID) + "?wait=60", nil, ""},
			{path(event.ID), []option{header("Prefer", "respond-async, wait=100; x=y")}, "wait=60"},
			{"/v1/operations/" + event.ID.String(), []option{header("Prefer", "respond-async", `Wait = "25"`)}, "wait=25"},
		} {
			w.put("all", event)
			answered := begin(t, w, way.target, way.options...)
			ended := event
			ended.Status = task.EventFailed
			w.put("all", ended)
			var shown contract.Event
			reply := <-answered
			if reply.into(t, &shown); shown.Status != "FAILED" {
				t.Fatalf("got %s", shown.Status)
			}
			if applied := reply.Header().Get("Preference-Applied"); applied != way.applied {
				t.Fatalf("Preference-Applied is %q, want %q", applied, way.applied)
			}
		}
	})
	t.Run("EndsWithTheFirstChangeIfTheTagIsGiven", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		tag := w.do(t, "all", "GET", path(event.ID), "").Header().Get("ETag")
		answered := begin(t, w, path(event.ID)+"?wait=60", header("If-None-Match", tag))
		event.Status = task.EventRunning
		w.put("all", event)
		var shown contract.Event
		if (<-answered).into(t, &shown); shown.Status != "RUNNING" {
			t.Fatalf("got %s", shown.Status)
		}
	})
	t.Run("ATerminalEventAnswersAtOnce", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventSucceeded))
		answer := w.do(t, "all", "GET", path(event.ID)+"?wait=60", "")
		answer.want(t, 200, "")
		w.do(t, "all", "GET", path(event.ID)+"?wait=60", "", header("If-None-Match", answer.Header().Get("ETag"))).want(t, 304, "")
	})
	t.Run("GivesItsPlaceToOthers", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(c *Config) { c.MaxInFlight = 1 })
		event := w.put("all", eventIn(task.EventPending))
		answered := begin(t, w, path(event.ID)+"?wait=60")
		w.do(t, "all", "GET", "/v1/credits", "").want(t, 200, "")
		event.Status = task.EventFailed
		w.put("all", event)
		(<-answered).want(t, 200, "")
	})
	t.Run("IsNotDoneByTooManyAtOnce", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(c *Config) { c.MaxWaiting = 1 })
		event := w.put("all", eventIn(task.EventPending))
		w.server.waiting <- struct{}{}
		answer := w.do(t, "all", "GET", path(event.ID), "", header("Prefer", "wait=60"))
		if answer.want(t, 200, ""); answer.Header().Get("Preference-Applied") != "" {
			t.Fatal("it says that it waited")
		}
	})
	t.Run("EndsWhenTheServerStops", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		answered := begin(t, w, path(event.ID)+"?wait=60")
		if err := w.server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		(<-answered).want(t, 200, "")
	})
	t.Run("RefusesWhatIsNoNumber", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		for _, prefer := range []string{"wait=" + canary, "wait=-1", "wait", "wait=1.5", "wait=99999999999"} {
			w.do(t, "all", "GET", path(event.ID), "", header("Prefer", prefer)).want(t, 400, fault.InvalidRequest)
		}
		w.do(t, "all", "GET", path(event.ID), "", header("Prefer", "return=minimal, wait=0")).want(t, 200, "")
	})
}

func TestChange(t *testing.T) {
	t.Parallel()
	t.Run("RetryTakesAGenerationOrAKey", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		answer := w.do(t, "all", "POST", path(event.ID)+"/retry", `{"generation":3}`)
		answer.want(t, 202, "")
		if answer.Header().Get("Location") != path(event.ID) || answer.Header().Get("Retry-After") != "1" {
			t.Fatalf("headers %v", answer.Header())
		}
		first := w.do(t, "all", "POST", path(event.ID)+"/retry", "", header("Idempotency-Key", "k"))
		first.want(t, 202, "")
		again := w.do(t, "all", "POST", "/v1/operations/"+event.ID.String()+"/retry", `{}`, header("Idempotency-Key", "k"))
		again.want(t, 202, "")
		if first.Header().Get("Idempotent-Replayed") != "" || again.Header().Get("Idempotent-Replayed") != "true" {
			t.Fatalf("first %v, again %v", first.Header(), again.Header())
		}
		if len(w.retried) != 3 || w.retried[0] != 3 {
			t.Fatalf("retried %v", w.retried)
		}
		for _, body := range []string{"", "{}", `{"generation":0}`, `{"generation":"1"}`, `{"generation":1,"` + canary + `":1}`} {
			w.do(t, "all", "POST", path(event.ID)+"/retry", body).want(t, 400, fault.InvalidRequest)
		}
	})
	t.Run("CancelTakesNothing", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventFailed))
		answer := w.do(t, "all", "POST", path(event.ID)+"/cancel", "")
		if answer.want(t, 202, ""); answer.Header().Get("Retry-After") != "" {
			t.Fatal("a terminal event asks to be polled")
		}
		w.do(t, "all", "POST", path(event.ID)+"/cancel", "{}").want(t, 202, "")
		w.do(t, "all", "POST", path(event.ID)+"/cancel", `{"`+canary+`":1}`).want(t, 400, fault.InvalidRequest)
		w.failWith(fault.New(fault.NotCancellable))
		w.do(t, "all", "POST", path(event.ID)+"/cancel", "").want(t, 409, fault.NotCancellable)
	})
}

func TestEventsOfItems(t *testing.T) {
	t.Parallel()
	w := setup(t)
	event := w.put("all", eventIn(task.EventPending))
	w.items["ev_0123456789abcdef"] = event.ID
	for _, route := range []string{"GET /v1/events/", "GET /v1/operations/"} {
		method, path, _ := strings.Cut(route, " ")
		found := w.do(t, "all", method, path+"ev_0123456789abcdef", "")
		if found.Code != 200 || !strings.Contains(found.Body.String(), eventID(event.ID)) {
			t.Fatalf("%d %s", found.Code, found.Body)
		}
		for _, id := range []string{"ev_0123456789abcde0", "ev_0123456789ABCDEF", "ev_0123456789abcdef0", "ev_"} {
			w.do(t, "all", method, path+id, "").want(t, 404, fault.EventNotFound)
		}
		w.do(t, "other", method, path+"ev_0123456789abcdef", "").want(t, 404, fault.EventNotFound)
	}
	if answer := w.do(t, "all", "POST", "/v1/events/ev_0123456789abcdef/cancel", ""); answer.Code != 202 {
		t.Fatalf("cancel: %d %s", answer.Code, answer.Body)
	}
}
