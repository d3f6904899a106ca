package endtoend

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/collector"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

const (
	callersTrace  = "0af7651916cd43dd8448eb211c80319c"
	callersSpan   = "b7ad6b7169203331"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// addTraced is add with the trace context of a caller, and words of its own where trace context has room for them.
func (s *system) addTraced(key string, body map[string]any, tracestate string) string {
	s.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.api+"/v1/memories", strings.NewReader(string(encoded)))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + s.key, "Content-Type": "application/json", "Idempotency-Key": key,
		"Traceparent": callersParent, "Tracestate": "v=" + tracestate, "Baggage": "b=" + tracestate,
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var receipt struct {
		EventID string `json:"event_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&receipt); err != nil || receipt.EventID == "" {
		s.t.Fatalf("add %s: %d %v", key, response.StatusCode, err)
	}
	return receipt.EventID
}

// of picks the spans of that beginning which are about the event.
func of(event, name string) func(collector.Span) bool {
	return func(s collector.Span) bool {
		return s.Attributes["holdfast.event_id"] == event && strings.HasPrefix(s.Name, name)
	}
}

// linked holds that a claim is the root of a trace of its own, with its link to the request.
func linked(t *testing.T, claim, request collector.Span) {
	t.Helper()
	if claim.Parent != "" || claim.Trace == request.Trace || len(claim.Links) == 0 ||
		claim.Links[0].Trace != request.Trace || claim.Links[0].ID != request.ID {
		t.Errorf("attempt %s is no root linked to %s: %+v", claim.Attributes["holdfast.attempt"], request.ID, claim)
	}
}

// parts holds that the claim has a child of each of these names.
func parts(t *testing.T, to *collector.Collector, claim collector.Span, names ...string) {
	t.Helper()
	for _, name := range names {
		to.Wait(t, patience, 1, name+" of "+claim.ID, func(s collector.Span) bool {
			return s.Name == name && s.Parent == claim.ID && s.Trace == claim.Trace
		})
	}
}

// TestTraces follows commands from their requests to their ends through real processes and OTLP over HTTP.
func TestTraces(t *testing.T) {
	t.Parallel()

	t.Run("EveryAttemptLinksTheRequestAlsoAfterAKill", func(t *testing.T) {
		t.Parallel()
		to := collector.New(t)
		s := newSystem(t, testkit.NewDatabase(t), to.Env()...)
		api := s.startAPI()
		doomed := s.startWorker(point("worker.after_inference", "kill"))
		id := s.addTraced("k", conversation("u", "FACT: one"), "canary-5150")
		announced(doomed, "worker.after_inference")
		doomed.Wait(patience)
		heir := s.startWorker()
		s.succeeded(id)

		request := to.Wait(t, patience, 1, "the request", of(id, "POST /v1/memories"))[0]
		if request.Trace != callersTrace || request.Parent != callersSpan || request.Service != "holdfast-api" {
			t.Errorf("the request is no child of its caller's span: %+v", request)
		}
		claim := to.Wait(t, patience, 1, "the claim", of(id, "claim memory_infer"))[0]
		linked(t, claim, request)
		if claim.Attributes["holdfast.attempt"] != "2" || claim.Attributes["holdfast.end"] != "succeeded" || claim.Service != "holdfast-worker" {
			t.Errorf("the claim: %+v", claim)
		}
		parts(t, to, claim, "model call", "commit", "settle")
		heir.Signal(syscall.SIGTERM)
		heir.Wait(patience)
		api.WaitForOutput(`"trace_id":"`+callersTrace+`"`, patience)
		api.WaitForOutput(`"event_id":"`+strings.TrimPrefix(id, "evt_")+`"`, patience)
		for _, want := range []string{`"origin_trace_id":"` + callersTrace + `"`, `"trace_id":"` + claim.Trace + `"`} {
			if !strings.Contains(heir.Stderr(), want) {
				t.Errorf("no line of the worker's log has %s", want)
			}
		}
		if strings.Contains(string(to.Raw()), "canary-5150") {
			t.Error("text of the caller's trace context is in a span")
		}
	})

	t.Run("ARetryAndAWriteAtOnceAreLinkedToo", func(t *testing.T) {
		t.Parallel()
		to := collector.New(t)
		s := newSystem(t, testkit.NewDatabase(t), to.Env()...)
		s.startAPI()
		s.startWorker()
		s.stub.Queue(stubmodel.With("flaky"), stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "overloaded")))
		id := s.addTraced("k", conversation("u", "FACT: flaky"), "x")
		s.succeeded(id)
		request := to.Wait(t, patience, 1, "the request", of(id, "POST"))[0]
		claims := to.Wait(t, patience, 2, "two claims", of(id, "claim"))
		for _, claim := range claims {
			linked(t, claim, request)
		}
		if claims[0].Attributes["holdfast.end"] != "retry" || claims[0].Attributes["error.type"] != "provider_unavailable" || !claims[0].Failed {
			t.Errorf("the first claim: %+v", claims[0])
		}
		parts(t, to, claims[0], "model call", "give up")

		body := conversation("u", "said as it is")
		body["infer"] = false
		now := s.addTraced("n", body, "x")
		s.succeeded(now)
		linked(t, to.Wait(t, patience, 1, "its projection", of(now, "claim memory_add"))[0], to.Wait(t, patience, 1, "its request", of(now, "POST"))[0])
	})

	t.Run("ACollectorThatIsAwayCostsNothing", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, testkit.NewDatabase(t), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_BSP_SCHEDULE_DELAY=50")
		api, worker := s.startAPI(), s.startWorker()
		s.succeeded(s.add("k", conversation("u", "FACT: one")))
		for _, p := range []*testkit.Process{worker, api} {
			p.Signal(syscall.SIGTERM)
			if code := p.Wait(patience); code != 0 {
				t.Errorf("a process without its collector ended with %d", code)
			}
		}
	})

	t.Run("AreOffByDefault", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, testkit.NewDatabase(t))
		api, worker := s.startAPI(), s.startWorker()
		s.succeeded(s.addTraced("k", conversation("u", "FACT: one"), "x"))
		if n := one[int](s, `SELECT count(*) FROM tasks WHERE trace IS NOT NULL`); n != 0 {
			t.Errorf("%d tasks have an origin", n)
		}
		if strings.Contains(api.Stderr()+worker.Stderr(), callersTrace) {
			t.Error("a log has the caller's trace")
		}
	})
}
