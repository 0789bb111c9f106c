package remote

import (
	"net/http"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "2.0": 2 * time.Second, "0.5": 500 * time.Millisecond, " 7 ": 7 * time.Second, "0": 0, "-5": 0, "x": 0, "NaN": 0, "Inf": 24 * time.Hour,
		"1e300": 24 * time.Hour, "99999999999999999999": 24 * time.Hour, "Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:00:00 GMT": 0, "Fri, 02 Jan 2099 03:00:00 GMT": 24 * time.Hour} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestMeaning(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]provider.Reason{200: "", 201: "", 204: "", 400: provider.ReasonRejected, 401: provider.ReasonRefused, 402: provider.ReasonPaused, 403: provider.ReasonRefused,
		404: provider.ReasonGone, 405: provider.ReasonRejected, 408: provider.ReasonServerError, 410: provider.ReasonRejected, 415: provider.ReasonRejected, 422: provider.ReasonRejected,
		425: provider.ReasonServerError, 429: provider.ReasonThrottled, 500: provider.ReasonServerError, 501: provider.ReasonServerError, 503: provider.ReasonServerError, 599: provider.ReasonServerError} {
		if got := provider.ReasonOf(Meaning(&outbound.Answer{Status: status, Header: http.Header{}})); got != want {
			t.Errorf("%d: %q", status, got)
		}
	}
}

func TestIsJSON(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{"application/json": true, "application/json; charset=UTF-8": true, "Application/JSON": true, "application/problem+json": true, "text/html": false, "text/json": false, "": false, "json": false} {
		if got := IsJSON(&outbound.Answer{Header: http.Header{"Content-Type": {kind}}}); got != want {
			t.Errorf("%q: %v", kind, got)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"3", "1e300", "-1", "NaN", "Fri, 02 Jan 2026 03:05:05 GMT"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := RetryAfter(http.Header{"Retry-After": {text}}, time.Now()); got < 0 || got > longestPause {
			t.Errorf("%q: %v", text, got)
		}
	})
}
