package httpapi

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/fault"
)

// headers counts the fields of a raw header that decide where the request ends and who sends it. fasthttp
// drops one of Content-Length and Transfer-Encoding before a handler sees them, so the raw bytes are scanned.
type headers struct {
	contentLength    int
	transferEncoding int
	authorization    int
	contentType      int
	contentEncoding  int
	folded           bool // a header line continues in the next one
	bareLF           bool // a line does not end in CRLF
	otherEncoding    bool // a Transfer-Encoding is not chunked
}

func scanHeaders(raw []byte) (h headers) {
	for len(raw) > 0 {
		line := raw
		if i := bytes.IndexByte(raw, '\n'); i >= 0 {
			line, raw = raw[:i], raw[i+1:]
			h.bareLF = h.bareLF || len(line) == 0 || line[len(line)-1] != '\r'
		} else {
			raw = nil
		}
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			h.folded = true
			continue
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if found {
			h.count(name, bytes.TrimSpace(value))
		}
	}
	return h
}

func (h *headers) count(name, value []byte) {
	switch len(name) {
	case len("Content-Type"):
		if equalFold(name, "Content-Type") {
			h.contentType++
		}
	case len("Authorization"):
		if equalFold(name, "Authorization") {
			h.authorization++
		}
	case len("Content-Length"):
		if equalFold(name, "Content-Length") {
			h.contentLength++
		}
	case len("Content-Encoding"):
		if equalFold(name, "Content-Encoding") {
			h.contentEncoding++
		}
	case len("Transfer-Encoding"):
		if equalFold(name, "Transfer-Encoding") {
			h.transferEncoding++
			h.otherEncoding = h.otherEncoding || !equalFold(value, "chunked")
		}
	}
}

func equalFold(b []byte, s string) bool { return strings.EqualFold(string(b), s) }

// checkFraming refuses a request that two readers may understand differently: its end, its body or its
// sender. The connection is closed, because the bytes that follow may be part of this request.
func checkFraming(r *fasthttp.Request, h headers) error {
	switch {
	case h.contentLength > 0 && h.transferEncoding > 0:
		return framingFault("Content-Length and Transfer-Encoding must not be sent together.")
	case h.contentLength > 1, h.transferEncoding > 1, h.authorization > 1, h.contentType > 1:
		return framingFault("A header field was sent twice.")
	case h.otherEncoding:
		return framingFault("The Transfer-Encoding is not supported.")
	case h.bareLF:
		return framingFault("A header line must end in CRLF.")
	case h.folded:
		return framingFault("A header line must not be folded.")
	case bodyless(r) && (h.transferEncoding > 0 || r.Header.ContentLength() > 0 || len(r.Body()) > 0):
		return framingFault("This method takes no body.")
	}
	return nil
}

func bodyless(r *fasthttp.Request) bool { return r.Header.IsGet() || r.Header.IsHead() }

func framingFault(detail string) error {
	return &fault.Error{Code: fault.InvalidRequest, Detail: detail, Fields: []fault.Field{}}
}
