package app

import "testing"

func TestTracingWanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env    map[string]string
		wanted bool
		bad    bool
	}{
		"nothing":              {},
		"an address":           {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, wanted: true},
		"an address of traces": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, wanted: true},
		"the exporter":         {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, wanted: true},
		"none":                 {env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}},
		"disabled":             {env: map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}},
		"a sampler alone":      {env: map[string]string{"OTEL_TRACES_SAMPLER": "always_on"}},
		"another exporter":     {env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, bad: true},
		"gRPC":                 {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, bad: true},
		"gRPC for traces": {env: map[string]string{
			"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
		}, bad: true},
	} {
		wanted, err := tracingWanted(func(name string) string { return c.env[name] })
		if wanted != c.wanted || (err != nil) != c.bad {
			t.Errorf("%s: %t, %v", name, wanted, err)
		}
	}
}
