// Package collector is a receiver of OpenTelemetry spans by OTLP over HTTP, for tests that run the real exporter.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// maxBody is far above what one batch of spans takes.
const maxBody = 16 << 20

// Span is a span as it was received. Ids are in hex; Parent is empty for a root.
type Span struct {
	Service, Name, Trace, ID, Parent string
	Attributes                       map[string]string
	Links                            []Link
	Failed                           bool
}

// Link is one of a span's links.
type Link struct {
	Trace, ID  string
	Attributes map[string]string
}

// Collector receives spans until the test ends.
type Collector struct {
	server *httptest.Server

	mu      sync.Mutex
	spans   []Span
	raw     []byte
	changed chan struct{} // closed and replaced with every batch
}

// New starts a collector on loopback.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{changed: make(chan struct{})}
	c.server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.server.Close)
	return c
}

// Env is the standard environment of a process that is to export here, a span at most 100 ms after its end.
func (c *Collector) Env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.server.URL, "OTEL_BSP_SCHEDULE_DELAY=100"}
}

// Spans are those received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Raw is all that was received, as JSON, with the headers that it came with.
func (c *Collector) Raw() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.raw)
}

// Wait returns the spans that pick chooses as soon as there are n, or fails the test.
func (c *Collector) Wait(t testing.TB, within time.Duration, n int, what string, pick func(Span) bool) []Span {
	t.Helper()
	limit := time.NewTimer(within)
	defer limit.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		var found []Span
		for _, s := range c.spans {
			if pick(s) {
				found = append(found, s)
			}
		}
		c.mu.Unlock()
		if len(found) >= n {
			return found
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("%d of %d spans came: %s; all are %+v", len(found), n, what, c.Spans())
		}
	}
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	var request collect.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	text, err := protojson.Marshal(&request)
	if err != nil {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(append(c.raw, text...), '\n')
	for name, values := range r.Header {
		for _, value := range values {
			c.raw = append(c.raw, (name + ": " + value + "\n")...)
		}
	}
	for _, from := range request.GetResourceSpans() {
		service := read(from.GetResource().GetAttributes())["service.name"]
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(service, s))
			}
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func spanOf(service string, s *wire.Span) Span {
	out := Span{
		Service: service, Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Attributes: read(s.GetAttributes()),
		Failed: s.GetStatus().GetCode() == wire.Status_STATUS_CODE_ERROR,
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, Link{
			Trace: hex.EncodeToString(l.GetTraceId()), ID: hex.EncodeToString(l.GetSpanId()), Attributes: read(l.GetAttributes()),
		})
	}
	return out
}

func read(attributes []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		default:
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}
