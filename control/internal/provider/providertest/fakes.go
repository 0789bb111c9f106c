package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Fakes are the fake providers of the local stack, as a process of their own: what the suite says of an adapter holds against
// what everything else is tested with, too.
type Fakes struct {
	url   string
	debug *http.Client
	last  atomic.Int64
}

// StartFakes starts bin/fakeprovider with stores that are empty and unthrottled, until the test ends. Where it was not built
// the test is skipped, and fails under REQUIRE_REAL=1.
func StartFakes(t *testing.T) *Fakes {
	t.Helper()
	// Addresses of subscriptions are greeted, and want a 200.
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary(t))
	cmd.Env = []string{"FAKEPROVIDER_LISTEN=" + address, "FAKEPROVIDER_CONTENTS=none", "FAKEPROVIDER_THROTTLE=off", "FAKEPROVIDER_RECEIVER=" + receiver.URL}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the fake providers do not listen: %v\n%s", err, &said)
		}
	}
	return &Fakes{url: "http://" + address, debug: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
}

// binary finds bin/fakeprovider beside the workspace's go.work.
func binary(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "bin", "fakeprovider")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if os.Getenv("REQUIRE_REAL") == "1" {
		t.Fatal("REQUIRE_REAL=1, and bin/fakeprovider is not there: use `make test`")
	}
	t.Skip("SKIPPED: bin/fakeprovider is not there: use `make test`")
	return ""
}

// Number is a number that no other store of these fakes has.
func (f *Fakes) Number() int64 { return 700_000 + f.last.Add(1) }

// Front stands before the fakes and makes trouble.
func (f *Fakes) Front(t *testing.T) *Front {
	t.Helper()
	to, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	return NewFront(t, &httputil.ReverseProxy{
		Transport: f.debug.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // what the provider answers leads through the front
			r.Out.Header["User-Agent"] = r.In.Header["User-Agent"]
		},
	})
}

// Truth is what a store of a provider holds.
func (f *Fakes) Truth(t *testing.T, provider, store string) *Truth {
	return &Truth{t: t, client: f.debug, at: f.url + "/" + provider + "/debug/", query: "?store=" + url.QueryEscape(store)}
}

// Truth is the debug routes of one store.
type Truth struct {
	t      *testing.T
	client *http.Client
	at     string
	query  string
}

// Put lays a document over what the store has under the id.
func (s *Truth) Put(kind, id string, doc map[string]any) {
	s.t.Helper()
	body, err := json.Marshal(doc)
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(http.MethodPut, kind+"/"+id, body)
}

// Delete takes a document away.
func (s *Truth) Delete(kind, id string) {
	s.t.Helper()
	s.do(http.MethodDelete, kind+"/"+id, nil)
}

func (s *Truth) do(method, path string, body []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, s.at+path+s.query, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body)
		s.t.Fatal(fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, text))
	}
}
