package tracing

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// complainEvery is how often an exporter that fails is spoken of: it fails every few seconds for as long as its collector
// is away.
const complainEvery = time.Minute

// Spans are counts since the process started. What has ended and is neither exported nor lost waits, or did not fit the
// queue.
type Spans struct{ Ended, Exported, Lost uint64 }

// counted passes spans on to an exporter. It answers no error: the SDK would write it to standard error in its own form.
type counted struct {
	next sdk.SpanExporter
	log  zerolog.Logger

	exported, lost atomic.Uint64
	complained     atomic.Int64 // Unix seconds
}

// ExportSpans implements sdk.SpanExporter.
func (c *counted) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := c.next.ExportSpans(ctx, spans); err != nil {
		c.lost.Add(uint64(len(spans)))
		now, last := time.Now().Unix(), c.complained.Load()
		if now-last >= int64(complainEvery.Seconds()) && c.complained.CompareAndSwap(last, now) {
			c.log.Warn().Int("spans", len(spans)).Msg("spans cannot be exported; nothing waits for them") // its text may quote an address with a password
		}
		return nil
	}
	c.exported.Add(uint64(len(spans)))
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (c *counted) Shutdown(ctx context.Context) error { return c.next.Shutdown(ctx) }

// tally counts the spans that end, before the queue.
type tally struct{ ended atomic.Uint64 }

// OnStart implements sdk.SpanProcessor.
func (t *tally) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (t *tally) OnEnd(s sdk.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		t.ended.Add(1)
	}
}

// Shutdown implements sdk.SpanProcessor.
func (t *tally) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (t *tally) ForceFlush(context.Context) error { return nil }
