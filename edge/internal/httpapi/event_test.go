package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
)

func TestRequestID(t *testing.T) {
	t.Parallel()
	h := start(t)
	for sent, kept := range map[string]bool{"abc-1._Z": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "a b": false, "": false, "é": false} {
		r := h.expect("GET /nothing HTTP/1.1\r\nHost: x\r\nX-Request-Id: "+sent+"\r\n\r\n", 404,
			fault.NotFound)
		got := r.Header.Get("X-Request-Id")
		if (got == sent) != kept || got == "" || r.problem(t).RequestID != got {
			t.Errorf("sent %q, got %q", sent, got)
		}
		if !strings.Contains(h.log.String(), `"request_id":"`+got+`"`) {
			t.Errorf("%q is not in the log", got)
		}
	}
}

func TestEventHoldsNoData(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.expect(h.post(myPath+"?secret=canary-query", h.secret, `{"canary-body":1}`, "User-Agent: canary-agent",
		"X-Forwarded-For: 203.0.113.77", "Referer: canary-referer",
		"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), 202, "")
	var event map[string]any
	if err := json.Unmarshal([]byte(h.log.String()), &event); err != nil {
		t.Fatalf("not one event: %v\n%s", err, h.log.String())
	}
	for name, want := range map[string]any{"operation": "recordStorefrontSignals", "status": 202.,
		"connection_id": "con_mine", "api_key_id": "key_a",
		"trace_id": "0af7651916cd43dd8448eb211c80319c", "bytes_in": 17.} {
		if event[name] != want {
			t.Errorf("%s: %v, want %v", name, event[name], want)
		}
	}
	if s := h.log.String(); strings.Contains(s, "canary") || strings.Contains(s, "203.0.113.77") ||
		strings.Contains(s, "127.0.0.1") {
		t.Errorf("data in the log: %s", s)
	}
}

func TestEventsAreSampled(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.LogSample = 10 })
	for range 40 {
		h.expect("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200, "")
	}
	if n := strings.Count(h.log.String(), "\n"); n != 4 {
		t.Errorf("%d events of 40 requests, want 4", n)
	}
	h.signals.do = func(context.Context, intake.Request) ([]signal.Result, error) {
		return nil,
			fmt.Errorf("x")
	}
	before := h.log.String()
	h.expect(h.post(myPath, h.secret, batch), 500, fault.InternalError)
	if n := strings.Count(strings.TrimPrefix(h.log.String(), before), `"status":500`); n != 1 {
		t.Errorf("%d events of a failure", n)
	}
}

// Of requests that fail in the same way some are logged each second, however few of the successful ones are,
// and the next event says how many were not.
func TestFailuresAreThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newEventLog(0)
		shed := failure{"recordStorefrontSignals", 503, fault.ServiceUnavailable}
		lost := failure{"recordStorefrontSignals", 503, fault.SignalsUnavailable}
		malformed := failure{"recordStorefrontSignals", 400, fault.InvalidRequest}
		count := func(f failure, n int) (logged, skipped int) {
			for range n {
				if s, ok := l.allow(f); ok {
					logged, skipped = logged+1, skipped+s
				}
			}
			return logged, skipped
		}
		expect := func(f failure, n, wantLogged, wantSkipped int) {
			t.Helper()
			if logged, skipped := count(f, n); logged != wantLogged || skipped != wantSkipped {
				t.Errorf("%+v: %d logged, %d said to be left out, want %d and %d", f, logged, skipped,
					wantLogged, wantSkipped)
			}
		}
		for range 3 {
			expect(failure{"recordStorefrontSignals", 202, ""}, 1000, 0, 0)
		}
		expect(shed, 1000, 1, 0)
		expect(lost, 1000, 1, 0)
		expect(malformed, 10, 10, 0)
		expect(malformed, 90, 0, 0)
		time.Sleep(time.Second)
		expect(shed, 1, 1, 999)
		expect(malformed, 1, 1, 90)
	})
}
