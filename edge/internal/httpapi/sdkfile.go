package httpapi

import (
	"github.com/valyala/fasthttp"

	"storefront.internal/shared/fault"
)

// A file of a version never changes.
const sdkCaching = "public, max-age=31536000, immutable"

// readSDKFile answers a built file of the browser SDK. Pages of any origin may load it, also those that
// demand Cross-Origin-Resource-Policy of everything that they embed. The coding does not change the script,
// so both codings have one weak entity tag.
func (s *Server) readSDKFile(rc *requestContext) error {
	file := s.cfg.SDK[string(rc.pathID)]
	if file == nil {
		return fault.New(fault.NotFound, "There is no such file of the browser SDK.")
	}
	h := &rc.ctx.Response.Header
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set(fasthttp.HeaderCacheControl, sdkCaching)
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	h.Set(fasthttp.HeaderETag, "W/"+string(file.ETag))
	if matchETag(rc.ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), file.ETag, nil) != nil {
		rc.ctx.SetStatusCode(fasthttp.StatusNotModified)
		return nil
	}
	h.SetContentType("text/javascript; charset=utf-8")
	body := file.Body
	if acceptsGzip(rc.ctx.Request.Header.Peek(fasthttp.HeaderAcceptEncoding)) {
		h.Set(fasthttp.HeaderContentEncoding, "gzip")
		body = file.Gzip
	}
	rc.ctx.Response.SetBodyRaw(body)
	return nil
}
