package httpapi

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/fault"
)

// attack is the bytes of a request and its expected answer. In head, KEY stands for a valid Authorization
// line and BODY for the headers of a valid body.
type attack struct {
	name   string
	bytes  string
	status int // of the first answer
	code   string
	closed bool // the connection is closed, and the request that follows is not served
}

// follower is a second request on the same connection, which must not be served when the first one is
// ambiguous.
const follower = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

func attacks() []attack {
	const start = "POST " + myPath + " HTTP/1.1\r\nHost: x\r\nKEY"
	const json = "Content-Type: application/json\r\n"
	const chunked = "4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n"
	return []attack{
		{"plain", start + json + "Content-Length: 7\r\n\r\n{\"a\":1}", 202, "", false},
		{"chunked", start + json + "Transfer-Encoding: chunked\r\n\r\n" + chunked, 202, "", false},
		{"chunked in capitals", start + json + "Transfer-Encoding: CHUNKED\r\n\r\n" + chunked, 202, "",
			false},
		{"length and chunked", start + json + "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunked, 400, "invalid_request", true},
		{"chunked and length", start + json + "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n" +
			chunked, 400, "invalid_request", true},
		{"length zero and chunked", start + json +
			"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, 400, "invalid_request",
			true},
		{"two lengths", start + json + "Content-Length: 7\r\nContent-Length: 8\r\n\r\n{\"a\":1}x", 400,
			"invalid_request", true},
		{"two equal lengths", start + json + "Content-Length: 7\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 400,
			"invalid_request", true},
		{"length list", start + json + "Content-Length: 7, 7\r\n\r\n{\"a\":1}", 400, "invalid_request", true},
		{"signed length", start + json + "Content-Length: +7\r\n\r\n{\"a\":1}", 400, "invalid_request", true},
		{"negative length", start + json + "Content-Length: -7\r\n\r\n{\"a\":1}", 400, "invalid_request",
			true},
		{"hexadecimal length", start + json + "Content-Length: 0x7\r\n\r\n{\"a\":1}", 400, "invalid_request",
			true},
		{"huge length", start + json + "Content-Length: 21000000000000000000\r\n\r\n{\"a\":1}", 400,
			"invalid_request", true},
		{"identity", start + json + "Transfer-Encoding: identity\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 400,
			"invalid_request", true},
		{"identity alone", start + json + "Transfer-Encoding: identity\r\n\r\n", 400, "invalid_request",
			true},
		{"gzip, chunked", start + json + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked, 400,
			"invalid_request", true},
		{"xchunked", start + json + "Transfer-Encoding: xchunked\r\n\r\n" + chunked, 400, "invalid_request",
			true},
		{"two encodings", start + json + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunked, 400, "invalid_request", true},
		{"encoding with HTTP/1.0", strings.Replace(start, "1.1", "1.0", 1) + json +
			"Transfer-Encoding: chunked\r\n\r\n" + chunked, 400, "invalid_request", true},
		{"space before colon", start + json + "Content-Length : 7\r\n\r\n{\"a\":1}", 400, "invalid_request",
			true},
		{"folded encoding", start + json + "Transfer-Encoding:\r\n chunked\r\n\r\n" + chunked, 400,
			"invalid_request", true},
		{"folded line", start + json + "X-A: b\r\n c\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 400,
			"invalid_request", true},
		{"bare line feed", strings.ReplaceAll(start+json+"Content-Length: 7\r\n\r\n{\"a\":1}", "\r\n", "\n"),
			400, "invalid_request", true},
		{"NUL in a header", start + json + "X-A: a\x00b\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 400,
			"invalid_request", true},
		{"no host", strings.Replace(start, "Host: x\r\n", "", 1) + json +
			"Content-Length: 7\r\n\r\n{\"a\":1}", 400, "invalid_request", true},
		{"two hosts", start + "Host: y\r\n" + json + "Content-Length: 7\r\n\r\n{\"a\":1}", 400,
			"invalid_request", true},
		{"two credentials", start + "authorization: Bearer x\r\n" + json +
			"Content-Length: 7\r\n\r\n{\"a\":1}", 400, "invalid_request", true},
		{"two types", start + json + "content-type: text/plain\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 400,
			"invalid_request", true},
		{"gzip", start + json + "Content-Encoding: gzip\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 400,
			"invalid_request", false},
		{"identity coding", start + json +
			"Content-Encoding: identity\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 400, "invalid_request",
			false},
		{"GET with a body", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 400,
			"invalid_request", true},
		{"GET with an empty body", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, "",
			false},
		{"GET with chunks", "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n0\r\n\r\n", 400, "invalid_request", true},
		{"GET that hides a request", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: " +
			fmt.Sprint(len(follower)) + "\r\n\r\n" + follower, 400, "invalid_request", true},
		{"broken chunk", start + json + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n", 400, "invalid_request",
			true},
		{"chunk longer than its size", start + json +
			"Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n", 400, "invalid_request", true},
		{"large declared", start + json + "Content-Length: 9999999\r\n\r\n", 413, "payload_too_large", true},
		{"large in chunks", start + json + "Transfer-Encoding: chunked\r\n\r\n50000\r\n" +
			strings.Repeat("x", 0x50000) + "\r\n0\r\n\r\n", 413, "payload_too_large", true},
		{"large header", start + json + "X-A: " + strings.Repeat("a", 9000) +
			"\r\nContent-Length: 7\r\n\r\n{\"a\":1}", 431, "invalid_request", true},
		{"large target", "GET /" + strings.Repeat("a", 9000) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431,
			"invalid_request", true},
		{"not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "invalid_request", true},
		{"no version", "GET /healthz\r\n\r\n", 400, "invalid_request", true},
		{"two spaces", "GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "invalid_request", true},
		{"internal by dots", "GET /v1/../internal/v1/brain-interactions/queue HTTP/1.1\r\nHost: x\r\n\r\n",
			404, "not_found", false},
		{"escaped slash", "GET /healthz%2f HTTP/1.1\r\nHost: x\r\n\r\n", 404, "not_found", false},
		{"escaped NUL", "GET /healthz%00 HTTP/1.1\r\nHost: x\r\n\r\n", 404, "not_found", false},
	}
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			h := *h
			h.t = t
			bytes := strings.Replace(a.bytes, "KEY", "Authorization: Bearer "+h.secret+"\r\n", 1)
			method, _, _ := strings.Cut(bytes, " ")
			replies, closed := h.raw(bytes+follower, method, "GET")
			if len(replies) == 0 {
				t.Fatal("no answer")
			}
			h.check(bytes, replies[0])
			if replies[0].StatusCode != a.status {
				t.Fatalf("status %d, want %d: %s", replies[0].StatusCode, a.status, replies[0].body)
			}
			if a.code != "" && replies[0].problem(t).Code != a.code {
				t.Errorf("code %s, want %s", replies[0].problem(t).Code, a.code)
			}
			want := 2
			if a.closed {
				want = 1
				if !replies[0].Close || !closed {
					t.Error("the connection was kept")
				}
			}
			if len(replies) != want {
				t.Errorf("%d answers, want %d: a smuggled request was served, or a real one was not",
					len(replies), want)
			}
		})
	}
}

