package tracing

import (
	"fmt"
	"strconv"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// samplerOf returns the sampler of that name, as OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG say it.
func samplerOf(name, ratio string) (sdk.Sampler, error) {
	part := 1.0
	if ratio = strings.TrimSpace(ratio); ratio != "" && strings.HasSuffix(name, "traceidratio") {
		var err error
		if part, err = strconv.ParseFloat(ratio, 64); err != nil || part < 0 || part > 1 {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG must be 0 to 1 for %s", name)
		}
	}
	switch name {
	case "", "parentbased_always_on":
		return follow(sdk.AlwaysSample()), nil
	case "parentbased_always_off":
		return follow(sdk.NeverSample()), nil
	case "parentbased_traceidratio":
		return follow(sdk.TraceIDRatioBased(part)), nil
	case "always_on":
		return sdk.AlwaysSample(), nil
	case "always_off":
		return sdk.NeverSample(), nil
	case "traceidratio":
		return sdk.TraceIDRatioBased(part), nil
	}
	return nil, fmt.Errorf("OTEL_TRACES_SAMPLER must be one of always_on, always_off, traceidratio and their parentbased_ forms")
}

func follow(root sdk.Sampler) sdk.Sampler { return sdk.ParentBased(follower{root}) }

// follower decides about roots. One that is linked to a request is seen when the request was: a ratio would otherwise show
// a tenth of the requests and a tenth of the claims, and hardly any claim with its request.
type follower struct{ root sdk.Sampler }

// ShouldSample implements sdk.Sampler.
func (f follower) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if len(p.Links) == 0 || !p.Links[0].SpanContext.IsValid() {
		return f.root.ShouldSample(p)
	}
	decision := sdk.Drop
	if p.Links[0].SpanContext.IsSampled() {
		decision = sdk.RecordAndSample
	}
	return sdk.SamplingResult{Decision: decision, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
}

// Description implements sdk.Sampler.
func (f follower) Description() string { return "Follower{" + f.root.Description() + "}" }
