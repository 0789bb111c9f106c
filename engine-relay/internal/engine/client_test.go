package engine_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/shared/deliveries"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, url string, timeout time.Duration) *engine.Client {
	t.Helper()
	c, err := engine.New(engine.Config{URL: url, Token: "secret", Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNewRejects(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "engine:80", "ftp://engine", "http://", "http://user@engine",
		"http://engine?x=1", "http://engine#x", "http://%zz"} {
		if _, err := engine.New(engine.Config{URL: u}); err == nil {
			t.Errorf("%q was taken", u)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	f := func(name string, h http.HandlerFunc, kind deliveries.Kind, want deliver.Reply) {
		t.Helper()
		srv := httptest.NewServer(h)
		defer srv.Close()
		got := client(t, srv.URL, 5*time.Second).Send(context.Background(), kind, raw(`{"n":0}`, `{"n":1}`))
		got.Err = nil
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	says := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	answered := func(code int, results ...deliver.Result) deliver.Reply {
		return deliver.Reply{Transmission: deliver.Answered, Status: code, Results: results}
	}
	for _, code := range []int{202, 204, 301, 307, 400, 401, 403, 404, 409, 413, 422, 500, 503} {
		f(fmt.Sprint(code), status(code, "Location", "/elsewhere"), deliveries.Interaction, answered(code))
		f(fmt.Sprint(code), status(code, "Location", "/elsewhere"), deliveries.Envelope, answered(code))
	}
	f(
		"retry-after",
		status(429, "Retry-After", "7"),
		deliveries.Interaction,
		deliver.Reply{Transmission: deliver.Answered, Status: 429, RetryAfter: 7 * time.Second},
	)
	f("no retry-after", status(429, "Retry-After", "soon"), deliveries.Interaction, answered(429))

	created, exists, rejected := deliver.Result{
		Status: deliver.Created,
	}, deliver.Result{
		Status: deliver.Exists,
	}, deliver.Result{
		Status: deliver.Rejected,
		Reason: "no",
	}
	f(
		"results",
		says(`{"results":[{"index":1,"status":"rejected","reason":"no"},{"index":0,"status":"created"}]}`),
		deliveries.Interaction,
		answered(200, created, rejected),
	)
	f(
		"short",
		says(`{"results":[{"index":1,"status":"exists"}]}`),
		deliveries.Interaction,
		answered(200, deliver.Result{}, exists),
	)
	f(
		"long",
		says(
			`{"results":[{"index":0,"status":"created"},{"index":1,"status":"exists"},{"index":2,"status":"created"},{"index":-1,"status":"created"}]}`,
		),
		deliveries.Interaction,
		answered(200, created, exists),
	)
	f(
		"unknown status",
		says(`{"results":[{"index":0,"status":"queued"},{"index":1,"status":"created"}]}`),
		deliveries.Interaction,
		answered(200, deliver.Result{}, created),
	)
	f(
		"contradiction",
		says(
			`{"results":[{"index":0,"status":"created"},{"index":0,"status":"rejected"},{"index":1,"status":"created"},{"index":1,"status":"created"}]}`,
		),
		deliveries.Interaction,
		answered(200, deliver.Result{}, created),
	)
	f(
		"no index",
		says(`{"results":[{"status":"created"}]}`),
		deliveries.Interaction,
		answered(200, deliver.Result{}, deliver.Result{}),
	)
	for _, garbage := range []string{"", "OK", `{"results":[{"index":0,"status":"cre`, `{"results":[]} x`, `<html>`, `[]`, `{"results":{}}`} {
		f("garbage "+garbage, says(garbage), deliveries.Interaction, answered(200))
	}
	f("endless", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(
			w,
			`{"results":[{"index":0,"status":"created","reason":"`+strings.Repeat("x", 1<<20)+`"}]}`,
		)
	}, deliveries.Interaction, answered(200))
}

func TestRequest(t *testing.T) {
	t.Parallel()
	var path, auth, media, body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		path, auth, media, body = r.Method+" "+r.URL.Path, r.Header.Get(
			"Authorization",
		), r.Header.Get(
			"Content-Type",
		), string(
			b,
		)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer srv.Close()
	c := client(t, srv.URL+"/engine/", time.Second)
	if c.Credential() != sha256.Sum256([]byte("secret")) {
		t.Error("the credential is not the token's digest")
	}
	f := func(kind deliveries.Kind, wantPath, wantMedia, wantBody string) {
		t.Helper()
		c.Send(context.Background(), kind, raw(`{"a": 1 }`, `{"b":2}`))
		if path != "POST /engine"+wantPath || auth != "Bearer secret" || media != wantMedia ||
			body != wantBody {
			t.Errorf("%s, %s, %s, %s", path, auth, media, body)
		}
	}
	f(deliveries.Interaction, "/v1/interactions", "application/json", `{"interactions":[{"a": 1 },{"b":2}]}`)
	f(deliveries.Envelope, "/v1/observations", "application/cloudevents-batch+json", `[{"a": 1 },{"b":2}]`)
}

func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	srv := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }),
	)
	defer srv.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	// A name keeps net/http from leaving loopback addresses out of the proxy's way.
	url := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	if reply := client(t, url, 5*time.Second).Send(context.Background(), deliveries.Envelope, raw(`{}`)); reply.Status != 202 {
		t.Errorf("%+v", reply)
	}
}

