package tracing

import (
	"context"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

type key struct{}

// WithTraceparent returns a context with a W3C traceparent. For "" it returns ctx.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, traceparent)
}

// TraceparentOf returns the traceparent of the context, or "".
func TraceparentOf(ctx context.Context) string {
	traceparent, _ := ctx.Value(key{}).(string)
	return traceparent
}

// ParseTraceparent reads a W3C traceparent of version 00: lower-case hexadecimal, and neither id all zeros.
func ParseTraceparent(s string) (trace.SpanContext, bool) {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return trace.SpanContext{}, false
	}
	id, err := trace.TraceIDFromHex(s[3:35])
	if err != nil {
		return trace.SpanContext{}, false
	}
	span, err := trace.SpanIDFromHex(s[36:52])
	if err != nil {
		return trace.SpanContext{}, false
	}
	flags, err := hex.DecodeString(s[53:55])
	if err != nil || strings.ToLower(s[53:55]) != s[53:55] {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span,
		TraceFlags: trace.TraceFlags(flags[0]), Remote: true}), true
}

// format is the inverse of ParseTraceparent.
func format(c trace.SpanContext) string {
	const zeros = "00-00000000000000000000000000000000-0000000000000000-0"
	b := make([]byte, 0, len(zeros)+1)
	id, span := c.TraceID(), c.SpanID()
	b = append(hex.AppendEncode(append(b, "00-"...), id[:]), '-')
	b = append(hex.AppendEncode(b, span[:]), '-', '0')
	if c.IsSampled() {
		return string(append(b, '1'))
	}
	return string(append(b, '0'))
}

// maxLinks bounds the links of a span.
const maxLinks = 64

// requestTraces describes the traces of the requests that one piece of work serves.
type requestTraces struct {
	parent trace.SpanContext // valid when all requests are of one trace
	links  []trace.Link      // otherwise one for each sampled trace
	only   string            // the traceparent of the one trace, sampled or not; "" for none or several
}

// sampled reports whether one of the requests is sampled.
func (o requestTraces) sampled() bool { return o.parent.IsSampled() || len(o.links) > 0 }

// linksOf parses traceparents and skips malformed ones.
func linksOf(traceparents []string) requestTraces {
	var o requestTraces
	var first trace.SpanContext
	several, linked := false, map[trace.TraceID]bool{}
	for _, text := range traceparents {
		c, ok := ParseTraceparent(text)
		switch {
		case !ok:
			continue
		case !first.IsValid():
			first, o.only = c, text
		case c.TraceID() != first.TraceID():
			several = true
		}
		if c.IsSampled() && !linked[c.TraceID()] && len(o.links) < maxLinks {
			linked[c.TraceID()] = true
			o.links = append(o.links, trace.Link{SpanContext: c})
		}
	}
	if several {
		o.only = ""
		return o
	}
	o.parent, o.links = first, nil
	return o
}
