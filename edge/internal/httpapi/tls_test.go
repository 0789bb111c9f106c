package httpapi

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/servercert"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// startTLS serves with TLS; the returned client trusts its certificate.
func startTLS(t *testing.T, change ...func(*Config)) (*harness, *tls.Config) {
	t.Helper()
	folder := t.TempDir()
	trusted := testkit.Certificate(t, folder, "edge", time.Now().Add(time.Hour))
	cert, err := servercert.Load(servercert.Config{Now: time.Now,
		Files: settings.ServerTLS{CertFile: folder + "/tls.crt", KeyFile: folder + "/tls.key"}})
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, append(change, func(c *Config) { c.TLS = cert.TLS() })...)
	return h, &tls.Config{RootCAs: trusted, ServerName: "localhost"}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	h, config := startTLS(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for range 3 { // on one connection
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+h.addr+myPath,
			strings.NewReader(`{"signals":[{},{}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.secret)
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusAccepted || res.Proto != "HTTP/1.1" {
			t.Errorf("%s %d %s %v", res.Proto, res.StatusCode, body, err)
		}
	}
	if n := h.server.conns.count.Load(); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
}

func TestPlainHTTPOnAPortWithTLS(t *testing.T) {
	t.Parallel()
	h, _ := startTLS(t)
	res, err := http.Get("http://" + h.addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "use https") {
		t.Errorf("%d %s %v", res.StatusCode, body, err)
	}
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
}

// What is no HTTP gets an alert of TLS only.
func TestNonsenseOnAPortWithTLS(t *testing.T) {
	t.Parallel()
	h, _ := startTLS(t)
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "SSH-2.0-x\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, _ := io.ReadAll(c)
	if strings.Contains(string(answer), "HTTP") || len(answer) > 16 {
		t.Errorf("answered %q", answer)
	}
}

// Clients that connect and send nothing are in the table until the read timeout, and hold up nobody.
func TestHandshakesThatNeverBegin(t *testing.T) {
	t.Parallel()
	h, config := startTLS(t, func(c *Config) { c.Timeouts.Read = 300 * time.Millisecond })
	for range 20 {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := tls.Dial("tcp", h.addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const request = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", res, err)
	}
	res.Body.Close()
	for end := time.Now().Add(20 * time.Second); h.server.conns.count.Load() > 0; {
		if time.Now().After(end) {
			t.Fatalf("%d connections are still open", h.server.conns.count.Load())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A connection beyond the bound is answered through TLS.
func TestRefusedConnectionsOverTLS(t *testing.T) {
	t.Parallel()
	h, config := startTLS(t, func(c *Config) { c.MaxConnections = 1 })
	first, err := tls.Dial("tcp", h.addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + h.addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}