// raw engine: accepts connections and does with each what the test says.
func listen(t *testing.T, serve func(c net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return "http://" + ln.Addr().String()
}

func swallow(c net.Conn) bool {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

// TestSentOrNot: only what certainly did not leave is NotSent.
func TestSentOrNot(t *testing.T) {
	t.Parallel()
	f := func(name, url string, want deliver.Transmission) {
		t.Helper()
		reply := client(
			t,
			url,
			300*time.Millisecond,
		).Send(context.Background(), deliveries.Interaction, raw(`{}`))
		if reply.Transmission != want || reply.Err == nil && want != deliver.Answered {
			t.Errorf("%s: %+v, want %v", name, reply, want)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + ln.Addr().String()
	ln.Close()
	f("refused connection", gone, deliver.NotSent)
	f("no such host", "http://engine.invalid", deliver.NotSent)
	f(
		"accept, then hang",
		listen(t, func(c net.Conn) { swallow(c); _, _ = io.Copy(io.Discard, c) }),
		deliver.Unanswered,
	)
	f("close after the request", listen(t, func(c net.Conn) { swallow(c) }), deliver.Unanswered)
	f("reset after the request", listen(t, func(c net.Conn) {
		swallow(c)
		_ = c.(*net.TCPConn).SetLinger(0)
	}), deliver.Unanswered)
	f(
		"half an answer",
		listen(t, func(c net.Conn) { swallow(c); fmt.Fprint(c, "HTTP/1.1 20") }),
		deliver.Unanswered,
	)
	f(
		"no HTTP",
		listen(t, func(c net.Conn) { swallow(c); fmt.Fprint(c, "220 smtp\r\n\r\n") }),
		deliver.Unanswered,
	)

	cut := listen(t, func(c net.Conn) {
		swallow(c)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"results\":[")
	})
	reply := client(t, cut, time.Second).Send(context.Background(), deliveries.Interaction, raw(`{}`))
	if reply.Transmission != deliver.Answered || reply.Status != 200 || reply.Results != nil ||
		reply.Err == nil {
		t.Errorf("cut answer: %+v", reply)
	}
}

// TestStaleConnection: the engine closes each connection after its first response. A later request that takes
// such a connection before the client knows either wrote to it (Unanswered) or goes over a new one; it never
// ends as one that was not sent.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	url := listen(t, func(c net.Conn) {
		if swallow(c) {
			fmt.Fprint(c, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := client(t, url, time.Second)
	for i := range 200 {
		reply := c.Send(context.Background(), deliveries.Envelope, raw(`{}`))
		if reply.Transmission == deliver.NotSent ||
			reply.Transmission == deliver.Answered && reply.Status != 202 {
			t.Errorf("%d: %+v", i, reply)
		}
	}
}
