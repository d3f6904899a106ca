package task

import (
	"context"
	"encoding/hex"
)

const (
	originSize = 25 // 16 bytes of trace, 8 of span, 1 of flags
	parentSize = 55 // 00-<32>-<16>-<2>
)

// Origin is the place in a trace that a task or a hint comes from. The zero value is none. It is W3C trace context without
// its tracestate: that one is text of the caller's.
type Origin struct {
	Trace [16]byte
	Span  [8]byte
	Flags byte
}

// IsZero tells whether there is no origin.
func (o Origin) IsZero() bool { return o.Trace == [16]byte{} || o.Span == [8]byte{} }

// Bytes is how a row keeps it: 25 bytes, nil for none.
func (o Origin) Bytes() []byte {
	if o.IsZero() {
		return nil
	}
	out := make([]byte, 0, originSize)
	out = append(out, o.Trace[:]...)
	out = append(out, o.Span[:]...)
	return append(out, o.Flags)
}

// OriginFrom reads what Bytes wrote. Anything else is no origin.
func OriginFrom(row []byte) (o Origin) {
	if len(row) != originSize {
		return Origin{}
	}
	copy(o.Trace[:], row[:16])
	copy(o.Span[:], row[16:24])
	o.Flags = row[24]
	return o
}

// Parent is its traceparent header, empty for none.
func (o Origin) Parent() string {
	if o.IsZero() {
		return ""
	}
	return "00-" + hex.EncodeToString(o.Trace[:]) + "-" + hex.EncodeToString(o.Span[:]) + "-" + hex.EncodeToString([]byte{o.Flags})
}

// TraceID is its trace, for logs.
func (o Origin) TraceID() string { return hex.EncodeToString(o.Trace[:]) }

// ParseOrigin reads a traceparent header as W3C wants it read: lower-case hex, of a later version what this one has.
// Anything else is no origin.
func ParseOrigin(header string) (o Origin) {
	if len(header) < parentSize || header[2] != '-' || header[35] != '-' || header[52] != '-' {
		return Origin{}
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], header[:2]}, {o.Trace[:], header[3:35]}, {o.Span[:], header[36:52]}, {flags[:], header[53:parentSize]}} {
		if !lowerHex(part.text) {
			return Origin{}
		}
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return Origin{}
		}
	}
	later := len(header) > parentSize && header[parentSize] == '-' && version[0] > 0
	if version[0] == 0xff || len(header) != parentSize && !later || o.IsZero() {
		return Origin{}
	}
	o.Flags = flags[0] & 1 // sampled; the others mean nothing here
	return o
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

type originKey struct{}

// WithOrigin returns a context of work that is done at that place of a trace.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	if o.IsZero() {
		return ctx
	}
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns where in a trace the work of ctx is done.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
