package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"storefront.internal/edge/internal/itemread"
)

// respondItem answers with the coding that the client accepts, or 304 when the client holds the item already.
// An entity-tag of either coding counts, because both are the same revision.
func (s *Server) respondItem(rc *requestContext, doc *itemread.Document) {
	body, tag, other, coded := doc.Body, doc.ETag, doc.GzipETag, false
	if acceptsGzip(rc.ctx.Request.Header.Peek(fasthttp.HeaderAcceptEncoding)) {
		if compressed := doc.Gzip(); compressed != nil {
			body, tag, other, coded = compressed, doc.GzipETag, doc.ETag, true
		}
	}
	h := &rc.ctx.Response.Header
	s.headers.itemCaching.set(h)
	s.headers.itemVary.set(h)
	if held := matchETag(rc.ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), tag, other); held != nil {
		h.SetBytesV(fasthttp.HeaderETag, held)
		rc.ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	h.SetBytesV(fasthttp.HeaderETag, tag)
	if coded {
		h.Set(fasthttp.HeaderContentEncoding, "gzip")
	}
	respondJSON(rc.ctx, fasthttp.StatusOK, body)
}

// matchETag returns which of the tags an If-None-Match names, by weak comparison (RFC 9110, 13.1.2): tag for
// an asterisk, nil when none matches.
func matchETag(fields [][]byte, tag, other []byte) []byte {
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

// acceptsGzip reads an Accept-Encoding (RFC 9110, 12.5.3): the weight of gzip decides, or else that of the
// asterisk.
func acceptsGzip(field []byte) bool {
	anything := false
	for rest := field; len(rest) > 0; {
		var item []byte
		item, rest, _ = bytes.Cut(rest, []byte(","))
		coding, weight, _ := bytes.Cut(item, []byte(";"))
		switch coding = bytes.TrimSpace(coding); {
		case equalFold(coding, "gzip"), equalFold(coding, "x-gzip"):
			return !zeroWeight(weight)
		case len(coding) == 1 && coding[0] == '*':
			anything = !zeroWeight(weight)
		}
	}
	return anything
}

// zeroWeight reports whether a weight is q=0, which means "not acceptable".
func zeroWeight(weight []byte) bool {
	name, value, found := bytes.Cut(weight, []byte("="))
	value = bytes.TrimSpace(value)
	return found && equalFold(bytes.TrimSpace(name), "q") && len(value) > 0 &&
		len(bytes.Trim(value, "0.")) == 0
}
