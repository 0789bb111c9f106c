package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/tracing"
)

const batch = `{"signals":[{},{}]}`

func TestRecordSignals(t *testing.T) {
	t.Parallel()
	h := start(t)
	r := h.expect(h.post(myPath, h.secret, batch, "User-Agent: UA", "Accept-Language: es",
		"Origin: https://shop.example",
		"Referer: https://shop.example/p", "X-Forwarded-For: 203.0.113.9"), 202, "")
	if got, want := string(r.body),
		`{"results":[{"index":0,"signal_id":"sig_1","status":"accepted"},{"index":1,"signal_id":null,`+
			`"status":"rejected","reason":"invalid_signal"}]}`; got != want {
		t.Errorf("body %s", got)
	}
	got := h.signals.requests()
	if len(got) != 1 {
		t.Fatalf("%d calls", len(got))
	}
	want := signal.Audit{IP: "203.0.113.9", UserAgent: "UA", AcceptLanguage: "es",
		Origin: "https://shop.example", Referer: "https://shop.example/p"}
	if g := got[0]; g.ConnectionID != "con_mine" || g.StoreID != "str_mine" || string(g.Body) != batch ||
		g.Audit != want || time.Since(g.ReceivedAt) > time.Minute {
		t.Errorf("request %+v", g)
	}
}

func TestCheckSignals(t *testing.T) {
	t.Parallel()
	h := start(t)
	r := h.expect(h.post(myPath+"/check", h.secret, batch), 200, "")
	if got, want := string(r.body), `{"results":[{"index":0,"signal_id":null,"status":"rejected",`+
		`"reason":"missing_signal_id","errors":[{"code":"missing_signal_id"`; !strings.HasPrefix(got, want) {
		t.Errorf("body %s", got)
	}
	h.expect(h.post(myPath+"/check", h.reader, batch), 403, fault.ForbiddenScope)
	h.expect(h.post(myPath+"/check", h.secret, `{"signals":[]}`), 400, fault.InvalidRequest)
	if n := len(h.signals.requests()); n != 0 {
		t.Errorf("%d requests reached the recorder", n)
	}
}

func TestRecommendations(t *testing.T) {
	t.Parallel()
	h := start(t)
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r := h.expect(h.post(recPath, h.secret, `{"placement":"home"}`, "traceparent: "+trace), 200, "")
	want := `{"decision_id":"dec_1","placement":"home","served_at":"2026-01-02T03:04:05.0006Z",` +
		`"source":"engine","items":[{"position":0,"item_id":"itm_1","variant_id":"var_1"},{"position":1,` +
		`"item_id":"itm_2"}]}`
	if string(r.body) != want {
		t.Errorf("body %s, want %s", r.body, want)
	}
	if h.recs.got.Traceparent != tracing.Unsampled(trace) {
		t.Errorf("traceparent %q was not passed on", h.recs.got.Traceparent)
	}
}

