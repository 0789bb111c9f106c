package httpapi

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/deadline"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/tracing"
)

// requestContext is one request and its answer while the handler runs. It holds fasthttp's context and slices
// of its buffers, so it must not outlive the handler.
type requestContext struct {
	ctx       *fasthttp.RequestCtx
	callCtx   deadline.Context
	began     time.Time
	requestID string
	trace     string // the traceparent as sent, when it is valid; that of the span when the request is traced
	span      tracing.Span

	query   []byte
	headers headers
	route   *Route
	pathID  []byte // the identifier in the path
	unread  bool   // the body was not read: it is too large, the header rules it out, or the budget is spent

	client        netip.Addr
	grant         storekey.Grant
	subject       ratelimit.Subject
	limits        ratelimit.Verdict
	limitsChecked bool // limits is set

	accepted int // signals that were recorded

	code  fault.Code // of the problem that was answered
	cause error      // of the problem, for the log
}

// operation is the metric label of the request.
func (rc *requestContext) operation() string {
	switch {
	case rc.route != nil:
		return rc.route.Operation
	case rc.ctx.IsOptions():
		return "preflight"
	default:
		return "unknown"
	}
}

// path is the pattern of the route, "" without one.
func (rc *requestContext) path() string {
	if rc.route == nil {
		return ""
	}
	return rc.route.Path
}

// newRequestID returns the X-Request-Id of the request when it is well-formed, and else a new one.
func newRequestID(h *fasthttp.RequestHeader, now time.Time) string {
	if sent := h.Peek("X-Request-Id"); len(sent) > 0 {
		if id, ok := ident.RequestID(string(sent)); ok {
			return id
		}
	}
	return ident.Mint("req", now)
}
