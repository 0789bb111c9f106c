package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// pipes is a listener whose connections are pipes, so that deadlines follow the clock of a synctest bubble.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.accept <- server
	return client
}

// served runs a test in a bubble in which the API is served over pipes.
func served(t *testing.T, test func(t *testing.T, b *bundle, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, allTokens())
		p := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
		server := NewServer(b.api, b.api.cfg.Logger)
		go func() { _ = server.Serve(p) }()
		test(t, b, p)
		_ = server.Close()
		time.Sleep(time.Minute) // until clients notice
	})
}

// send writes a request and returns its response, whose body is read.
func send(t *testing.T, c net.Conn, request string) *http.Response {
	t.Helper()
	go func() { _, _ = io.WriteString(c, request) }()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res
}

const (
	uploadHead = "POST /internal/v1/connections/con_1/observations HTTP/1.1\r\nHost: control\r\n" +
		"Authorization: Bearer " + holderToken + "\r\n"
	webhookHead = "POST /internal/v1/webhooks/shopify/whe_1 HTTP/1.1\r\nHost: control\r\n" +
		"Authorization: Bearer " + connectorToken + "\r\n"
)

// TestWebhooksPassSlowUploads trickles eight large uploads, which together exceed the budget, and sends
// webhooks meanwhile. Each upload ends by itself.
func TestWebhooksPassSlowUploads(t *testing.T) {
	served(t, func(t *testing.T, b *bundle, p *pipes) {
		const uploads = 8
		b.api.uploads.share = 64 << 20 // as if each upload were of another connection
		ended := make(chan string, uploads)
		for i := range uploads {
			c := p.dial()
			defer c.Close()
			go func() {
				_, _ = fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n", uploadHead, maxObservationsBody)
				sent := strings.Repeat("x", firstBuffer)
				if i%2 == 0 {
					sent = "x" // does not even fill the first buffer
				}
				for _, err := io.WriteString(c, sent); err == nil; _, err = io.WriteString(c, "x") {
					time.Sleep(time.Second)
				}
			}()
			go func() {
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					ended <- err.Error()
					return
				}
				ended <- res.Status
			}()
		}
		synctest.Wait()
		for range 20 {
			c := p.dial()
			res := send(t, c, webhookHead+"Content-Length: 2\r\n\r\n{}")
			if res.StatusCode != http.StatusAccepted {
				t.Fatalf("a webhook while uploads trickle: %s", res.Status)
			}
			_ = c.Close()
		}
		began := time.Now()
		for range uploads {
			if status := <-ended; status != "400 Bad Request" && status != "503 Service Unavailable" {
				t.Errorf("an upload ended with %s", status)
			}
		}
		if took := time.Since(began); took > 2*partTimeout {
			t.Errorf("the uploads ended after %v", took)
		}
		synctest.Wait()
		if held := testutil.ToFloat64(b.api.cfg.Metrics.uploads.bytes); held != 0 {
			t.Errorf("%v bytes are held after the uploads", held)
		}
	})
}

// TestSteadyUploadIsNotCutOff sends a body in parts that just keep the pace, and checks that the deadline of
// the body does not end the request after it.
func TestSteadyUploadIsNotCutOff(t *testing.T) {
	served(t, func(t *testing.T, b *bundle, p *pipes) {
		const length = bodyParts * firstBuffer
		c := p.dial()
		defer c.Close()
		text := `{"observations":[{"entity":"` + strings.Repeat("x", length-len(`{"observations":[{"entity":""}]}`)) + `"}]}`
		go func() {
			_, _ = fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n", uploadHead, length)
			for len(text) > 0 {
				time.Sleep(2 * time.Second)
				_, _ = io.WriteString(c, text[:firstBuffer])
				text = text[firstBuffer:]
			}
		}()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != http.StatusOK || len(b.fake.delivered) != length {
			t.Errorf("%v, %v", res, err)
		}
	})
}

// TestChunkedRequestEndsItsConnection sends two requests of which a proxy may see one: the second is hidden
// behind a body that has both a length and chunks.
func TestChunkedRequestEndsItsConnection(t *testing.T) {
	served(t, func(t *testing.T, _ *bundle, p *pipes) {
		for _, framing := range []string{
			"Transfer-Encoding: chunked\r\nContent-Length: 60\r\n", "Transfer-Encoding: chunked\r\n",
			"Transfer-Encoding:\r\n chunked\r\n",
		} {
			c := p.dial()
			first := webhookHead + framing + "\r\n2\r\n{}\r\n0\r\n\r\n"
			go func() { _, _ = io.WriteString(c, first+webhookHead+"Content-Length: 2\r\n\r\n{}") }()
			answers, _ := io.ReadAll(c)
			if n := strings.Count(string(answers), "HTTP/1.1 "); n != 1 ||
				!strings.Contains(string(answers), "Connection: close") {
				t.Errorf("%q: %d answers: %q", framing, n, answers)
			}
			_ = c.Close()
		}
	})
}

// TestSpentBudgetIsARetry holds the whole budget and delivers observations.
func TestSpentBudgetIsARetry(t *testing.T) {
	t.Parallel()
	b := newBundle(t, allTokens())
	holder := &bodyBuffer{of: b.api.uploads, connection: "con_2"}
	b.api.uploads.share = b.api.uploads.free
	if err := holder.resize(b.api.uploads.free); err != nil {
		t.Fatal(err)
	}
	const path = "/internal/v1/connections/con_1/observations"
	w := b.call("POST", path, holderToken, strings.NewReader("{}"))
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	holder.release()
	if w := b.call("POST", path, holderToken, strings.NewReader(`{"observations":[1]}`)); w.Code != 200 {
		t.Errorf("after the release: %d", w.Code)
	}
}

// TestFailuresAreLoggedSometimes makes requests of one operation fail, which an outage does to all of them,
// and mistakes of a client, which are found by their request_id. Then many succeed.
func TestFailuresAreLoggedSometimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, allTokens())
		b.fake.fail = errors.New("out")
		get := func(path, id string) {
			b.call("GET", path, backendToken, nil, func(r *http.Request) { r.Header.Set("X-Request-Id", id) })
		}
		const keys = "/internal/v1/connections/con_1/api-keys"
		for range 100 {
			get(keys, "failed-0")
		}
		time.Sleep(time.Second)
		get(keys, "failed-1")
		for i := range 20 {
			get("/internal/v1/nothing", fmt.Sprintf("client-error-%d", i))
		}
		b.fake.fail = nil
		for range 100 {
			get(keys, "good-0")
		}
		time.Sleep(time.Second)
		get(keys, "good-1")
		log := b.log.String()
		if n := strings.Count(log, `"good-0"`); n != requestLines {
			t.Errorf("%d of 100 equal successes are logged", n)
		}
		if !strings.Contains(log, `"good-1"`) || !strings.Contains(log, `"similar_not_logged":80`) {
			t.Error("the log does not say how many successes it leaves out")
		}
		if n := strings.Count(log, `"failed-0"`); n != failureLines {
			t.Errorf("%d of 100 equal failures are logged", n)
		}
		if !strings.Contains(log, `"similar_not_logged":95`) {
			t.Error("the log does not say what it leaves out")
		}
		for i := range 20 {
			if !strings.Contains(log, fmt.Sprintf(`"request_id":"client-error-%d"`, i)) {
				t.Errorf("mistake %d is not logged", i)
			}
		}
	})
}