func TestTracedRequests(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	// how much is sampled is ours to decide, whatever strangers send
	for ratio, flags := range map[float64]string{0: "-00", 1: "-01"} {
		spans := tracetest.NewInMemoryExporter()
		h := start(t, func(c *Config) {
			c.Tracing = tracing.NewWithProcessor(tracing.Config{Service: "edge", Ratio: ratio},
				sdktrace.NewSimpleSpanProcessor(spans))
		})
		h.expect(h.post(recPath, h.secret, `{"placement":"home"}`, "traceparent: "+trace), 200, "")
		got := h.recs.got.Traceparent
		if len(got) != len(trace) || got == trace || got[:36] != trace[:36] ||
			!strings.HasSuffix(got, flags) {
			t.Errorf("ratio %v: %q was passed on", ratio, got)
		}
		all := spans.GetSpans()
		if len(all) != int(ratio) || len(all) == 1 && (all[0].Name != "getRecommendations" ||
			all[0].SpanContext.SpanID().String() != got[36:52]) {
			t.Errorf("ratio %v: %+v", ratio, all)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	h := start(t)
	r := h.expect("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200, "")
	if string(r.body) != `{"status":"ok"}` || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s", r.Header, r.body)
	}
	head := h.expect("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200, "")
	if len(head.body) != 0 || head.ContentLength != int64(len(r.body)) {
		t.Errorf("HEAD: %d bytes, length %d", len(head.body), head.ContentLength)
	}
	if h.keys.calls() != 0 {
		t.Error("health asked for a key")
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	at := time.Now()
	h := start(t, func(c *Config) {
		c.RateLimiter = ratelimit.New(ratelimit.Config{PerKey: ratelimit.Quota{PerSecond: 1000, Burst: 1000},
			PerAddress: ratelimit.Quota{PerSecond: 10, Burst: 20},
			Now:        func() time.Time { return at }})
	})
	h.signals.size = 50
	r := h.expect(h.post(myPath, h.secret, batch), 202, "")
	if got, want := r.Header.Get("RateLimit-Policy"), `"key";q=1000;w=1, "address";q=20;w=2`; got != want {
		t.Errorf("RateLimit-Policy %s, want %s", got, want)
	}
	if got, want := r.Header.Get("RateLimit"), `"key";r=950;t=1, "address";r=0;t=5`; got != want {
		t.Errorf("RateLimit %s, want %s", got, want)
	}
	r = h.expect(h.post(myPath, h.secret, batch), 429, fault.RateLimited)
	if r.Header.Get("Retry-After") != "4" || r.Header.Get("RateLimit") == "" ||
		r.Header.Get("RateLimit-Policy") == "" {
		t.Errorf("%v", r.Header)
	}
	// another shopper of the same key
	h.expect(h.post(myPath, h.secret, batch, "X-Forwarded-For: 203.0.113.9"), 202, "")
	h.expect(h.post(myPath, h.secret, batch, "X-Forwarded-For: 203.0.113.9"), 429, fault.RateLimited)
}

func TestProblemsOfTheUseCase(t *testing.T) {
	t.Parallel()
	h := start(t)
	for name, tc := range map[string]struct {
		err    error
		status int
		code   fault.Code
	}{
		"invalid": {fault.Invalid("/signals", "missing", "No signals."), 400, fault.InvalidRequest},
		"too many": {&fault.Error{Code: fault.SignalBatchLimitExceeded,
			Extra: map[string]any{"max_signals_per_batch": 50, "actual_signals": 51}}, 422,
			fault.SignalBatchLimitExceeded},
		"unavailable": {&fault.Error{Code: fault.SignalsUnavailable, RetryAfter: 3 * time.Second}, 503,
			fault.SignalsUnavailable},
		"anything": {fmt.Errorf("canary-cause"), 500, fault.InternalError},
	} {
		h.signals.mu.Lock()
		h.signals.do = func(context.Context, intake.Request) ([]signal.Result, error) { return nil, tc.err }
		h.signals.mu.Unlock()
		r := h.expect(h.post(myPath, h.secret, batch), tc.status, tc.code)
		if strings.Contains(string(r.body), "canary") {
			t.Errorf("%s: the answer shows its cause", name)
		}
		if after := r.Header.Get("Retry-After"); (tc.status == 503) != (after >= "3" && after <= "5") {
			t.Errorf("%s: Retry-After %q", name, after)
		}
	}
	if !strings.Contains(h.log.String(), "canary-cause") {
		t.Error("the log does not hold the cause of the 500")
	}
	h.keys.mu.Lock()
	h.keys.err = fault.New(fault.ServiceUnavailable, "")
	h.keys.mu.Unlock()
	h.expect(h.post(myPath, h.secret, batch), 503, fault.SignalsUnavailable)
	h.expect(h.post(recPath, h.secret, batch), 503, fault.ServiceUnavailable)
}

func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.keys.panicky = true
	r, closed := h.one(h.post(myPath, h.secret, batch))
	if p := r.problem(t); p.Code != "internal_error" || r.StatusCode != 500 || !closed {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if strings.Contains(h.log.String()+string(r.body), "canary") {
		t.Error("the panic's value is shown")
	}
	if v := gather(t, h, "storefront_edge_http_panics_total"); v != 1 {
		t.Errorf("%v panics counted", v)
	}
	h.keys.mu.Lock()
	h.keys.panicky = false
	h.keys.mu.Unlock()
	h.expect(h.post(myPath, h.secret, batch), 202, "")
}

func gather(t *testing.T, h *harness, name string) float64 {
	t.Helper()
	families, err := h.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				sum += float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func TestOverload(t *testing.T) {
	t.Parallel()
	for reason, limit := range map[string]func(*Config){
		"waited":     func(c *Config) { c.WorkLimits.MaxInFlight = 1 },
		"body_bytes": func(c *Config) { c.WorkLimits.MaxBytes = len(batch) },
	} {
		h := start(t, limit)
		entered, release := make(chan struct{}), make(chan struct{})
		h.signals.do = func(context.Context, intake.Request) ([]signal.Result, error) {
			close(entered)
			<-release
			return nil, nil
		}
		first := make(chan *reply)
		go func() {
			r, _ := h.raw(h.post(myPath, h.secret, batch))
			first <- r[0]
		}()
		<-entered
		r := h.expect(h.post(myPath, h.secret, batch), 503, fault.SignalsUnavailable)
		if r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", reason)
		}
		h.expect("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200, "")
		close(release)
		if r := <-first; r.StatusCode != 202 {
			t.Errorf("%s: the first request got %d", reason, r.StatusCode)
		}
		if v := gather(t, h, "storefront_edge_http_shed_total"); v != 1 {
			t.Errorf("%s: %v counted", reason, v)
		}
		if v := gather(t, h, "storefront_edge_http_in_flight_bytes"); v != 0 {
			t.Errorf("%s: %v bytes in flight", reason, v)
		}
	}
}

// A request that runs when the server stops is answered, and the next one is not accepted.
func TestDrain(t *testing.T) {
	t.Parallel()
	h := start(t)
	entered, release := make(chan struct{}), make(chan struct{})
	h.signals.do = func(ctx context.Context, _ intake.Request) ([]signal.Result, error) {
		close(entered)
		<-release
		return nil, ctx.Err()
	}
	answer := make(chan *reply, 1)
	closing := make(chan bool, 1)
	go func() {
		r, closed := h.raw(h.post(myPath, h.secret, batch))
		answer <- r[0]
		closing <- closed
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- h.server.Shutdown(context.Background()) }()
	waitRefused(t, h.addr)
	close(release)
	if r := <-answer; r.StatusCode != http.StatusAccepted || !r.Close {
		t.Errorf("status %d, close %t", r.StatusCode, r.Close)
	}
	if !<-closing {
		t.Error("the connection was kept")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func waitRefused(t *testing.T, addr string) {
	t.Helper()
	for range 1000 {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("connections are still accepted")
}

// Hundreds of concurrent requests with different bodies: none gets the answer of another.
func TestBuffersDoNotMix(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.signals.do = func(_ context.Context, req intake.Request) ([]signal.Result, error) {
		return []signal.Result{{SignalID: string(req.Body) + req.Audit.UserAgent, HasSignalID: true,
			Status: signal.Accepted}}, nil
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	done := make(chan error)
	for g := range 8 {
		go func() {
			for i := range 50 {
				body, agent := fmt.Sprintf("b%d-%d", g, i), fmt.Sprintf("a%d-%d", g, i)
				if err := echo(client, h, body, agent); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for i, r := range h.signals.requests() {
		if want := "a" + string(r.Body[1:]); r.Audit.UserAgent != want {
			t.Fatalf("request %d: body %s with agent %s", i, r.Body, r.Audit.UserAgent)
		}
	}
}

func echo(client *http.Client, h *harness, body, agent string) error {
	req, err := http.NewRequest("POST", "http://"+h.addr+myPath, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+h.secret)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", agent)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var out struct {
		Results []struct {
			SignalID string `json:"signal_id"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return err
	}
	if out.Results[0].SignalID != body+agent {
		return fmt.Errorf("sent %s, got %s", body+agent, out.Results[0].SignalID)
	}
	return nil
}
