package httpapi

import "github.com/valyala/fasthttp"

// The CORS headers. The key is public and no cookie is used, so every origin may read every answer, errors
// and unknown paths included. A browser that cannot read the Retry-After of a 503 retries at once.
const (
	allowOrigin   = "*"
	allowMethods  = "GET, HEAD, POST, OPTIONS"
	allowHeaders  = "Authorization, Content-Type, X-Request-Id, If-None-Match, traceparent"
	exposeHeaders = "Retry-After, RateLimit, RateLimit-Policy, ETag, X-Request-Id"
	maxAge        = "7200"
)

// setCommonHeaders sets the headers that every answer has.
func setCommonHeaders(h *fasthttp.ResponseHeader, requestID string) {
	h.Set(fasthttp.HeaderAccessControlAllowOrigin, allowOrigin)
	h.Set(fasthttp.HeaderAccessControlExposeHeaders, exposeHeaders)
	h.Set("X-Request-Id", requestID)
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
}

// preflight answers OPTIONS on any path without checking a credential or a limit.
func preflight(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderAccessControlAllowMethods, allowMethods)
	h.Set(fasthttp.HeaderAccessControlAllowHeaders, allowHeaders)
	h.Set(fasthttp.HeaderAccessControlMaxAge, maxAge)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}
