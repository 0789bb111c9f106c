package receiver

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

const (
	token    = "canary-connector-token-0123456789abcdef"
	endpoint = "whe_0123456789abcdef"
)

// control is a fake that answers what the test says, and keeps the last request.
type control struct {
	mu     sync.Mutex
	status int
	header http.Header
	hold   chan struct{}
	last   *http.Request
	body   []byte
	asked  int
}

func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	c.last, c.body, c.asked = r, body, c.asked+1
	status, header, hold := c.status, c.header, c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"detail":"of control"}`)
}

type world struct {
	t       *testing.T
	control *control
	server  *httptest.Server
	metrics *Metrics
	log     testkit.Log
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, control: &control{status: http.StatusAccepted}}
	behind := httptest.NewServer(w.control)
	t.Cleanup(behind.Close)
	base, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.metrics = NewMetrics(prometheus.NewRegistry())
	c := Config{Control: base, Path: "/shops", BodyBudget: 2 * MaxBody, Transport: &http.Transport{},
		Tokens:  map[string]settings.Secret{"shopify": token, "tiendanube": token, "woocommerce": token},
		Timeout: 5 * time.Second, Metrics: w.metrics, Logger: slog.New(slog.NewTextHandler(&w.log, nil))}
	for _, f := range change {
		f(&c)
	}
	w.server = httptest.NewServer(New(c))
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) send(method, path string, body io.Reader, header ...string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := w.server.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || len(text) > 0 {
		w.t.Errorf("the answer has a body: %q, %v", text, err)
	}
	_ = res.Body.Close()
	return res
}

func (w *world) count(provider string, o outcome) float64 {
	return testutil.ToFloat64(w.metrics.webhooks.WithLabelValues(provider, string(o)))
}

// Bytes that no JSON reader would keep: the signature covers them.
const raw = "{\"a\" : 1,\r\n \"a\":2}\x00\xff "

func TestAWebhookIsPassedOnByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for provider, tc := range map[string]struct{ send, want map[string]string }{
		"shopify": {map[string]string{"X-Shopify-Hmac-Sha256": "sig=", "X-Shopify-Topic": "orders/paid",
			"X-Shopify-Event-Id": "e1", "X-Shopify-Triggered-At": "2026-11-01T00:00:00Z"},
			map[string]string{"X-Provider-Signature": "sig=", "X-Provider-Topic": "orders/paid",
				"X-Provider-Delivery-Id": "e1", "X-Provider-Triggered-At": "2026-11-01T00:00:00Z"}},
		"tiendanube": {map[string]string{"X-Linkedstore-Hmac-Sha256": "aa"},
			map[string]string{"X-Provider-Signature": "aa", "X-Provider-Topic": ""}},
		"woocommerce": {map[string]string{"X-WC-Webhook-Signature": "s", "X-WC-Webhook-Topic": "order.created",
			"X-WC-Webhook-Delivery-ID": "d"},
			map[string]string{"X-Provider-Signature": "s", "X-Provider-Topic": "order.created",
				"X-Provider-Delivery-Id": "d"}},
	} {
		var header []string
		for name, value := range tc.send {
			header = append(header, name, value)
		}
		// what a stranger adds is not passed on
		header = append(header, "Authorization", "Bearer forged", "X-Provider-Topic", "forged", "Cookie", "c")
		res := w.send(http.MethodPost, "/shops/"+provider+"/"+endpoint, strings.NewReader(raw), header...)
		if res.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %d", provider, res.StatusCode)
		}
		got := w.control.last
		if got.URL.Path != "/internal/v1/webhooks/"+provider+"/"+endpoint || string(w.control.body) != raw {
			t.Errorf("%s: %s got %q", provider, got.URL.Path, w.control.body)
		}
		if got.Header.Get("Authorization") != "Bearer "+token || got.Header.Get("Cookie") != "" {
			t.Errorf("%s: %v", provider, got.Header)
		}
		for name, want := range tc.want {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", provider, name, got.Header.Get(name), want)
			}
		}
		if w.count(provider, taken) != 1 {
			t.Errorf("%s: not counted", provider)
		}
	}
}

// Nothing but control's own success is a success.
func TestOnlyWhatControlTookIsAcknowledged(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{200: 200, 202: 202, 201: 503, 204: 503, 301: 503, 302: 503,
		307: 503, 400: 400, 401: 401,
		403: 503, 404: 503, 413: 413, 429: 429, 500: 503, 502: 503, 503: 503, 504: 503} {
		w := newWorld(t)
		w.control.status = status
		w.control.header = http.Header{"Location": {"/elsewhere"}, "X-Request-Id": {"inside"}}
		if status == http.StatusTooManyRequests {
			w.control.header.Set("Retry-After", "7")
		}
		res := w.send(http.MethodPost, "/shops/shopify/"+endpoint, strings.NewReader(raw),
			"X-Shopify-Hmac-Sha256", "s")
		if res.StatusCode != want {
			t.Errorf("control answered %d, the provider got %d, want %d", status, res.StatusCode, want)
		}
		after := map[int]string{429: "7", 503: retryAfter}[want]
		if got := res.Header.Get("Retry-After"); got != after {
			t.Errorf("%d: Retry-After %q, want %q", want, got, after)
		}
		if res.Header.Get("X-Request-Id") != "" || res.Header.Get("Location") != "" || w.control.asked != 1 {
			t.Errorf("%d: %v, asked %d times", status, res.Header, w.control.asked)
		}
	}
}

func TestControlIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Control = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} })
	res := w.send(http.MethodPost, "/shops/tiendanube/"+endpoint, strings.NewReader(raw),
		"X-Linkedstore-Hmac-Sha256", "s")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != retryAfter {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if w.count("tiendanube", unavailable) != 1 || !strings.Contains(w.log.String(), "does not answer") {
		t.Errorf("neither counted nor logged: %s", w.log.String())
	}
	if strings.Contains(w.log.String(), token) {
		t.Error("the log has the token")
	}
}

func TestControlHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Timeout = 50 * time.Millisecond })
	hold := make(chan struct{})
	w.control.hold = hold
	defer close(hold)
	res := w.send(http.MethodPost, "/shops/tiendanube/"+endpoint, strings.NewReader(raw),
		"X-Linkedstore-Hmac-Sha256", "s")
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d", res.StatusCode)
	}
}

// What cannot be a webhook never reaches control.
func TestForm(t *testing.T) {
	t.Parallel()
	good, signed := "/shops/shopify/"+endpoint, []string{"X-Shopify-Hmac-Sha256", "s"}
	w := newWorld(t)
	x, large := "x", string(make([]byte, MaxBody+1))
	for name, tc := range map[string]struct {
		method, path, body string
		header             []string
		want               int
	}{
		"another path":          {"POST", "/shopify/" + endpoint, x, signed, 404},
		"internal path":         {"POST", "/internal/v1/webhooks/shopify/" + endpoint, x, signed, 404},
		"a provider without us": {"POST", "/shops/magento/" + endpoint, x, signed, 404},
		"no endpoint":           {"POST", "/shops/shopify/", x, signed, 404},
		"not an endpoint":       {"POST", "/shops/shopify/con_1", x, signed, 404},
		"dots":                  {"POST", "/shops/shopify/whe_..%2f..%2fconnections", x, signed, 404},
		"more segments":         {"POST", good + "/x", x, signed, 404},
		"GET":                   {"GET", good, "", signed, 405},
		"unsigned":              {"POST", good, x, nil, 401},
		"a long signature":      {"POST", good, x, []string{signed[0], strings.Repeat("s", 513)}, 401},
		"empty":                 {"POST", good, "", signed, 400},
		"compressed":            {"POST", good, x, append([]string{"Content-Encoding", "gzip"}, signed...), 415},
		"too large":             {"POST", good, large, signed, 413},
		"another's ping":        {"POST", good, "webhook_id=1", nil, 401},
		"an unsigned non-ping":  {"POST", "/shops/woocommerce/" + endpoint, "webhook_id=1x", nil, 401},
	} {
		res := w.send(tc.method, tc.path, strings.NewReader(tc.body), tc.header...)
		if res.StatusCode != tc.want {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, tc.want)
		}
	}
	chunked := io.MultiReader(strings.NewReader(large))
	if res := w.send("POST", good, chunked, signed...); res.StatusCode != 413 {
		t.Errorf("too large and chunked: %d", res.StatusCode)
	}
	if w.control.asked != 0 {
		t.Errorf("control was asked %d times", w.control.asked)
	}
	if held := w.server.Config.Handler.(*Receiver).held(); held != 0 {
		t.Errorf("%v bytes are still held", held)
	}
	if res := w.send("POST", good, bytes.NewReader(make([]byte, MaxBody)), signed...); res.StatusCode != 202 {
		t.Errorf("the largest body: %d", res.StatusCode)
	}
}

// WooCommerce asks whether the address answers, also while control is down.
func TestPing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Control = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} })
	res := w.send(http.MethodPost, "/shops/woocommerce/"+endpoint, strings.NewReader("webhook_id=12"))
	if res.StatusCode != http.StatusOK || w.count("woocommerce", ping) != 1 {
		t.Errorf("%d", res.StatusCode)
	}
}

func TestBodiesBeyondTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.BodyBudget = MaxBody })
	hold := make(chan struct{})
	w.control.hold = hold
	first := make(chan int)
	go func() {
		res, err := w.server.Client().Do(w.signed(make([]byte, MaxBody)))
		if err != nil {
			first <- 0
			return
		}
		_ = res.Body.Close()
		first <- res.StatusCode
	}()
	for end := time.Now().Add(20 * time.Second); w.server.Config.Handler.(*Receiver).held() < MaxBody; {
		if time.Now().After(end) {
			t.Fatal("the first body is not held")
		}
		time.Sleep(time.Millisecond)
	}
	res := w.send(http.MethodPost, "/shops/shopify/"+endpoint, strings.NewReader("x"),
		"X-Shopify-Hmac-Sha256", "s")
	if res.StatusCode != http.StatusServiceUnavailable || w.count("shopify", full) != 1 {
		t.Errorf("%d", res.StatusCode)
	}
	close(hold)
	if status := <-first; status != http.StatusAccepted {
		t.Errorf("the first one: %d", status)
	}
}

func (w *world) signed(body []byte) *http.Request {
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost,
		w.server.URL+"/shops/shopify/"+endpoint, bytes.NewReader(body))
	if err != nil {
		w.t.Error(err)
	}
	r.Header.Set("X-Shopify-Hmac-Sha256", "s")
	return r
}
