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

// FakeProvider is a running process of the local stack's fake providers. The suite runs against it too, so
// that the fakes behave as the adapters expect.
type FakeProvider struct {
	url   string
	debug *http.Client
	last  atomic.Int64
}

// StartFakeProvider starts bin/fakeprovider with empty, unthrottled shops until the test ends. The test is
// skipped when it is not built, and fails under REQUIRE_REAL=1.
func StartFakeProvider(t *testing.T) *FakeProvider {
	t.Helper()
	// WooCommerce pings the address of a new subscription and wants a 200.
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
	cmd.Env = []string{"FAKEPROVIDER_LISTEN=" + address, "FAKEPROVIDER_CONTENTS=none",
		"FAKEPROVIDER_THROTTLE=off", "FAKEPROVIDER_RECEIVER=" + receiver.URL}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // fails because it was killed
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
	return &FakeProvider{url: "http://" + address,
		debug: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
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

// NewShopNumber returns a number that no other shop of these fakes has.
func (f *FakeProvider) NewShopNumber() int64 { return 700_000 + f.last.Add(1) }

// FaultProxy returns a proxy to the fakes that injects faults.
func (f *FakeProvider) FaultProxy(t *testing.T) *FaultProxy {
	t.Helper()
	to, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	return NewFaultProxy(t, &httputil.ReverseProxy{
		Transport: f.debug.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // links in responses lead through the proxy
			r.Out.Header["User-Agent"] = r.In.Header["User-Agent"]
		},
	})
}

// DebugAPI returns the debug routes of a shop.
func (f *FakeProvider) DebugAPI(t *testing.T, provider, shop string) *DebugAPI {
	return &DebugAPI{t: t, client: f.debug, at: f.url + "/" + provider + "/debug/",
		query: "?store=" + url.QueryEscape(shop)}
}

// DebugAPI is the debug routes of one store.
type DebugAPI struct {
	t      *testing.T
	client *http.Client
	at     string
	query  string
}

// Put replaces members of a document.
func (s *DebugAPI) Put(kind, id string, doc map[string]any) {
	s.t.Helper()
	body, err := json.Marshal(doc)
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(http.MethodPut, kind+"/"+id, body)
}

// Delete removes a document.
func (s *DebugAPI) Delete(kind, id string) {
	s.t.Helper()
	s.do(http.MethodDelete, kind+"/"+id, nil)
}

func (s *DebugAPI) do(method, path string, body []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, s.at+path+s.query,
		bytes.NewReader(body))
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
