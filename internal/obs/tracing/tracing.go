package tracing

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-memory/holdfast/internal/task"
)

const scopeName = "github.com/holdfast-memory/holdfast"

// Config says who traces and what is seen.
type Config struct {
	Process, Version string // of the service
	Sampler          string // OTEL_TRACES_SAMPLER; default parentbased_always_on
	SamplerArg       string // OTEL_TRACES_SAMPLER_ARG
	Log              zerolog.Logger
	// Exporter takes the spans in place of OTLP over HTTP, whose address, headers, certificates and bounds the SDK reads
	// from the standard OTEL_EXPORTER_OTLP_ variables.
	Exporter sdk.SpanExporter
}

// Tracer makes the spans of one process. A nil Tracer makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	exporter *counted
	tally    *tally
}

// New returns a tracer that exports in the background. It connects nowhere: a collector that is away is no error.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	sampler, err := samplerOf(cfg.Sampler, cfg.SamplerArg)
	if err != nil {
		return nil, err
	}
	if cfg.Exporter == nil {
		if cfg.Exporter, err = otlptracehttp.New(ctx); err != nil {
			return nil, errors.New("the exporter of spans could not be made: look at the OTEL_EXPORTER_OTLP_ variables")
		}
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "holdfast-"+cfg.Process), attribute.String("service.version", cfg.Version),
	), resource.WithFromEnv()) // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last and win
	if err != nil {
		return nil, fmt.Errorf("describe the service: %w", err)
	}
	t := &Tracer{exporter: &counted{next: cfg.Exporter, log: cfg.Log}, tally: &tally{}}
	t.provider = sdk.NewTracerProvider(
		sdk.WithSampler(sampler), sdk.WithResource(about), sdk.WithSpanProcessor(t.tally),
		sdk.WithSpanProcessor(sdk.NewBatchSpanProcessor(t.exporter)), // its queue is bounded and drops what doesn't fit
	)
	t.tracer = t.provider.Tracer(scopeName)
	return t, nil
}

// Stop exports what waits, until ctx ends. It may be called again.
func (t *Tracer) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return errors.New("spans: the last ones were not exported in time")
	}
	return nil
}

// Counts tells what became of the spans so far.
func (t *Tracer) Counts() Spans {
	return Spans{Ended: t.tally.ended.Load(), Exported: t.exporter.exported.Load(), Lost: t.exporter.lost.Load()}
}

// Request begins the span of a request, a child of the traceparent if that is one. The answered function ends it: route is
// a pattern, code the public code of a refusal, event what was accepted or asked for.
func (t *Tracer) Request(ctx context.Context, method, traceparent string) (context.Context, func(route string, status int, code string, event uuid.UUID)) {
	if t == nil {
		return ctx, func(string, int, string, uuid.UUID) {}
	}
	if parent := task.ParseOrigin(traceparent); !parent.IsZero() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, contextOf(parent))
	}
	ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", method)))
	return here(ctx), func(route string, status int, code string, event uuid.UUID) {
		span.SetName(method + " " + route)
		span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
		if event != uuid.Nil {
			span.SetAttributes(eventAttribute(event))
		}
		if code != "" {
			span.SetAttributes(attribute.String("error.type", code))
		}
		if status >= 500 { // what a caller did wrong is no error of the server
			span.SetStatus(codes.Error, code)
		}
		span.End()
	}
}

// here notes the place of ctx's span for tasks and hints that come from it.
func here(ctx context.Context) context.Context {
	at := trace.SpanContextFromContext(ctx)
	return task.WithOrigin(ctx, task.Origin{Trace: at.TraceID(), Span: at.SpanID(), Flags: byte(at.TraceFlags() & trace.FlagsSampled)})
}

func contextOf(o task.Origin) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: o.Trace, SpanID: o.Span, TraceFlags: trace.TraceFlags(o.Flags), Remote: true,
	})
}

func eventAttribute(id uuid.UUID) attribute.KeyValue {
	return attribute.String("holdfast.event_id", "evt_"+id.String())
}
