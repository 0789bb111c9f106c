package httpapi

import (
	"net/netip"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/deadline"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/tracing"
)

// exchange is one request and its answer while the handler runs. It holds fasthttp's context and slices of its
// buffers, so it must not outlive the handler.
type exchange struct {
	ctx       *fasthttp.RequestCtx
	call      *deadline.Context
	began     time.Time
	requestID string
	trace     string // the traceparent as sent, when it is one; of the request's own span when there is tracing
	span      tracing.Span

	query    []byte
	headers  headers
	route    *Route
	pathID   string // the identifier in the path
	tooLarge bool   // the body was declared larger than the limit, and not read

	client  netip.Addr
	grant   storekey.Grant
	subject ratelimit.Subject
	verdict ratelimit.Verdict
	judged  bool // whether the quotas were asked

	code  fault.Code // of the problem that was answered
	cause error      // what the log is told of it
}

// operation is the metric label of the request.
func (x *exchange) operation() string {
	switch {
	case x.route != nil:
		return x.route.Operation
	case x.ctx.IsOptions():
		return "preflight"
	default:
		return "unknown"
	}
}

// newRequestID keeps an inbound X-Request-Id of the right form, and makes one otherwise.
func newRequestID(h *fasthttp.RequestHeader, now time.Time) string {
	if id, ok := ident.RequestID(string(h.Peek("X-Request-Id"))); ok {
		return id
	}
	return ident.Mint("req", now)
}

// traceparent returns a well-formed W3C traceparent of version 00, or "".
func traceparent(b []byte) string {
	const form = "00-00000000000000000000000000000000-0000000000000000-00"
	if len(b) != len(form) || b[0] != '0' || b[1] != '0' {
		return ""
	}
	for i := range b {
		if form[i] == '-' && b[i] != '-' || form[i] == '0' && !lowerHex(b[i]) {
			return ""
		}
	}
	s := string(b)
	if s[3:35] == form[3:35] || s[36:52] == form[36:52] {
		return ""
	}
	return s
}

// traceID is the part of a traceparent by which logs are found.
func traceID(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

func lowerHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
