package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// Claim implements worker.Tracer.
func (t *Tracer) Claim(ctx context.Context, lease worker.Lease, by worker.Source, hint task.Origin, began time.Time) (context.Context, func(worker.End, task.Class)) {
	ctx, span := t.tracer.Start(ctx, "claim "+string(lease.Kind), trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithTimestamp(began), trace.WithLinks(linksOf(lease.Origin, hint)...), trace.WithAttributes(
			eventAttribute(lease.TaskID), attribute.String("holdfast.kind", string(lease.Kind)),
			attribute.String("holdfast.stage", string(lease.Stage)), attribute.String("holdfast.source", string(by)),
			attribute.Int("holdfast.attempt", lease.Claim), attribute.Int("holdfast.generation", lease.Generation),
		))
	return here(ctx), func(how worker.End, class task.Class) {
		span.SetAttributes(attribute.String("holdfast.end", string(how)))
		if class != "" {
			span.SetAttributes(attribute.String("error.type", string(class)))
		}
		if how != worker.Succeeded && how != worker.GivenBack && how != worker.Unseen {
			span.SetStatus(codes.Error, string(how))
		}
		span.End()
	}
}

// Part implements worker.Tracer.
func (t *Tracer) Part(ctx context.Context, part worker.Part) (context.Context, func(trouble string)) {
	ctx, span := t.tracer.Start(ctx, string(part))
	return ctx, func(trouble string) {
		if trouble != "" {
			span.SetAttributes(attribute.String("error.type", trouble))
			span.SetStatus(codes.Error, trouble)
		}
		span.End()
	}
}

// linksOf links a claim to the request that its command came in, and to what published the hint that woke it where that
// was something else: the end of the task before it in its lane, say. The first one decides whether the claim is seen.
func linksOf(accepted, hint task.Origin) []trace.Link {
	var links []trace.Link
	if !accepted.IsZero() {
		links = append(links, trace.Link{SpanContext: contextOf(accepted), Attributes: []attribute.KeyValue{attribute.String("holdfast.link", "accepted")}})
	}
	if !hint.IsZero() && hint != accepted {
		links = append(links, trace.Link{SpanContext: contextOf(hint), Attributes: []attribute.KeyValue{attribute.String("holdfast.link", "hinted")}})
	}
	return links
}
