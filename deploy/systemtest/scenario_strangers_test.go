package systemtest

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Clients without a credential hold many connections, each of which declares the largest body and sends all
// of it but the last byte. The edge answers each from its header, and never holds the bodies. `make soak`
// opens as many connections as an edge accepts.
func TestBodiesWithoutACredential(t *testing.T) {
	x := newDatabase(t)
	edge := x.edge("EDGE_LOG_LEVEL=ERROR")
	before := memory(t, edge, "VmRSS")
	const body = 256 << 10
	request := fmt.Sprintf("POST /v1/connections/con_stranger/storefront-signals HTTP/1.1\r\nHost: edge\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", body, strings.Repeat("x", body-1))
	conns := make([]net.Conn, soak(1024, 4096))
	for i := range conns {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(edge.URL, "http://"), time.Minute)
		check(t, err)
		defer conn.Close()
		check(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
		conns[i] = conn
	}
	var all sync.WaitGroup
	refused := make([]bool, len(conns))
	for i, conn := range conns {
		go func() { _, _ = io.WriteString(conn, request) }() // the edge closes before it has taken everything
		all.Go(func() {
			var start [12]byte
			_, err := io.ReadFull(conn, start[:])
			refused[i] = err == nil && string(start[:]) == "HTTP/1.1 401"
		})
	}
	all.Wait()
	for i := range refused {
		if !refused[i] {
			t.Fatalf("connection %d was not answered 401", i)
		}
	}
	most := memory(t, edge, "VmHWM")
	t.Logf("%d connections: %d MiB resident before, at most %d MiB", len(conns), before>>10, most>>10)
	if limit := 200 << 10; most > limit {
		t.Errorf("the edge took %d MiB, want at most %d", most>>10, limit>>10)
	}
}

// One address opens as many connections as it can and leaves them idle. Another address still gets its
// answer. `make soak` opens more than an edge accepts at all.
func TestIdleConnectionsFromOneAddress(t *testing.T) {
	x := newDatabase(t)
	edge := x.edge("EDGE_LOG_LEVEL=ERROR", "EDGE_MAX_CONNECTIONS_PER_ADDRESS=512")
	address := strings.TrimPrefix(edge.URL, "http://")
	const request = "GET /healthz HTTP/1.1\r\nHost: edge\r\n\r\n"
	ask := func(conn net.Conn) (status string) {
		check(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, _ = io.WriteString(conn, request)
		start := make([]byte, 12)
		_, _ = io.ReadFull(conn, start)
		return string(start)
	}
	served := 0
	for range soak(700, 4300) {
		conn, err := net.DialTimeout("tcp", address, time.Minute)
		check(t, err)
		defer conn.Close()
		if served < 512 && ask(conn) == "HTTP/1.1 200" {
			served++
		}
	}
	newcomer, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", address)
	check(t, err)
	defer newcomer.Close()
	if got := ask(newcomer); served != 512 || got != "HTTP/1.1 200" {
		t.Errorf("%d idle connections were served, and a newcomer got %q", served, got)
	}
}
