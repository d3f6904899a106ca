package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/obs/tracing"
)

// openTracing makes the tracer that OpenTelemetry's standard environment asks for, none by default. What the exporter needs
// (address, headers, certificates, bounds) the SDK reads from the same environment itself.
func (c *core) openTracing(ctx context.Context, process string, env func(string) string) error {
	wanted, err := tracingWanted(env)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if !wanted {
		return nil
	}
	c.tracer, err = tracing.New(ctx, tracing.Config{
		Process: process, Version: Version(), Sampler: env("OTEL_TRACES_SAMPLER"), SamplerArg: env("OTEL_TRACES_SAMPLER_ARG"), Log: c.log,
	})
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	c.metrics.WatchSpans(func() obs.Spans { return obs.Spans(c.tracer.Counts()) })
	c.log.Info().Msg("spans are exported by OTLP over HTTP")
	return nil
}

// tracingWanted tells whether the environment asks for traces: OTEL_TRACES_EXPORTER=otlp does, and so does an address to
// export to. What it asks for and isn't here is an error.
func tracingWanted(env func(string) string) (bool, error) {
	exporter := strings.TrimSpace(env("OTEL_TRACES_EXPORTER"))
	switch {
	case strings.EqualFold(env("OTEL_SDK_DISABLED"), "true"), exporter == "none":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, errors.New("OTEL_TRACES_EXPORTER must be otlp or none")
	case exporter == "" && env("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "":
		return false, nil
	}
	protocol := env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = env("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	if protocol != "" && protocol != "http/protobuf" {
		return false, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf (port 4318 of a collector)")
	}
	return true, nil
}

// spanStop bounds the export of the last spans.
const spanStop = 3 * time.Second

// closeTracing exports what waits. That spans are lost is no failure of the process.
func (c *core) closeTracing(ctx context.Context) {
	if err := within(ctx, spanStop, c.tracer.Stop); err != nil {
		c.log.Warn().Err(err).Msg("stopped without its last spans")
	}
}

// trace begins the spans of requests, nil without traces.
func (c *core) trace() func(ctx context.Context, method, traceparent string) (context.Context, httpapi.Ended) {
	if c.tracer == nil {
		return nil
	}
	return c.tracer.Request
}
