package httpapi

import (
	"sync/atomic"
	"unsafe"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/storekey"
)

// smallBody is the length up to which a body is read without a check and without a reservation: the
// connections' own buffers are larger.
const smallBody = 4 << 10

// bodyBudget bounds the bytes of all bodies that are being read or are in work.
type bodyBudget struct {
	max  int64
	used atomic.Int64
}

func (b *bodyBudget) reserve(n int64) bool {
	if b.used.Add(n) > b.max {
		b.used.Add(-n)
		return false
	}
	return true
}

// admitBody decides, when the header of a request was received, how much of its body is read. fasthttp
// allocates a declared length at once, so a body is read only when the header alone does not rule the request
// out and the budget has room for what is declared; a chunked body declares nothing and counts as the
// greatest. The connection gives the room back when the answer is written, or when it is closed.
func (s *Server) admitBody(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	ctx := contextOf(h)
	c, ours := ctx.Conn().(*conn)
	if !ours {
		return fasthttp.RequestConfig{}
	}
	c.bodyRefused, c.header = false, nil
	length, chunked := h.ContentLength(), h.ContentLength() == -1
	switch {
	case !chunked && (length <= smallBody || length > MaxBody):
		return fasthttp.RequestConfig{} // small, or refused by its length
	case !s.bodyExpected(&ctx.Request):
		return c.refuseBody(h, chunked, smallBody)
	case chunked:
		length = MaxBody
	}
	if !c.reserve(length) {
		return c.refuseBody(h, chunked, 1)
	}
	return fasthttp.RequestConfig{}
}

// bodyExpected reports whether the header leads to an operation that reads a body, with a credential of the
// right form. It asks no store.
func (s *Server) bodyExpected(r *fasthttp.Request) bool {
	if checkFraming(r, scanHeaders(r.Header.RawHeaders())) != nil || r.Header.IsOptions() {
		return false
	}
	path, query := splitTarget(r.Header.RequestURI())
	route, _, _ := s.router.match(string(r.Header.Method()), path)
	if route == nil {
		return false
	}
	secret, err := s.secret(&r.Header, route, query)
	return err == nil && storekey.WellFormed(secret)
}

// contextOf returns the context of which h is the header of the request. fasthttp passes HeaderReceived the
// header alone, but the reservation belongs to the connection, which only the context knows.
func contextOf(h *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	const offset = unsafe.Offsetof((*fasthttp.RequestCtx)(nil).Request) +
		unsafe.Offsetof((*fasthttp.Request)(nil).Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(h), -int(offset)))
}
