package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/itemread"
)

// respondItem answers operation 2 with the representation that the client asks for, or 304 when it holds that already.
// An entity-tag of either coding counts: both are the same revision.
func (s *Server) respondItem(x *exchange, doc *itemread.Document) {
	body, tag, other, coded := doc.Body, doc.ETag, doc.GzipETag, false
	if acceptsGzip(x.ctx.Request.Header.Peek(fasthttp.HeaderAcceptEncoding)) {
		if compressed := doc.Gzip(); compressed != nil {
			body, tag, other, coded = compressed, doc.GzipETag, doc.ETag, true
		}
	}
	h := &x.ctx.Response.Header
	h.Set(fasthttp.HeaderCacheControl, s.itemCaching)
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if held := matching(x.ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), tag, other); held != nil {
		h.SetBytesV(fasthttp.HeaderETag, held)
		x.ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	h.SetBytesV(fasthttp.HeaderETag, tag)
	if coded {
		h.Set(fasthttp.HeaderContentEncoding, "gzip")
	}
	respondJSON(x.ctx, fasthttp.StatusOK, body)
}

// matching returns which of the tags an If-None-Match names, by weak comparison (RFC 9110, 13.1.2); the first one for
// an asterisk, nil for none.
func matching(fields [][]byte, tag, other []byte) []byte {
	for _, field := range fields {
		for rest := field; len(rest) > 0; {
			var item []byte
			item, rest, _ = bytes.Cut(rest, []byte(",")) // our tags hold no comma
			item = bytes.TrimSpace(item)
			if len(item) == 1 && item[0] == '*' {
				return tag
			}
			item = bytes.TrimPrefix(item, []byte("W/"))
			if bytes.Equal(item, tag) {
				return tag
			}
			if bytes.Equal(item, other) {
				return other
			}
		}
	}
	return nil
}

// acceptsGzip reads an Accept-Encoding (RFC 9110, 12.5.3): what gzip says decides, or else the asterisk.
func acceptsGzip(field []byte) bool {
	anything := false
	for rest := field; len(rest) > 0; {
		var item []byte
		item, rest, _ = bytes.Cut(rest, []byte(","))
		coding, weight, _ := bytes.Cut(item, []byte(";"))
		switch coding = bytes.TrimSpace(coding); {
		case is(coding, "gzip"), is(coding, "x-gzip"):
			return !zero(weight)
		case len(coding) == 1 && coding[0] == '*':
			anything = !zero(weight)
		}
	}
	return anything
}

// zero reports whether a weight is q=0: "not acceptable".
func zero(weight []byte) bool {
	name, value, found := bytes.Cut(weight, []byte("="))
	value = bytes.TrimSpace(value)
	return found && is(bytes.TrimSpace(name), "q") && len(value) > 0 && len(bytes.Trim(value, "0.")) == 0
}
