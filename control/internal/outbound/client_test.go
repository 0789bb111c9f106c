package outbound

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func local() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func reason(err error) Reason {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Reason
}

func TestProductionTakesNoTestSettings(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{Production: true, AllowedNetworks: local()},
		{Production: true, TLS: &tls.Config{MinVersion: tls.VersionTLS13}},
		{Production: true, Resolver: &net.Resolver{}}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	if _, err := New(Config{Production: true}); err != nil {
		t.Error(err)
	}
}

// TestRebinding resolves a public name to addresses of this machine, at once and after a public one.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	listener, err := net.Listen("tcp4", "127.0.0.1:443")
	if err == nil { // a test that may listen there sees attempts
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				reached.Add(1)
				_ = conn.Close()
			}
		}()
		defer listener.Close()
	}
	for _, answers := range [][]string{{"127.0.0.1"}, {"10.1.2.3"}, {"169.254.169.254"},
		{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0"}, {"100.64.0.1"}} {
		c := client(t, Config{Resolver: stub(t, answers), Timeout: 3 * time.Second})
		for range 2 {
			_, err = c.Do(t.Context(), Request{Method: http.MethodGet, URL: "https://shop.example.org/"})
			if reason(err) != AddressForbidden {
				t.Errorf("resolved to %v: %v", answers, err)
			}
		}
	}
	if reached.Load() != 0 {
		t.Errorf("%d connections to this machine", reached.Load())
	}
}

// stub is a resolver that returns the addresses in turn, one for each lookup.
func stub(t *testing.T, answers []string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for n := 0; ; {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			out, answered := reply(buffer[:size], answers[n%len(answers)])
			if answered {
				n++
			}
			_, _ = conn.WriteTo(out, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

// reply answers a DNS query (RFC 1035): an A query with one address, others with none.
func reply(query []byte, address string) (out []byte, answered bool) {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	if end += 5; end > len(query) {
		return nil, false
	}
	out = append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	if query[end-3] == 1 { // A
		out[7] = 1
		a := netip.MustParseAddr(address).As4()
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, a[0], a[1], a[2], a[3])
	}
	return out, query[end-3] == 1
}

func TestProxyOfTheEnvironment(t *testing.T) {
	// Not parallel: it changes the environment.
	proxied := false
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied = true })
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("HTTPS_PROXY", proxy)
	t.Setenv("ALL_PROXY", proxy)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	if _, err := client(t, Config{AllowedNetworks: local()}).Do(t.Context(),
		Request{Method: http.MethodGet, URL: url}); err != nil || proxied {
		t.Errorf("%v, proxied %v", err, proxied)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	for name, c := range map[string]struct {
		header map[string]string
		body   string
		status int
		want   Reason
		read   string
	}{
		"plain":        {nil, "hello", 200, "", "hello"},
		"error status": {nil, "no", 500, "", "no"},
		"gzip": {map[string]string{"Content-Encoding": "gzip"}, packed("hello"), 200, "",
			"hello"},
		"identity": {map[string]string{"Content-Encoding": "identity"}, "hello", 200, "",
			"hello"},
		"at the cap":   {nil, strings.Repeat("x", 1000), 200, "", strings.Repeat("x", 1000)},
		"over the cap": {nil, strings.Repeat("x", 1001), 200, TooLarge, ""},
		"over it decompressed": {map[string]string{"Content-Encoding": "gzip"},
			packed(strings.Repeat("x", 100_000)), 200, TooLarge, ""},
		"an error over the cap": {nil, strings.Repeat("x", 5000), 500, TooLarge, ""},
		"broken gzip": {map[string]string{"Content-Encoding": "gzip"}, "hello", 200, BadEncoding,
			""},
		"gzip cut": {map[string]string{"Content-Encoding": "gzip"},
			packed(strings.Repeat("xyz", 100))[:20], 200, Truncated, ""},
		"gzip twice": {map[string]string{"Content-Encoding": "gzip, gzip"}, packed(packed("x")),
			200, BadEncoding, ""},
		"deflate": {map[string]string{"Content-Encoding": "deflate"}, "x", 200, BadEncoding,
			""},
		"redirect to metadata": {map[string]string{"Location": "http://169.254.169.254/"}, "", 302,
			Redirected, ""},
		"redirect to the public": {map[string]string{"Location": "https://shop.example.org/"}, "", 308,
			Redirected, ""},
		"redirect to nowhere": {nil, "", 301, Redirected, ""},
		"not modified":        {nil, "", 304, Redirected, ""},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range c.header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		a, err := client(t, Config{AllowedNetworks: local(), MaxBody: 1000}).Do(t.Context(),
			Request{Method: http.MethodGet, URL: url})
		if reason(err) != c.want || err == nil && (string(a.Body) != c.read || a.Status != c.status) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// TestEndless tests endless bodies: reading stops at the limit, of bytes and of decompressed bytes.
func TestEndless(t *testing.T) {
	t.Parallel()
	for _, coding := range []string{"", "gzip"} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			var to io.Writer = w
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
				to = gzip.NewWriter(w)
			}
			for block := make([]byte, 1<<16); r.Context().Err() == nil; {
				if _, err := to.Write(block); err != nil {
					return
				}
			}
		})
		if _, err := client(t,
			Config{AllowedNetworks: local(), MaxBody: 1 << 20, Timeout: time.Minute}).Do(t.Context(),
			Request{Method: http.MethodGet, URL: url}); reason(err) != TooLarge {
			t.Errorf("coding %q: %v", coding, err)
		}
	}
}

