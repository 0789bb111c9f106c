package tracing

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

type key struct{}

// WithTraceparent returns a context that carries a W3C traceparent; "" leaves it as it is.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, traceparent)
}

// TraceparentOf is what the context carries, or "".
func TraceparentOf(ctx context.Context) string {
	traceparent, _ := ctx.Value(key{}).(string)
	return traceparent
}

// parse reads a W3C traceparent of version 00.
func parse(s string) (trace.SpanContext, bool) {
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
	if err != nil {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]), Remote: true}), true
}

// format is the inverse of parse.
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

// origins are where work comes from that serves several requests.
type origins struct {
	parent trace.SpanContext // valid when all of them are of one trace
	links  []trace.Link      // else: one for each sampled trace
	only   string            // the traceparent of the one trace, sampled or not; "" when there are several, or none
}

// sampled tells whether the work is to be seen: whether one of the requests is.
func (o origins) sampled() bool { return o.parent.IsSampled() || len(o.links) > 0 }

// originsOf reads traceparents; what is none is left out.
func originsOf(traceparents []string) origins {
	var o origins
	var first trace.SpanContext
	several, linked := false, map[trace.TraceID]bool{}
	for _, text := range traceparents {
		c, ok := parse(text)
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
