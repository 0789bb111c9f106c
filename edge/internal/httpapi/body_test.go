package httpapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/storekey"
)

// reserved waits until so many bytes of bodies are reserved.
func (h *harness) reserved(n int64) {
	h.t.Helper()
	until := time.Now().Add(30 * time.Second)
	for ; h.server.bodies.used.Load() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			h.t.Fatalf("%d bytes are reserved, want %d", h.server.bodies.used.Load(), n)
		}
	}
}

// declare sends a header that declares a large body, and all of the body but its last byte.
func (h *harness) declare(path, secret string, lines ...string) net.Conn {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	whole := h.post(path, secret, strings.Repeat("x", MaxBody), lines...)
	go func() { _, _ = io.WriteString(conn, whole[:len(whole)-1]) }()
	return conn
}

// A request whose header rules it out is answered although its body is never whole: it is not read.
func TestBodyIsNotReadWhenTheHeaderRulesItOut(t *testing.T) {
	t.Parallel()
	h := start(t)
	broken := []byte(storekey.NewSecret())
	broken[len(broken)-1] ^= 1
	for _, tc := range []struct {
		name, path, secret string
		lines              []string
		status             int
	}{
		{"no credential", myPath, "", nil, 401},
		{"another form of credential", myPath, "token", nil, 401},
		{"a wrong checksum", myPath, string(broken), nil, 401},
		{"no credential in the query", myPath + "?key=x", "", []string{"Content-Type: text/plain"}, 401},
		{"an unknown path", "/v1/nothing", h.secret, nil, 404},
		{"another method", "/healthz", h.secret, nil, 405},
	} {
		conn := h.declare(tc.path, tc.secret, tc.lines...)
		replies, closed := readReplies(t, conn, 0)
		if len(replies) != 1 || !closed || replies[0].StatusCode != tc.status {
			t.Errorf("%s: closed %t, %v", tc.name, closed, replies)
			continue
		}
		h.check("POST "+tc.path+" HTTP/1.1", replies[0])
	}
	h.reserved(0)
}

// fasthttp drops the header of a chunked body that is too large; the answer is still that of the header.
func TestChunkedBodyIsRefusedByItsHeader(t *testing.T) {
	t.Parallel()
	h := start(t)
	for path, status := range map[string]int{myPath: 401, "/v1/nothing": 404} {
		r, closed := h.one("POST " + path + " HTTP/1.1\r\nHost: x\r\nX-Request-Id: req_chunked\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n8000\r\n" + strings.Repeat("x", 0x8000) + "\r\n0\r\n\r\n")
		if r.StatusCode != status || !closed {
			t.Errorf("%s: %d %s, closed %t", path, r.StatusCode, r.body, closed)
		}
	}
}

// A small body is read whatever the header says, so that the connection can be kept.
func TestSmallBodyKeepsTheConnection(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, request := range []string{h.post(myPath, "", strings.Repeat("x", smallBody)),
		"POST " + myPath + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"} {
		if r, closed := h.one(request); r.StatusCode != 401 || closed {
			t.Errorf("%d, closed %t", r.StatusCode, closed)
		}
	}
}

// While the bodies of others take the budget, a request is answered 503 without reading its body; what ends
// a request ends its reservation.
func TestBodyBudget(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.MaxBodyBytes = 2 * MaxBody })
	large := strings.Repeat("x", MaxBody)
	entered, release := make(chan struct{}), make(chan struct{})
	h.signals.do = func(context.Context, intake.Request) ([]signal.Result, error) {
		entered <- struct{}{}
		<-release
		return nil, nil
	}
	inWork := make(chan *reply, 1)
	go func() { inWork <- h.first(h.post(myPath, h.secret, large)) }()
	<-entered
	conn := h.declare(myPath, h.secret)
	h.reserved(2 * MaxBody)
	chunked := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n", myPath, h.secret)
	for name, request := range map[string]string{"declared": h.post(myPath, h.secret, large),
		"chunked": chunked} {
		r := h.expect(request, 503, fault.SignalsUnavailable)
		if r.Header.Get("Retry-After") == "" || r.Header.Get("Access-Control-Allow-Origin") != "*" ||
			!r.Close {
			t.Errorf("%s: %v", name, r.Header)
		}
	}
	h.expect(h.post(myPath, storekey.NewSecret(), large), 401, fault.Unauthorized)
	h.expect(h.post(recPath, h.reader, large), 403, fault.ForbiddenScope)
	if n := gather(t, h, "storefront_edge_http_shed_total"); n != 2 {
		t.Errorf("%v shed", n)
	}
	conn.Close() // in the middle of the body
	h.reserved(MaxBody)
	close(release)
	if r := <-inWork; r.StatusCode != 202 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	h.reserved(0)
}

// A connection that ends before the first chunk gives its reservation back, although fasthttp reports
// nothing.
func TestReservationEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	h := start(t)
	head := "POST " + myPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + h.secret + "\r\n"
	for _, request := range []string{head + "Transfer-Encoding: chunked\r\n\r\n",
		head + "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n"} {
		conn, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request)
		want := int64(100000)
		if strings.Contains(request, "chunked") {
			want = MaxBody
		}
		h.reserved(want)
		conn.Close()
		h.reserved(0)
	}
}
