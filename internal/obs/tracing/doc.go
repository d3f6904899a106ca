// Package tracing makes OpenTelemetry spans of what the API and the workers do, and sends them by OTLP over HTTP. It is the
// only package that knows OpenTelemetry.
//
// Rules it guards: a span holds names and numbers of ours, ids of events, and nothing else that grows with the traffic: no
// text, path, address, scope, workspace, key, header or error text, and of what a caller sends only the ids and the flag of
// traceparent, never tracestate or baggage; nobody waits for an exporter, what doesn't fit its queue is dropped and counted.
// A worker's claim is the root of a trace of its own with a link to the request that its command came in, because a command
// outlives its request and is claimed several times. It may import the domain, and the use cases whose ports it implements.
package tracing
