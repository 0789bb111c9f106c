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

// With one turn that is taken and one place in the queue, a purchase sends an impression away and is taken in the end.
func TestImpressionsAreShedFirst(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.Work.MaxInFlight, c.Work.Patience = 1, 5*time.Second })
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
	working := send(impressionBatch)
	<-entered
	impressions := send(impressionBatch)
	h.waiting(1)
	purchase := send(purchaseBatch)
	r := <-impressions // sent away: nothing else can answer it while the first one works
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("impressions: %d %v", r.StatusCode, r.Header)
	}
	h.expect(h.post(myPath, h.secret, impressionBatch), 503, fault.SignalsUnavailable)
	close(release)
	for name, answer := range map[string]chan *reply{"the working one": working, "the purchase": purchase} {
		if r := <-answer; r.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	if n := gather(t, h, "storefront_edge_http_shed_total"); n != 2 {
		t.Errorf("%v shed", n)
	}
}

// waiting waits until so many requests wait for a turn.
func (h *harness) waiting(n int) {
	h.t.Helper()
	for until := time.Now().Add(30 * time.Second); h.server.turns.State().Waiting != n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			h.t.Fatalf("%+v, want %d waiting", h.server.turns.State(), n)
		}
	}
}

// Guesses from one address are told to wait and cost no look-up. Keys in memory and other addresses go on.
func TestGuessesAreLimited(t *testing.T) {
	t.Parallel()
	at := time.Now()
	h := start(t, func(c *Config) {
		c.Failures, c.Now = ratelimit.Quota{PerSecond: 2, Burst: 3}, func() time.Time { return at }
	})
	const guesser = "X-Forwarded-For: 203.0.113.7"
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
	h.keys.mu.Lock()
	h.keys.remembered = h.keys.grants
	h.keys.mu.Unlock()
	h.expect(h.post(myPath, h.secret, batch, guesser), 202, "")
	h.expect(h.post(myPath, h.secret, batch, "X-Forwarded-For: 203.0.113.8"), 202, "")
	h.expect(h.post(myPath, "", batch, guesser), 401, fault.Unauthorized) // it presents nothing, so it guesses nothing
	if n := gather(t, h, "storefront_edge_http_guesses_refused_total"); n != 2 {
		t.Errorf("%v counted", n)
	}
}

// Before the port closes, every answer sends its client elsewhere.
func TestLeave(t *testing.T) {
	t.Parallel()
	h := start(t)
	request := h.post(myPath, h.secret, batch)
	if r, closed := h.one(request); r.Close || closed {
		t.Error("the connection was closed in normal running")
	}
	h.server.Leave()
	for _, request := range []string{request, h.post(myPath, "", batch), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"} {
		if r, closed := h.one(request); !r.Close || !closed {
			t.Errorf("%.20s: %d, Connection: close is %t, closed %t", request, r.StatusCode, r.Close, closed)
		}
	}
}
