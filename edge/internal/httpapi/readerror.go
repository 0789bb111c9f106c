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
	c, ours := ctx.Conn().(*conn)
	switch header := &ctx.Request.Header; {
	case !errors.Is(err, fasthttp.ErrBodyTooLarge):
		s.answerUnread(ctx, err)
	case header.ContentLength() > 0: // the header can be read: the usual order of checks
		s.answer(ctx, true)
		drainBody(ctx.Conn(), header.ContentLength())
	case ours && c.header != nil: // chunked, and refused by its header
		c.header.CopyTo(header)
		s.answer(ctx, true)
		drainBody(ctx.Conn(), maxDrain)
	default: // chunked: fasthttp has dropped the header
		s.answerUnread(ctx, err)
		drainBody(ctx.Conn(), maxDrain)
	}
}

// handleExpect refuses by the header alone, before the client sends a body that would not be read.
func (s *Server) handleExpect(ctx *fasthttp.RequestCtx) int {
	c, ours := ctx.Conn().(*conn)
	if ctx.Request.Header.ContentLength() <= MaxBody && (!ours || !c.bodyRefused) {
		return fasthttp.StatusContinue
	}
	s.answer(ctx, true)
	return ctx.Response.StatusCode()
}

// answerUnread answers a request without a readable header: it has no route, request id or credential.
func (s *Server) answerUnread(ctx *fasthttp.RequestCtx, err error) {
	rc := &requestContext{ctx: ctx, began: s.cfg.Now()}
	rc.requestID = newRequestID(&fasthttp.RequestHeader{}, rc.began)
	defer s.recovered(rc)
	f, status := readProblem(err)
	code, body := s.cfg.Problems.BuildAs(status, f, rc.requestID)
	ctx.Response.Reset()
	s.headers.setCommon(&ctx.Response.Header, rc.requestID)
	ctx.SetConnectionClose()
	writeProblem(&ctx.Response, code, body)
	s.cfg.Metrics.observe("unread", code, s.cfg.Now().Sub(rc.began))
	s.cfg.Metrics.problems.WithLabelValues("unread", string(f.Code)).Inc()
}

// readProblem returns the fault, and a status that is more exact than that of its code; 0 is the status of
// the code.
func readProblem(err error) (f *fault.Error, status int) {
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return fault.From(tooLarge()), 0
	case errors.As(err, &small):
		return fault.New(fault.InvalidRequest, "The request header is too large."),
			fasthttp.StatusRequestHeaderFieldsTooLarge
	case errors.As(err, &network) && network.Timeout():
		return fault.New(fault.InvalidRequest, "The request was not sent in time."),
			fasthttp.StatusRequestTimeout
	default:
		return fault.New(fault.InvalidRequest, "The request is not well-formed HTTP."), 0
	}
}

const (
	maxDrain     = 1 << 20
	drainTimeout = time.Second
	drainIdle    = 100 * time.Millisecond
)

// drainBody reads and drops what the client still sends. Closing a connection with unread bytes resets it,
// and a client that is reset while it sends may never see the answer.
func drainBody(conn net.Conn, declared int) {
	if conn == nil {
		return
	}
	var sink [4096]byte
	end := time.Now().Add(drainTimeout)
	for left := min(declared, maxDrain); left > 0; {
		pause := time.Now().Add(drainIdle)
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
