package httpapi

import (
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/fault"
)

// handleReadError answers a request that could not be read. fasthttp closes the connection after it.
func (s *Server) handleReadError(ctx *fasthttp.RequestCtx, err error) {
	switch {
	case !errors.Is(err, fasthttp.ErrBodyTooLarge):
		s.answerUnread(ctx, err)
	case ctx.Request.Header.ContentLength() > MaxBody: // the header is still there: the usual order of checks
		s.answer(ctx, true)
		linger(ctx.Conn(), ctx.Request.Header.ContentLength())
	default: // too large chunk by chunk: fasthttp has thrown the header away
		s.answerUnread(ctx, err)
		linger(ctx.Conn(), maxLinger)
	}
}

// handleExpect refuses before the client sends its body what can be refused by the header alone.
func (s *Server) handleExpect(ctx *fasthttp.RequestCtx) int {
	if ctx.Request.Header.ContentLength() <= MaxBody {
		return fasthttp.StatusContinue
	}
	s.answer(ctx, true)
	return ctx.Response.StatusCode()
}

// answerUnread answers what has no readable header: no route, no request id, no credential.
func (s *Server) answerUnread(ctx *fasthttp.RequestCtx, err error) {
	x := &exchange{ctx: ctx, began: s.now()}
	x.requestID = newRequestID(&fasthttp.RequestHeader{}, x.began)
	defer s.recovered(x)
	f, status := unread(err)
	code, body := s.problems.BuildAs(status, f, x.requestID)
	ctx.Response.Reset()
	common(&ctx.Response.Header, x.requestID)
	ctx.SetConnectionClose()
	writeProblem(ctx, code, body)
	s.metrics.observe("unread", code, s.now().Sub(x.began))
	s.metrics.problems.WithLabelValues("unread", string(f.Code)).Inc()
}

// unread names what was wrong. Its status is more exact than that of the code, and 0 when it is the code's.
func unread(err error) (f *fault.Error, status int) {
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return fault.From(tooLarge()), 0
	case errors.As(err, &small):
		return fault.New(fault.InvalidRequest, "The request header is too large."), fasthttp.StatusRequestHeaderFieldsTooLarge
	case errors.As(err, &network) && network.Timeout():
		return fault.New(fault.InvalidRequest, "The request was not sent in time."), fasthttp.StatusRequestTimeout
	default:
		return fault.New(fault.InvalidRequest, "The request is not well-formed HTTP."), 0
	}
}

const (
	maxLinger   = 1 << 20
	lingerTime  = time.Second
	lingerPause = 100 * time.Millisecond
)

// linger reads away what the client is still sending. Closing a connection with unread bytes resets it, and a client
// that is reset while it sends may never see the answer.
func linger(conn net.Conn, declared int) {
	if conn == nil {
		return
	}
	var sink [4096]byte
	end := time.Now().Add(lingerTime)
	for left := min(declared, maxLinger); left > 0; {
		pause := time.Now().Add(lingerPause)
		if pause.After(end) {
			return
		}
		if err := conn.SetReadDeadline(pause); err != nil {
			return
		}
		n, err := conn.Read(sink[:])
		if left -= n; err != nil {
			return
		}
	}
}
