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

// responseHeaders are headers of most answers in the form that fasthttp copies without a change.
type responseHeaders struct {
	common      [3]headerField // of every answer
	requestID   []byte
	policy      headerField // of the rate limit
	rateLimit   []byte
	itemCaching headerField // Cache-Control of an item
	itemVary    headerField
}

// headerField is a header with its canonical name.
type headerField struct{ name, value []byte }

func (f *headerField) set(h *fasthttp.ResponseHeader) { h.SetCanonical(f.name, f.value) }

func field(name, value string) headerField { return headerField{[]byte(name), []byte(value)} }

func newResponseHeaders(policy, itemCaching string) responseHeaders {
	return responseHeaders{
		common: [...]headerField{
			field(fasthttp.HeaderAccessControlAllowOrigin, allowOrigin),
			field(fasthttp.HeaderAccessControlExposeHeaders, exposeHeaders),
			field(fasthttp.HeaderXContentTypeOptions, "nosniff"),
		},
		requestID: []byte("X-Request-Id"),
		policy:    field("Ratelimit-Policy", policy), rateLimit: []byte("Ratelimit"),
		itemCaching: field(fasthttp.HeaderCacheControl, itemCaching),
		itemVary:    field(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding),
	}
}

// setCommon sets the headers that every answer has.
func (r *responseHeaders) setCommon(h *fasthttp.ResponseHeader, requestID string) {
	for i := range r.common {
		r.common[i].set(h)
	}
	h.SetBytesK(r.requestID, requestID)
}

// preflight answers OPTIONS on any path without checking a credential or a limit.
func preflight(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderAccessControlAllowMethods, allowMethods)
	h.Set(fasthttp.HeaderAccessControlAllowHeaders, allowHeaders)
	h.Set(fasthttp.HeaderAccessControlMaxAge, maxAge)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}
