package httpapi

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/fault"
)

// The bounds of answering connections that are refused.
const (
	maxRefusals   = 256 // that are answered at a time with regard to what the client sends
	refusalWait   = time.Second
	refusalUnread = 64 << 10
)

// listener accepts connections while the table has room, and answers the others by itself: fasthttp's own
// answer at its limit has no CORS headers, so that browsers would not see its Retry-After.
type listener struct {
	net.Listener
	server   *Server
	refusals chan struct{}
	running  sync.WaitGroup
}

func newListener(l net.Listener, s *Server) *listener {
	return &listener{Listener: l, server: s, refusals: make(chan struct{}, maxRefusals)}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		accepted = l.server.secure(accepted)
		c, refused := l.server.conns.add(accepted, &l.server.bodies)
		if refused == "" {
			return c, nil
		}
		l.refuse(accepted, refused)
	}
}

// refuse answers a connection and closes it. It waits a moment for the request, because some clients drop an
// answer that comes before it, and for the end of what is sent, because closing a connection with unread
// bytes resets it. When many are refused at once it does neither.
func (l *listener) refuse(c net.Conn, why string) {
	l.server.cfg.Metrics.connsRefused.WithLabelValues(why).Inc()
	select {
	case l.refusals <- struct{}{}:
		l.running.Go(func() {
			defer func() { <-l.refusals }()
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(refusalWait))
			var first [1]byte
			_, _ = c.Read(first[:])
			_ = c.SetDeadline(time.Now().Add(refusalWait))
			l.server.answerRefused(c, why)
			if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				_, _ = io.CopyN(io.Discard, c, refusalUnread)
			}
		})
	default:
		if l.server.cfg.TLS == nil { // a handshake would hold up those that are accepted next
			_ = c.SetWriteDeadline(time.Now().Add(refusalWait)) // its buffer is empty, so it does not wait
			l.server.answerRefused(c, why)
		}
		_ = c.Close()
	}
}

// answerRefused writes the problem; a client that is gone does not matter.
func (s *Server) answerRefused(w io.Writer, why string) {
	f := fault.New(fault.ServiceUnavailable, "Too many connections are open.")
	if why == addressFull {
		f = fault.New(fault.RateLimited, "Too many connections are open from this address.")
	}
	s.writeProblemTo(w, f, retryAfter(0))
}

// writeProblemTo writes a problem to a connection whose request is not read. An empty Retry-After is left
// out.
func (s *Server) writeProblemTo(w io.Writer, f *fault.Error, retryAfter string) {
	requestID := newRequestID(&fasthttp.RequestHeader{}, s.cfg.Now())
	status, body := s.cfg.Problems.Build(f, requestID)
	r := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(r)
	s.headers.setCommon(&r.Header, requestID)
	if retryAfter != "" {
		r.Header.Set(fasthttp.HeaderRetryAfter, retryAfter)
	}
	r.SetConnectionClose()
	writeProblem(r, status, body)
	_, _ = r.WriteTo(w)
}
