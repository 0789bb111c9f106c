package httpapi

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/problem"
)

// respondJSON answers with a body that the caller does not use afterwards.
func respondJSON(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentType(applicationJSON)
	ctx.Response.SetBodyRaw(body)
}

// respondProblem answers err as a problem, and keeps its code and cause for the event of the request.
func (s *Server) respondProblem(rc *requestContext, err error) {
	f := *fault.From(err)
	if f.Code == fault.ServiceUnavailable && rc.route != nil {
		f.Code = rc.route.unavailable
	}
	status, body := s.cfg.Problems.Build(&f, rc.requestID)
	rc.code, rc.cause = f.Code, f.Err
	h := &rc.ctx.Response.Header
	switch f.Code {
	case fault.Unauthorized:
		h.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	case fault.SignalsUnavailable, fault.ServiceUnavailable:
		h.Set(fasthttp.HeaderRetryAfter, retryAfter(f.RetryAfter))
	case fault.RateLimited:
		if f.RetryAfter > 0 {
			h.Set(fasthttp.HeaderRetryAfter, retryAfter(f.RetryAfter))
		}
	}
	writeProblem(&rc.ctx.Response, status, body)
}

func writeProblem(r *fasthttp.Response, status int, body []byte) {
	r.SetStatusCode(status)
	r.Header.SetContentType(problem.ContentType)
	r.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	r.SetBodyRaw(body)
}

// retryAfter returns a Retry-After: the hint in whole seconds, at least one, and up to two more at random, so
// that clients do not come back together.
func retryAfter(hint time.Duration) string {
	least := max(1, int((hint+time.Second-1)/time.Second))
	return strconv.Itoa(least + rand.IntN(3))
}

// respondMethod answers 405 with the methods of the path.
func (s *Server) respondMethod(rc *requestContext, allow []string) {
	rc.ctx.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(append(allow, "OPTIONS"), ", "))
	s.respondProblem(rc, fault.New(fault.MethodNotAllowed, "This path does not know the method."))
}
