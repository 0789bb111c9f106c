package httpapi

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/problem"
)

const healthRequest = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

// dial connects from an address of this machine.
func (h *harness) dial(from string) net.Conn {
	h.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// ask sends a request on the connection and returns the answer.
func (h *harness) ask(conn net.Conn) *reply {
	h.t.Helper()
	_, _ = io.WriteString(conn, healthRequest)
	replies, _ := readReplies(h.t, conn, 1, "GET")
	if len(replies) != 1 {
		h.t.Fatal("no answer")
	}
	return replies[0]
}

// refused checks the answer to a connection that has no place.
func (h *harness) refused(conn net.Conn, status int, code string) {
	h.t.Helper()
	r := h.ask(conn)
	p := r.problem(h.t)
	if r.StatusCode != status || p.Code != code || p.RequestID == "" ||
		p.RequestID != r.Header.Get("X-Request-Id") ||
		r.Header.Get("Content-Type") != problem.ContentType || r.Header.Get("Retry-After") == "" ||
		!r.Close ||
		r.Header.Get("Access-Control-Allow-Origin") != "*" ||
		!strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "Retry-After") {
		h.t.Errorf("%d %v %s", r.StatusCode, r.Header, r.body)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		h.t.Errorf("after the answer: %q, %v", rest, err)
	}
}

// One address cannot take the connections of others.
func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) {
		c.MaxConnections, c.MaxConnectionsPerAddress, c.TrustedProxies = 64, 8, nil
	})
	held := make([]net.Conn, 8)
	for i := range held {
		held[i] = h.dial("127.0.0.1")
		if r := h.ask(held[i]); r.StatusCode != 200 {
			t.Fatalf("connection %d: %d", i, r.StatusCode)
		}
	}
	h.refused(h.dial("127.0.0.1"), 429, "rate_limited")
	if r := h.ask(h.dial("127.0.0.2")); r.StatusCode != 200 {
		t.Errorf("another address: %d %s", r.StatusCode, r.body)
	}
	if n := gather(t, h, "storefront_edge_http_connections_refused_total"); n != 1 {
		t.Errorf("%v refused", n)
	}
	held[0].Close()
	h.connections(8)
	if r := h.ask(h.dial("127.0.0.1")); r.StatusCode != 200 {
		t.Errorf("after one was closed: %d", r.StatusCode)
	}
}

// connections waits until so many are open.
func (h *harness) connections(n int64) {
	h.t.Helper()
	until := time.Now().Add(30 * time.Second)
	for ; h.server.conns.count.Load() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			h.t.Fatalf("%d connections are open, want %d", h.server.conns.count.Load(), n)
		}
	}
}

// Trusted proxies hold the connections of many clients, so only the total bounds theirs.
func TestConnectionsInTotal(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.MaxConnections, c.MaxConnectionsPerAddress = 16, 4 })
	held := make([]net.Conn, 16)
	for i := range held {
		held[i] = h.dial("127.0.0.1")
	}
	h.connections(16)
	for range 3 {
		h.refused(h.dial("127.0.0.2"), 503, "service_unavailable")
	}
	if n := gather(t, h, "storefront_edge_http_connections_refused_total"); n != 3 {
		t.Errorf("%v refused", n)
	}
	held[0].Close()
	h.connections(15)
	if r := h.ask(h.dial("127.0.0.2")); r.StatusCode != 200 {
		t.Errorf("after one was closed: %d", r.StatusCode)
	}
}

// Slow uploads from one address leave three quarters of the budget to others.
func TestBodiesOfOneAddress(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) {
		c.MaxBodyBytes, c.MaxConnectionsPerAddress, c.TrustedProxies = 4*MaxBody, 8, nil
	})
	h.declare(myPath, h.secret)
	h.reserved(MaxBody)
	request := h.post(myPath, h.secret, strings.Repeat("x", MaxBody))
	if r := h.first(request); r.StatusCode != 503 {
		t.Errorf("the same address: %d", r.StatusCode)
	}
	other := h.dial("127.0.0.2")
	go func() { _, _ = io.WriteString(other, request) }()
	if replies, _ := readReplies(t, other, 1); len(replies) != 1 || replies[0].StatusCode != 202 {
		t.Errorf("another address: %v", replies)
	}
}

// When three quarters of the table are taken, idle connections end after five seconds: those that become
// idle, and those that are.
func TestIdleConnectionsEndSoonerWhenTheTableFills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, began := newConnTable(8, 0, nil), time.Now()
		ended := make([]time.Duration, 8)
		serve := func(i int, state fasthttp.ConnState) {
			client, server := net.Pipe()
			t.Cleanup(func() { client.Close() })
			c, refused := table.add(server, &bodyBudget{})
			if refused != "" {
				t.Fatalf("connection %d: %s", i, refused)
			}
			connState(c, state)
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = c.Read(make([]byte, 1))
				ended[i] = time.Since(began)
			}()
		}
		serve(0, fasthttp.StateActive)
		for i := 1; i < 6; i++ {
			serve(i, fasthttp.StateIdle)
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if n := table.count.Load(); n != 6 {
			t.Fatalf("%d connections are open before the table fills", n)
		}
		serve(6, fasthttp.StateIdle)
		serve(7, fasthttp.StateIdle)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if ended[0] != time.Minute {
			t.Errorf("a connection that reads a request ended after %s", ended[0])
		}
		for i, at := range ended[1:] {
			if at != 15*time.Second {
				t.Errorf("idle connection %d ended after %s", i+1, at)
			}
		}
	})
}
