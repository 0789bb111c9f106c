package httpapi

import (
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/deadline"
	"storefront.internal/edge/internal/overload"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// handle answers a request that was read whole.
func (s *Server) handle(ctx *fasthttp.RequestCtx) { s.answer(ctx, false) }

// answer runs the checks and the handler, and whatever happens answers and reports once.
func (s *Server) answer(ctx *fasthttp.RequestCtx, tooLarge bool) {
	x := &exchange{ctx: ctx, began: s.now(), tooLarge: tooLarge}
	x.requestID = newRequestID(&ctx.Request.Header, x.began)
	x.trace = traceparent(ctx.Request.Header.Peek("traceparent"))
	if s.tracing != nil {
		x.span = s.tracing.Server(x.trace)
		x.trace = x.span.Traceparent()
	}
	x.call = deadline.New(s.base, x.began.Add(callTimeout))
	defer x.call.End()
	defer s.report(x)
	defer s.recovered(x)
	common(&ctx.Response.Header, x.requestID)
	if s.leaving.Load() {
		ctx.SetConnectionClose()
	}
	if err := s.serve(x); err != nil {
		s.respondProblem(x, err)
	}
	s.limitFields(x)
}

// recovered answers 500 for a panic: without it, fasthttp would let the process die. The panic's value may quote data,
// so only its type is told.
func (s *Server) recovered(x *exchange) {
	p := recover()
	if p == nil {
		return
	}
	s.metrics.panics.Inc()
	s.log.Error("panic in a handler", "request_id", x.requestID, "operation", x.operation(),
		"type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
	x.ctx.Response.Reset()
	common(&x.ctx.Response.Header, x.requestID)
	x.ctx.SetConnectionClose()
	s.respondProblem(x, fault.New(fault.InternalError, ""))
}

// serve runs the checks in the order of the package comment, then the route's handler.
func (s *Server) serve(x *exchange) error {
	r := &x.ctx.Request
	x.headers = scanHeaders(r.Header.RawHeaders())
	if err := checkFraming(r, x.headers); err != nil {
		x.ctx.SetConnectionClose()
		return err
	}
	if r.Header.IsOptions() {
		preflight(x.ctx)
		return nil
	}
	path, query := target(r.Header.RequestURI())
	route, id, allow := s.router.match(string(r.Header.Method()), path)
	if route == nil && len(allow) > 0 {
		s.respondMethod(x, allow)
		return nil
	}
	if route == nil {
		return fault.New(fault.NotFound, "There is nothing at this path.")
	}
	x.route, x.pathID, x.query = route, id, query
	x.client = clientAddress(peerAddress(x.ctx), r.Header.PeekAll(fasthttp.HeaderXForwardedFor), s.trusted)
	if err := s.admit(x); err != nil {
		return err
	}
	if err := checkBody(x, s.beacon); err != nil {
		return err
	}
	return s.work(x)
}

// admit checks credential, connection, scope and rate.
func (s *Server) admit(x *exchange) error {
	if x.route.Scope == "" {
		return nil
	}
	secret, err := s.secret(x)
	if err != nil {
		return err
	}
	if x.grant, err = s.resolve(x, secret); err != nil {
		return err
	}
	if ident.Valid(ident.Connection, x.pathID) && x.grant.ConnectionID != ident.ConnectionID(x.pathID) {
		return fault.New(fault.ForbiddenConnection, "The storefront key does not open this connection.")
	}
	if !x.grant.Allows(x.route.Scope) {
		return fault.New(fault.ForbiddenScope, "The storefront key lacks the scope "+string(x.route.Scope)+".")
	}
	x.subject = ratelimit.Subject{Key: x.grant.KeyID, Address: x.client}
	x.verdict, x.judged = s.limiter.Allow(x.subject), true
	if !x.verdict.Allowed {
		x.ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(x.verdict.RetrySeconds()))
		return fault.New(fault.RateLimited, "The rate limit of this storefront key or client is used up.")
	}
	return nil
}

// charge takes the rest of a batch's tokens.
func (s *Server) charge(x *exchange, n int) {
	if n > 0 {
		x.verdict = s.limiter.Charge(x.subject, n)
	}
}

// limitFields tells a client how it stands with its quotas, once they were asked.
func (s *Server) limitFields(x *exchange) {
	if x.judged {
		var room [64]byte
		x.ctx.Response.Header.Set("RateLimit-Policy", s.limiter.Policy())
		x.ctx.Response.Header.SetBytesV("RateLimit", x.verdict.AppendState(room[:0]))
	}
}

// checkBody checks what the header says of the body.
func checkBody(x *exchange, beacon bool) error {
	if x.tooLarge {
		x.ctx.SetConnectionClose()
		return tooLarge()
	}
	if x.headers.contentEncoding > 0 {
		return fault.Invalid("", "content_encoding", "A body with a Content-Encoding is not taken.")
	}
	if bodyless(&x.ctx.Request) {
		return nil
	}
	switch mediaType(x.ctx.Request.Header.ContentType()) {
	case applicationJSON:
		return nil
	case textPlain:
		if beacon && x.route.beacon {
			return nil
		}
	}
	return fault.Invalid("", "content_type", "The Content-Type must be application/json.")
}

func tooLarge() error {
	return fault.New(fault.PayloadTooLarge, "The body is larger than "+strconv.Itoa(MaxBody)+" bytes.")
}

// work runs the handler within the limits of what may be in work at once. What needs no credential needs no limit.
func (s *Server) work(x *exchange) error {
	if x.route.Scope == "" {
		return x.route.handle(s, x)
	}
	body, class := x.ctx.Request.Body(), overload.Ordinary
	limit := s.turns
	if x.route.catalog {
		limit = s.reads
	}
	turn, reason, ok := limit.Enter(x.call, len(body), func() overload.Class {
		if x.route.batch {
			class = overload.ClassOfBatch(body)
		}
		return class
	})
	if !ok {
		s.metrics.shed.WithLabelValues(string(reason), class.String()).Inc()
		return fault.New(fault.ServiceUnavailable, "Too many requests are in work.")
	}
	defer limit.Leave(turn)
	return x.route.handle(s, x)
}
