package httpapi

import (
	"context"
	"net/http"
	"testing"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/storekey"
)

const (
	impressionBatch = `{"signals":[{"type":"impression"}]}`
	purchaseBatch   = `{"signals":[{"type":"impression"},{"type":"purchase"}]}`
)

// While the only permit is taken, impressions are refused at once, and a purchase waits and is recorded.
func TestImpressionsAreShedFirst(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.WorkLimits.MaxInFlight, c.WorkLimits.MaxWait = 1, 5*time.Second })
	entered, release := make(chan struct{}, 2), make(chan struct{})
	h.signals.do = func(context.Context, intake.Request) ([]signal.Result, error) {
		entered <- struct{}{}
		<-release
		return nil, nil
	}
	send := func(body string) chan *reply {
		answer := make(chan *reply, 1)
		go func() { answer <- h.first(h.post(myPath, h.secret, body)) }()
		return answer
	}
	first := send(impressionBatch)
	<-entered
	purchase := send(purchaseBatch)
	h.waiting(1)
	for range 2 {
		r := h.expect(h.post(myPath, h.secret, impressionBatch), 503, fault.SignalsUnavailable)
		if r.Header.Get("Retry-After") == "" {
			t.Errorf("impressions: %v", r.Header)
		}
	}
	close(release)
	for name, answer := range map[string]chan *reply{"the first": first, "the purchase": purchase} {
		if r := <-answer; r.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	if n := gather(t, h, "storefront_edge_http_shed_total"); n != 2 {
		t.Errorf("%v shed", n)
	}
}

// waiting waits until so many requests wait for a permit.
func (h *harness) waiting(n int) {
	h.t.Helper()
	until := time.Now().Add(30 * time.Second)
	for ; h.server.workLimiter.State().Waiting != n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			h.t.Fatalf("%+v, want %d waiting", h.server.workLimiter.State(), n)
		}
	}
}

// Wrong keys from one address are answered 429 and cost no look-up. Known keys and other addresses are not
// affected, and malformed keys are not counted.
func TestWrongKeysAreLimited(t *testing.T) {
	t.Parallel()
	at := time.Now()
	h := start(t, func(c *Config) {
		c.AuthFailures, c.Now = ratelimit.Quota{PerSecond: 2, Burst: 3}, func() time.Time { return at }
	})
	const guesser = "X-Forwarded-For: 203.0.113.7"
	malformed := h.post(myPath, "spk_malformed", batch, guesser)
	for range 10 {
		h.expect(malformed, 401, fault.Unauthorized)
	}
	for range 3 {
		h.expect(h.post(myPath, storekey.NewSecret(), batch, guesser), 401, fault.Unauthorized)
	}
	asked := h.keys.calls()
	r := h.expect(h.post(myPath, storekey.NewSecret(), batch, guesser), 429, fault.RateLimited)
	if r.Header.Get("Retry-After") == "" || r.Header.Get("RateLimit") != "" {
		t.Errorf("%v", r.Header)
	}
	h.expect(h.post(myPath, h.secret, batch, guesser), 429, fault.RateLimited)
	if h.keys.calls() != asked {
		t.Error("a key was looked up")
	}
	h.expect(malformed, 401, fault.Unauthorized)
	h.keys.mu.Lock()
	h.keys.remembered = h.keys.grants
	h.keys.mu.Unlock()
	h.expect(h.post(myPath, h.secret, batch, guesser), 202, "")
	h.expect(h.post(myPath, h.secret, batch, "X-Forwarded-For: 203.0.113.8"), 202, "")
	h.expect(h.post(myPath, "", batch, guesser), 401, fault.Unauthorized) // no key is not a wrong key
	if n := gather(t, h, "storefront_edge_http_guesses_refused_total"); n != 2 {
		t.Errorf("%v counted", n)
	}
}

// While the server drains, every answer closes its connection.
func TestStartDraining(t *testing.T) {
	t.Parallel()
	h := start(t)
	request := h.post(myPath, h.secret, batch)
	if r, closed := h.one(request); r.Close || closed {
		t.Error("the connection was closed in normal running")
	}
	h.server.StartDraining()
	for _, request := range []string{request, h.post(myPath, "", batch),
		"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"} {
		if r, closed := h.one(request); !r.Close || !closed {
			t.Errorf("%.20s: %d, Connection: close is %t, closed %t", request, r.StatusCode, r.Close, closed)
		}
	}
}
