package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/edge/internal/signalcheck"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

func TestMain(m *testing.M) {
	// two goroutines of the library: one per process, and one per server that ends ten seconds late
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

const (
	errorsBase = "https://errors.example/"
	myPath     = "/v1/connections/con_mine/storefront-signals"
	recPath    = "/v1/connections/con_mine/recommendations"
)

type harness struct {
	t       *testing.T
	server  *Server
	addr    string
	keys    *keys
	signals *signals
	recs    *recommendations
	items   *items
	secret  string // of con_mine, with all scopes
	foreign string // of con_other
	reader  string // of con_mine, catalog:read only
	log     *testkit.Log
	metrics *prometheus.Registry
}

// noDecisions knows no Decision.
type noDecisions struct{}

func (noDecisions) Verify(ident.ConnectionID, string) bool { return false }

// start serves with fakes behind the transport.
func start(t *testing.T, change ...func(*Config)) *harness {
	t.Helper()
	h := &harness{t: t, keys: &keys{grants: map[string]storekey.Grant{}}, signals: &signals{size: 2},
		recs: &recommendations{}, items: &items{docs: map[itemread.Key]*itemread.Document{}},
		log:    &testkit.Log{},
		secret: storekey.NewSecret(), foreign: storekey.NewSecret(), reader: storekey.NewSecret(),
		metrics: prometheus.NewRegistry()}
	h.keys.grants[h.secret] = storekey.Grant{KeyID: "key_a", ConnectionID: "con_mine", StoreID: "str_mine",
		Scopes: storekey.AllScopes()}
	h.keys.grants[h.foreign] = storekey.Grant{KeyID: "key_b", ConnectionID: "con_other",
		StoreID: "str_other", Scopes: storekey.AllScopes()}
	h.keys.grants[h.reader] = storekey.Grant{KeyID: "key_c", ConnectionID: "con_mine", StoreID: "str_mine",
		Scopes: []storekey.Scope{storekey.CatalogRead}}
	c := Config{Keys: h.keys, Signals: h.signals, Recommendations: h.recs, Items: h.items,
		SignalCheck: signalcheck.New(noDecisions{}), ItemTTL: 5 * time.Second,
		Problems: problem.New(errorsBase), Now: time.Now,
		RateLimiter: ratelimit.New(ratelimit.Config{PerKey: ratelimit.Quota{PerSecond: 1e6, Burst: 1e6},
			PerAddress: ratelimit.Quota{PerSecond: 1e6, Burst: 1e6}}),
		Metrics: NewMetrics(h.metrics),
		Logger:  slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Beacon:  true, LogSample: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, f := range change {
		f(&c)
	}
	h.server = New(c)
	h.server.Watch(h.metrics)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- h.server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return h
}

// reply is one answer with its whole body.
type reply struct {
	*http.Response
	body []byte
}

// problemBody has the members of every problem.
type problemBody struct {
	Type, Title, Detail, Code string
	Status                    int
	RequestID                 string `json:"request_id"`
	Errors                    []fault.Field
}

func (r *reply) problem(t *testing.T) problemBody {
	t.Helper()
	var p problemBody
	if err := json.Unmarshal(r.body, &p); err != nil {
		t.Fatalf("no problem: %v in %q", err, r.body)
	}
	return p
}

// raw sends bytes on a new connection and reads answers until the server closes it or sends nothing for a
// while; closed reports which.
func (h *harness) raw(request string, methods ...string) (replies []*reply, closed bool) {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		h.t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }()
	return readReplies(h.t, conn, 0, methods...)
}

// quiet is how long a connection may be silent before it counts as kept open.
const quiet = 300 * time.Millisecond

// readReplies reads at most that many answers, or all when most is 0.
func readReplies(t *testing.T, conn net.Conn, most int, methods ...string) (replies []*reply, closed bool) {
	t.Helper()
	br := bufio.NewReader(conn)
	for i := 0; most == 0 || i < most; i++ {
		if i > 0 {
			_ = conn.SetReadDeadline(time.Now().Add(quiet))
		}
		method := "POST"
		if i < len(methods) {
			method = methods[i]
		}
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		var network net.Error
		switch {
		case errors.As(err, &network) && network.Timeout():
			return replies, false
		case err != nil:
			return replies, true
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("body of answer %d: %v", i, err)
		}
		replies = append(replies, &reply{Response: resp, body: body})
	}
	return replies, false
}

// one sends bytes and expects exactly one answer, which it checks against the document. It waits to see
// whether the connection is closed then.
func (h *harness) one(request string) (r *reply, closed bool) {
	h.t.Helper()
	method, _, _ := strings.Cut(request, " ")
	replies, closed := h.raw(request, method)
	if len(replies) != 1 {
		h.t.Fatalf("%d answers to %.200q", len(replies), request)
	}
	h.check(request, replies[0])
	return replies[0], closed
}

func (h *harness) check(request string, r *reply) {
	h.t.Helper()
	method, rest, _ := strings.Cut(request, " ")
	path, _, _ := strings.Cut(rest, " ")
	checkAgainstDocument(h.t, h.server, method, path, r)
}

// first sends bytes and reads one answer, which it checks against the document.
func (h *harness) first(request string) *reply {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = io.WriteString(conn, request) }()
	method, _, _ := strings.Cut(request, " ")
	replies, _ := readReplies(h.t, conn, 1, method)
	if len(replies) != 1 {
		h.t.Fatalf("no answer to %.200q", request)
	}
	h.check(request, replies[0])
	return replies[0]
}

// post builds a request that records signals, with further header lines.
func (h *harness) post(path, secret, body string, lines ...string) string {
	head := "POST " + path + " HTTP/1.1\r\nHost: edge.example\r\n"
	if secret != "" {
		head += "Authorization: Bearer " + secret + "\r\n"
	}
	if !strings.Contains(strings.Join(lines, "\n"), "Content-Type") {
		head += "Content-Type: application/json\r\n"
	}
	for _, line := range lines {
		head += line + "\r\n"
	}
	return head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// expect sends a request and checks status and code ("" for no problem).
func (h *harness) expect(request string, status int, code fault.Code) *reply {
	h.t.Helper()
	r := h.first(request)
	if r.StatusCode != status {
		h.t.Fatalf("status %d, want %d for %.160q: %s", r.StatusCode, status, request, r.body)
	}
	if code != "" {
		if p := r.problem(h.t); p.Code != string(code) {
			h.t.Fatalf("code %s, want %s for %.160q", p.Code, code, request)
		}
	}
	return r
}