// A request that its header rules out is refused before the client sends its body; others get a 100.
func TestExpect(t *testing.T) {
	t.Parallel()
	h := start(t)
	head := func(path, secret string, length int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
			"application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, secret, length)
	}
	for _, tc := range []struct {
		path, secret string
		status       int
		code         fault.Code
	}{{myPath, h.secret, 413, fault.PayloadTooLarge}, {myPath, "x", 401, fault.Unauthorized},
		{"/nothing", "x", 404, fault.NotFound}} {
		r, closed := h.one(head(tc.path, tc.secret, MaxBody+1))
		if r.StatusCode != tc.status || r.problem(t).Code != string(tc.code) || !closed {
			t.Errorf("%d %s, closed %t", r.StatusCode, r.body, closed)
		}
	}
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, head(myPath, h.secret, len(batch)))
	interim := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, interim); err != nil ||
		!strings.HasPrefix(string(interim), "HTTP/1.1 100 ") {
		t.Fatalf("%q, %v", interim, err)
	}
	_, _ = io.WriteString(conn, batch)
	if replies, _ := readReplies(t, conn, 1); len(replies) != 1 || replies[0].StatusCode != 202 {
		t.Fatalf("%v", replies)
	}
}

// A body that is too large to read is answered although it is sent in full: the answer is not lost in a
// reset.
func TestAnswerToALargeBodyArrives(t *testing.T) {
	t.Parallel()
	h := start(t)
	request := h.post(myPath, h.secret, strings.Repeat("x", 900<<10))
	for range 20 {
		if r := h.first(request); r.StatusCode != 413 {
			t.Fatalf("status %d", r.StatusCode)
		}
	}
}

// A client that sends byte by byte is cut off at the read timeout, in the header and in the body.
func TestSlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.Timeouts.Read = 300 * time.Millisecond })
	for name, sent := range map[string]string{
		"nothing":  "",
		"a header": "POST " + myPath + " HTTP/1.1\r\nHost: x\r\nX-",
		"a body":   h.post(myPath, h.secret, batch)[:len(h.post(myPath, h.secret, batch))-3],
	} {
		began := time.Now()
		conn, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, sent)
		replies, closed := readReplies(t, conn, 0)
		conn.Close()
		if len(replies) > 1 || !closed {
			t.Errorf("%s: %d answers, closed %t", name, len(replies), closed)
		}
		if len(replies) == 1 {
			if r := replies[0]; r.StatusCode != 408 || r.problem(t).Code != "invalid_request" {
				t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: cut off after %s", name, took)
		}
	}
	if strings.Contains(h.log.String(), "spk_") || strings.Contains(h.log.String(), "127.0.0.1") {
		t.Errorf("the log holds a request: %s", h.log.String())
	}
}
