package tracing

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The messages of OTLP/JSON: ids in hexadecimal, 64-bit integers as strings, enumerations as numbers.
type (
	exportRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resourceJSON `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resourceJSON struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scopeJSON  `json:"scope"`
		Spans []spanJSON `json:"spans"`
	}
	scopeJSON struct {
		Name string `json:"name"`
	}
	spanJSON struct {
		TraceID      string      `json:"traceId"`
		SpanID       string      `json:"spanId"`
		ParentSpanID string      `json:"parentSpanId,omitempty"`
		Flags        uint32      `json:"flags"`
		Name         string      `json:"name"`
		Kind         int         `json:"kind"`
		Start        string      `json:"startTimeUnixNano"`
		End          string      `json:"endTimeUnixNano"`
		Attributes   []keyValue  `json:"attributes,omitempty"`
		Links        []linkJSON  `json:"links,omitempty"`
		Status       *statusJSON `json:"status,omitempty"`
	}
	linkJSON struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   uint32 `json:"flags"`
	}
	statusJSON struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// Flags hold the eight bits of W3C and these, which tell whether the parent or the link is of another
// process.
const (
	knowsRemote = 0x100
	isRemote    = 0x200
)

// encode returns the request. All spans have one provider and scope, and so one resource.
func encode(spans []sdktrace.ReadOnlySpan) exportRequest {
	scope := scopeSpans{Scope: scopeJSON{Name: spans[0].InstrumentationScope().Name},
		Spans: make([]spanJSON, len(spans))}
	for i, s := range spans {
		scope.Spans[i] = encodeSpan(s)
	}
	return exportRequest{ResourceSpans: []resourceSpans{{
		Resource:   resourceJSON{Attributes: encodeAttributes(spans[0].Resource().Attributes())},
		ScopeSpans: []scopeSpans{scope},
	}}}
}

func encodeSpan(s sdktrace.ReadOnlySpan) spanJSON {
	c, parent := s.SpanContext(), s.Parent()
	out := spanJSON{
		TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), Flags: flags(c, parent.IsRemote()),
		Name: s.Name(),
		Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
		Attributes: encodeAttributes(s.Attributes()),
	}
	if parent.HasSpanID() {
		out.ParentSpanID = parent.SpanID().String()
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links,
			linkJSON{TraceID: l.SpanContext.TraceID().String(), SpanID: l.SpanContext.SpanID().String(),
				Flags: flags(l.SpanContext, l.SpanContext.IsRemote())})
	}
	if s.Status().Code == codes.Error {
		out.Status = &statusJSON{Code: statusError, Message: s.Status().Description}
	}
	return out
}

func flags(c trace.SpanContext, remote bool) uint32 {
	f := uint32(c.TraceFlags()) | knowsRemote
	if remote {
		f |= isRemote
	}
	return f
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// encodeAttributes knows the types that this package uses; it sends other values as text.
func encodeAttributes(all []attribute.KeyValue) []keyValue {
	out := make([]keyValue, len(all))
	for i, a := range all {
		out[i].Key = string(a.Key)
		switch a.Value.Type() {
		case attribute.INT64:
			out[i].Value = map[string]any{"intValue": strconv.FormatInt(a.Value.AsInt64(), 10)}
		case attribute.BOOL:
			out[i].Value = map[string]any{"boolValue": a.Value.AsBool()}
		default:
			out[i].Value = map[string]any{"stringValue": a.Value.String()}
		}
	}
	return out
}