// TestFailures tests the reason of each failure; errors say nothing of the request.
func TestFailures(t *testing.T) {
	t.Parallel()
	const canary = "canary-8731"
	hang := make(chan struct{})
	defer close(hang)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	raw := func(text string) string {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		}()
		return "http://" + l.Addr().String()
	}
	for name, c := range map[string]struct {
		url  string
		want Reason
	}{
		"refused":      {closed.URL, Unreachable},
		"certificate":  {secure.URL, BadCertificate},
		"no HTTP":      {raw("SSH-2.0-" + canary + "\r\n"), Disconnected},
		"closed":       {raw(""), Disconnected},
		"half an head": {raw("HTTP/1.1 200 OK\r\nContent-"), Disconnected},
		"half a body":  {raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + canary), Truncated},
		"half a chunk": {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + canary),
			Truncated},
		"huge head": {raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 100_000) + "\r\n\r\n"),
			Disconnected},
		"slow": {serve(t, func(http.ResponseWriter, *http.Request) { <-hang }), TimedOut},
		"slow body": {serve(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-hang
		}), TimedOut},
		"forbidden": {"https://user:" + canary + "@shop.example.org/", AddressForbidden},
	} {
		header := http.Header{"Authorization": {"Bearer " + canary}}
		timeout := time.Minute // a busy machine must not fail the test
		if c.want == TimedOut {
			timeout = 300 * time.Millisecond
		}
		_, err := client(t, Config{AllowedNetworks: local(), Timeout: timeout}).Do(t.Context(),
			Request{Method: http.MethodPost, URL: c.url + "?q=" + canary, Header: header,
				Body: []byte(canary)})
		if reason(err) != c.want {
			t.Errorf("%s: %q (%v), want %q", name, reason(err), err, c.want)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), canary) {
			t.Errorf("%s: the error says too much: %v", name, err)
		}
	}
	for _, r := range []Request{{Method: "GE T", URL: "https://shop.example.org/"},
		{Method: "GET", URL: closed.URL, Header: http.Header{"X": {"a\r\nb" + canary}}}} {
		if _, err := client(t, Config{AllowedNetworks: local()}).Do(t.Context(), r); err == nil ||
			strings.Contains(fmt.Sprintf("%#v", err), canary) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t, Config{AllowedNetworks: local()}).Do(ctx,
		Request{Method: http.MethodGet, URL: closed.URL}); reason(err) != Cancelled ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
