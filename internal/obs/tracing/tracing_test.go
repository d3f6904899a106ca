package tracing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/collector"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

const callers = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

func tracing(t *testing.T, cfg Config) (*Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	seen := tracetest.NewInMemoryExporter()
	if cfg.Exporter == nil {
		cfg.Exporter = seen
	}
	cfg.Process, cfg.Log = "test", zerolog.Nop()
	tr, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Stop(context.WithoutCancel(t.Context())) })
	return tr, seen
}

// spans ends the wait of all spans and returns them by name.
func spans(t *testing.T, tr *Tracer, seen *tracetest.InMemoryExporter) map[string]tracetest.SpanStub {
	t.Helper()
	if err := tr.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := map[string]tracetest.SpanStub{}
	for _, s := range seen.GetSpans() {
		out[s.Name] = s
	}
	return out
}

func attributes(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

func TestRequest(t *testing.T) {
	t.Parallel()

	t.Run("IsAChildOfTheCallersSpanAndNamesItsEvent", func(t *testing.T) {
		t.Parallel()
		tr, seen := tracing(t, Config{})
		event := uuid.New()
		ctx, end := tr.Request(t.Context(), "POST", callers+"01")
		at := task.OriginOf(ctx)
		end("/v1/memories", 202, "", event)
		s := spans(t, tr, seen)["POST /v1/memories"]
		if s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || s.Parent.SpanID().String() != "b7ad6b7169203331" {
			t.Fatalf("%+v", s)
		}
		if at.Trace != s.SpanContext.TraceID() || at.Span != s.SpanContext.SpanID() || at.Flags != 1 {
			t.Fatalf("tasks come from %s", at.Parent())
		}
		got := attributes(s)
		if len(got) != 4 || got["http.route"] != "/v1/memories" || got["http.response.status_code"] != "202" ||
			got["http.request.method"] != "POST" || got["holdfast.event_id"] != "evt_"+event.String() {
			t.Fatalf("attributes %v", got)
		}
	})

	t.Run("WithoutAParentIsARoot", func(t *testing.T) {
		t.Parallel()
		tr, seen := tracing(t, Config{})
		_, end := tr.Request(t.Context(), "GET", "nonsense")
		end("/v1/events/:id", 503, "UNAVAILABLE", uuid.Nil)
		s := spans(t, tr, seen)["GET /v1/events/:id"]
		if s.Parent.IsValid() || s.Status.Code.String() != "Error" || attributes(s)["error.type"] != "UNAVAILABLE" {
			t.Fatalf("%+v", s)
		}
	})

	t.Run("WithoutATracerIsNothing", func(t *testing.T) {
		t.Parallel()
		var none *Tracer
		ctx, end := none.Request(t.Context(), "GET", callers+"01")
		end("/", 200, "", uuid.Nil)
		if !task.OriginOf(ctx).IsZero() || none.Stop(t.Context()) != nil {
			t.Fatal("something was traced")
		}
	})
}

func TestClaim(t *testing.T) {
	t.Parallel()

	t.Run("IsARootLinkedToItsRequestAndItsHint", func(t *testing.T) {
		t.Parallel()
		tr, seen := tracing(t, Config{})
		accepted, hint := task.ParseOrigin(callers+"01"), task.ParseOrigin("00-11111111111111111111111111111111-2222222222222222-01")
		lease := worker.Lease{TaskID: uuid.New(), WorkspaceID: uuid.New(), Kind: task.Infer, Stage: task.Accepted, Claim: 2, Generation: 1, Origin: accepted}
		lease.Scope.UserID = "canary-of-a-scope"
		outer, endOuter := tr.Request(t.Context(), "GET", "")
		ctx, end := tr.Claim(outer, lease, worker.ByHint, hint, time.Now())
		_, endPart := tr.Part(ctx, worker.ModelPart)
		endPart("provider_timeout")
		end(worker.Retried, task.ProviderTimeout)
		endOuter("/x", 200, "", uuid.Nil)
		all := spans(t, tr, seen)
		claim, part := all["claim memory_infer"], all["model call"]
		if claim.Parent.IsValid() || claim.SpanContext.TraceID() == trace.TraceID(accepted.Trace) {
			t.Fatalf("it is no root: %+v", claim)
		}
		if len(claim.Links) != 2 || claim.Links[0].SpanContext.TraceID() != trace.TraceID(accepted.Trace) ||
			claim.Links[0].SpanContext.SpanID() != trace.SpanID(accepted.Span) || claim.Links[1].SpanContext.TraceID() != trace.TraceID(hint.Trace) {
			t.Fatalf("links %+v", claim.Links)
		}
		if part.Parent.SpanID() != claim.SpanContext.SpanID() || part.Status.Description != "provider_timeout" {
			t.Fatalf("the part: %+v", part)
		}
		got := attributes(claim)
		if got["holdfast.attempt"] != "2" || got["holdfast.end"] != "retry" || got["error.type"] != "provider_timeout" ||
			got["holdfast.source"] != "hint" || claim.Status.Code.String() != "Error" {
			t.Fatalf("attributes %v", got)
		}
		for key, value := range got {
			if strings.Contains(value, "canary") || strings.Contains(value, lease.WorkspaceID.String()) {
				t.Errorf("%s is %q", key, value)
			}
		}
		if at := task.OriginOf(ctx); at.Trace != claim.SpanContext.TraceID() {
			t.Errorf("hints of the claim come from %s", at.Parent())
		}
	})

	t.Run("HintOfItsOwnRequestIsOneLink", func(t *testing.T) {
		t.Parallel()
		tr, seen := tracing(t, Config{})
		o := task.ParseOrigin(callers + "01")
		_, end := tr.Claim(t.Context(), worker.Lease{Kind: task.Infer, Origin: o}, worker.ByHint, o, time.Now())
		end(worker.Succeeded, "")
		if s := spans(t, tr, seen)["claim memory_infer"]; len(s.Links) != 1 || s.Status.Code.String() != "Unset" {
			t.Fatalf("%+v", s)
		}
	})
}

func TestSampler(t *testing.T) {
	t.Parallel()

	t.Run("AClaimIsSeenWhenItsRequestWas", func(t *testing.T) {
		t.Parallel()
		for flags, want := range map[string]int{"00": 0, "01": 1} {
			tr, seen := tracing(t, Config{Sampler: "parentbased_traceidratio", SamplerArg: "0.5"})
			for range 20 { // a ratio alone would pass once in a million
				_, end := tr.Claim(t.Context(), worker.Lease{Kind: task.Infer, Origin: task.ParseOrigin(callers + flags)}, worker.ByPoll, task.Origin{}, time.Now())
				end(worker.Succeeded, "")
			}
			if spans(t, tr, seen); len(seen.GetSpans()) != 20*want {
				t.Errorf("of requests with the flag %s %d of 20 claims are seen", flags, len(seen.GetSpans()))
			}
		}
	})

	t.Run("TheRootsOwnSamplerDecidesWithoutARequest", func(t *testing.T) {
		t.Parallel()
		for name, want := range map[string]int{"": 1, "parentbased_always_off": 0, "always_on": 1, "always_off": 0, "traceidratio": 1} {
			tr, seen := tracing(t, Config{Sampler: name})
			_, end := tr.Claim(t.Context(), worker.Lease{Kind: task.Infer}, worker.ByPoll, task.Origin{}, time.Now())
			end(worker.Succeeded, "")
			if spans(t, tr, seen); len(seen.GetSpans()) != want {
				t.Errorf("%q sees %d", name, len(seen.GetSpans()))
			}
		}
	})

	t.Run("RefusesWhatItDoesNotKnow", func(t *testing.T) {
		t.Parallel()
		for _, c := range []Config{{Sampler: "jaeger_remote"}, {Sampler: "traceidratio", SamplerArg: "2"}, {Sampler: "parentbased_traceidratio", SamplerArg: "x"}} {
			c.Exporter = tracetest.NewInMemoryExporter()
			if _, err := New(t.Context(), c); err == nil {
				t.Errorf("%+v was taken", c)
			}
		}
	})
}

// stuck is an exporter whose collector doesn't answer.
type stuck struct{}

func (stuck) ExportSpans(ctx context.Context, _ []sdk.ReadOnlySpan) error {
	<-ctx.Done()
	return ctx.Err()
}
func (stuck) Shutdown(context.Context) error { return nil }

func TestExport(t *testing.T) {
	t.Parallel()

	t.Run("NobodyWaitsForACollectorThatDoesNotAnswer", func(t *testing.T) {
		t.Parallel()
		tr, _ := tracing(t, Config{Exporter: stuck{}})
		const n = 20_000 // ten times what the queue holds: with a wait this would last for minutes
		for range n {
			_, end := tr.Request(t.Context(), "GET", "")
			end("/", 200, "", uuid.Nil)
		}
		if got := tr.Counts(); got.Ended != n || got.Exported != 0 {
			t.Fatalf("%+v", got)
		}
		bounded, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := tr.Stop(bounded); err == nil {
			t.Fatal("the last spans were exported")
		}
	})

	t.Run("WhatFailsIsCountedAndToldOnceWithoutItsText", func(t *testing.T) {
		t.Parallel()
		var out strings.Builder
		c := &counted{next: failing{}, log: zerolog.New(&out)}
		for range 3 {
			if err := c.ExportSpans(t.Context(), make([]sdk.ReadOnlySpan, 5)); err != nil {
				t.Fatal(err)
			}
		}
		if c.lost.Load() != 15 || strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "password") {
			t.Fatalf("%d lost, told %q", c.lost.Load(), out.String())
		}
	})
}

type failing struct{ stuck }

func (failing) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	return errors.New("post to http://user:password@host failed")
}

// The address comes from the environment as for every user of OpenTelemetry, so this test runs beside no other one.
func TestOTLP(t *testing.T) {
	to := collector.New(t)
	for _, entry := range to.Env() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	tr, err := New(t.Context(), Config{Process: "api", Version: "v1", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	_, end := tr.Request(t.Context(), "POST", callers+"01")
	end("/v1/memories", 202, "", uuid.New())
	if err := tr.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := to.Spans()
	if len(got) != 1 || got[0].Service != "holdfast-api" || got[0].Name != "POST /v1/memories" || got[0].Parent != "b7ad6b7169203331" {
		t.Fatalf("%+v", got)
	}
	if counts := tr.Counts(); counts != (Spans{Ended: 1, Exported: 1}) {
		t.Fatalf("%+v", counts)
	}
}
