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

// respondJSON answers with a body that the caller gives away.
func respondJSON(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentType(applicationJSON)
	ctx.Response.SetBodyRaw(body)
}

// respondProblem answers err as a problem, and notes it for the request's event.
func (s *Server) respondProblem(x *exchange, err error) {
	f := *fault.From(err)
	if f.Code == fault.ServiceUnavailable && x.route != nil {
		f.Code = x.route.unavailable
	}
	status, body := s.problems.Build(&f, x.requestID)
	x.code, x.cause = f.Code, f.Err
	h := &x.ctx.Response.Header
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
	writeProblem(x.ctx, status, body)
}

func writeProblem(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentType(problem.ContentType)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	ctx.Response.SetBodyRaw(body)
}

// retryAfter is a Retry-After of 1 to 5 seconds with jitter, so that clients do not come back together.
func retryAfter(hint time.Duration) string {
	least := max(1, int((hint+time.Second-1)/time.Second))
	return strconv.Itoa(least + rand.IntN(3))
}

// respondMethod answers 405 with the methods that the path knows.
func (s *Server) respondMethod(x *exchange, allow []string) {
	x.ctx.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(append(allow, "OPTIONS"), ", "))
	s.respondProblem(x, fault.New(fault.MethodNotAllowed, "This path does not know the method."))
}
