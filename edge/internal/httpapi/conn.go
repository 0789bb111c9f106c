package httpapi

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// conn is an accepted connection, with what is known of the body of its request. Its place in the table and
// its reservation end when it is closed, which may happen in another goroutine.
type conn struct {
	net.Conn
	table    *connTable
	budget   *bodyBudget
	peer     *peer // nil: no limit
	network  netip.Prefix
	reserved atomic.Int64 // of the budget
	closed   atomic.Bool

	mu       sync.Mutex // guards idle and deadline
	idle     bool       // it waits for a request, after an answer
	deadline time.Time  // of reading

	bodyRefused bool // the body is not read, but for a small one
	// of a refused chunked body: fasthttp drops it when the body is too large
	header *fasthttp.RequestHeader
}

// reserve takes room for a body. A connection reads one at a time. One peer gets at most a quarter of the
// budget, so that slow uploads from one address leave room for others.
func (c *conn) reserve(n int) bool {
	c.release()
	size := int64(n)
	if c.peer != nil && c.peer.bytes.Add(size) > c.budget.max/4 {
		c.peer.bytes.Add(-size)
		return false
	}
	if !c.budget.reserve(size) {
		if c.peer != nil {
			c.peer.bytes.Add(-size)
		}
		return false
	}
	c.reserved.Store(size)
	return true
}

func (c *conn) release() {
	n := c.reserved.Swap(0)
	if n == 0 {
		return
	}
	c.budget.used.Add(-n)
	if c.peer != nil {
		c.peer.bytes.Add(-n)
	}
}

// refuseBody makes fasthttp report a longer body as too large.
func (c *conn) refuseBody(h *fasthttp.RequestHeader, chunked bool, limit int) fasthttp.RequestConfig {
	c.bodyRefused = true
	if chunked {
		c.header = new(fasthttp.RequestHeader)
		h.CopyTo(c.header)
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: limit}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.release()
	if !c.closed.Swap(true) {
		c.table.remove(c)
	}
	return c.Conn.Close()
}

// SetReadDeadline implements net.Conn. fasthttp calls it with the idle timeout when a connection becomes
// idle.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle && c.table.nearlyFull() {
		t = earlier(t, time.Now().Add(shortIdle))
	}
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

// hurry shortens the wait of an idle connection.
func (c *conn) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle {
		c.deadline = earlier(c.deadline, time.Now().Add(shortIdle))
		_ = c.Conn.SetReadDeadline(c.deadline) // fails only when it is closed
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// connState follows what fasthttp does with a connection. It is idle when an answer was written: then the
// room of the body is free.
func connState(nc net.Conn, state fasthttp.ConnState) {
	c, ours := nc.(*conn)
	if !ours || state != fasthttp.StateIdle && state != fasthttp.StateActive {
		return
	}
	c.mu.Lock()
	c.idle = state == fasthttp.StateIdle
	c.mu.Unlock()
	if state == fasthttp.StateIdle {
		c.release()
	}
}
