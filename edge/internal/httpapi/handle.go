package httpapi

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/overload"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/tracing"
)

// handle answers a request that was read whole.
func (s *Server) handle(ctx *fasthttp.RequestCtx) { s.answer(ctx, false) }

// answer runs the checks and the handler, and always answers and reports once. The deferred calls run in
// reverse: a panic becomes a problem before the request is reported, and the context ends last.
func (s *Server) answer(ctx *fasthttp.RequestCtx, unread bool) {
	rc := &requestContext{ctx: ctx, began: s.cfg.Now(), unread: unread}
	rc.requestID = newRequestID(&ctx.Request.Header, rc.began)
	if sent := ctx.Request.Header.Peek("traceparent"); len(sent) > 0 {
		rc.trace = tracing.Unsampled(string(sent))
	}
	if s.cfg.Tracing != nil {
		rc.span = s.cfg.Tracing.StartPublic(rc.trace)
		rc.trace = rc.span.Traceparent()
	}
	rc.callCtx.Begin(s.base, rc.began.Add(callTimeout))
	defer rc.callCtx.End()
	defer s.report(rc)
	defer s.recovered(rc)
	s.headers.setCommon(&ctx.Response.Header, rc.requestID)
	if s.draining.Load() {
		ctx.SetConnectionClose()
	}
	if err := s.serve(rc); err != nil {
		s.respondProblem(rc, err)
	}
	s.setRateLimitHeaders(rc)
}

// recovered answers a panic with 500; without it the process would end. Only the type of the panic's value is
// logged, because the value may quote data.
func (s *Server) recovered(rc *requestContext) {
	p := recover()
	if p == nil {
		return
	}
	s.cfg.Metrics.panics.Inc()
	s.eventLog.panics.Log(s.cfg.Logger, slog.LevelError, rc.operation(), "panic in a handler",
		slog.String("request_id", rc.requestID), slog.String("operation", rc.operation()),
		slog.String("type", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
	rc.ctx.Response.Reset()
	s.headers.setCommon(&rc.ctx.Response.Header, rc.requestID)
	rc.ctx.SetConnectionClose()
	s.respondProblem(rc, fault.New(fault.InternalError, ""))
}

// serve runs the checks in the order of the package comment, and then the route's handler.
func (s *Server) serve(rc *requestContext) error {
	r := &rc.ctx.Request
	rc.headers = scanHeaders(r.Header.RawHeaders())
	if err := checkFraming(r, rc.headers); err != nil {
		rc.ctx.SetConnectionClose()
		return err
	}
	if r.Header.IsOptions() {
		preflight(rc.ctx)
		return nil
	}
	path, query := splitTarget(r.Header.RequestURI())
	route, id, allow := s.router.match(string(r.Header.Method()), path)
	if route == nil && len(allow) > 0 {
		s.respondMethod(rc, allow)
		return nil
	}
	if route == nil {
		return fault.New(fault.NotFound, "There is nothing at this path.")
	}
	rc.route, rc.pathID, rc.query = route, id, query
	rc.client = clientAddress(peerAddress(rc.ctx), r.Header.PeekAll(fasthttp.HeaderXForwardedFor),
		s.cfg.TrustedProxies)
	if err := s.admit(rc); err != nil {
		return err
	}
	if err := checkBody(rc, s.cfg.Beacon); err != nil {
		return err
	}
	return s.runLimited(rc)
}

// admit checks credential, connection, scope and rate.
func (s *Server) admit(rc *requestContext) error {
	if rc.route.Scope == "" {
		return nil
	}
	secret, err := s.secret(&rc.ctx.Request.Header, rc.route, rc.query)
	if err != nil {
		return err
	}
	if rc.grant, err = s.resolve(rc, secret); err != nil {
		return err
	}
	if ident.ValidBytes(ident.Connection, rc.pathID) && string(rc.grant.ConnectionID) != string(rc.pathID) {
		return fault.New(fault.ForbiddenConnection, "The storefront key does not open this connection.")
	}
	if !rc.grant.Allows(rc.route.Scope) {
		return fault.New(fault.ForbiddenScope, "The storefront key lacks the scope "+string(rc.route.Scope)+
			".")
	}
	rc.subject = ratelimit.Subject{Key: rc.grant.KeyID, Address: rc.client}
	rc.limits, rc.limitsChecked = s.cfg.RateLimiter.Allow(rc.subject), true
	if !rc.limits.Allowed {
		rc.ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(rc.limits.RetrySeconds()))
		return fault.New(fault.RateLimited, "The rate limit of this storefront key or client is used up.")
	}
	return nil
}

// charge takes the tokens of a batch beyond the first one.
func (s *Server) charge(rc *requestContext, n int) {
	if n > 0 {
		rc.limits = s.cfg.RateLimiter.Charge(rc.subject, n)
	}
}

func (s *Server) setRateLimitHeaders(rc *requestContext) {
	if rc.limitsChecked {
		var buf [64]byte
		s.headers.policy.set(&rc.ctx.Response.Header)
		rc.ctx.Response.Header.SetCanonical(s.headers.rateLimit, rc.limits.AppendState(buf[:0]))
	}
}

// checkBody checks what the header says about the body.
func checkBody(rc *requestContext, beacon bool) error {
	if rc.unread && rc.ctx.Request.Header.ContentLength() > MaxBody {
		rc.ctx.SetConnectionClose()
		return tooLarge()
	}
	if rc.headers.contentEncoding > 0 {
		return fault.Invalid("", "content_encoding", "A body with a Content-Encoding is not taken.")
	}
	if bodyless(&rc.ctx.Request) {
		return nil
	}
	switch mediaType(rc.ctx.Request.Header.ContentType()) {
	case applicationJSON:
		return nil
	case textPlain:
		if beacon && rc.route.beacon {
			return nil
		}
	}
	return fault.Invalid("", "content_type", "The Content-Type must be application/json.")
}

func tooLarge() error {
	return fault.New(fault.PayloadTooLarge, "The body is larger than "+strconv.Itoa(MaxBody)+" bytes.")
}

// runLimited runs the handler within the overload limit. A route without a credential has no limit.
func (s *Server) runLimited(rc *requestContext) error {
	if rc.route.Scope == "" {
		return rc.route.handle(s, rc)
	}
	body, priority := rc.ctx.Request.Body(), overload.Normal
	if rc.unread {
		return s.shed(overload.BodyBytes, priority)
	}
	limit := s.workLimiter
	if rc.route.catalog {
		limit = s.readLimiter
	}
	permit, reason, ok := limit.Acquire(&rc.callCtx, len(body), func() overload.Priority {
		switch {
		case rc.route.batch:
			priority = overload.PriorityOfBatch(body)
		case rc.route.dryRun:
			priority = overload.Sheddable
		}
		return priority
	})
	if !ok {
		return s.shed(reason, priority)
	}
	defer limit.Release(permit)
	return rc.route.handle(s, rc)
}

// shed counts a request that is refused because of overload.
func (s *Server) shed(reason overload.Reason, priority overload.Priority) error {
	s.cfg.Metrics.shed.WithLabelValues(string(reason), priority.String()).Inc()
	return fault.New(fault.ServiceUnavailable, "Too many requests are in work.")
}
