package remote

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
)

func TestStatusError(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]provider.Reason{200: "", 201: "", 204: "",
		400: provider.ReasonRequestRejected, 401: provider.ReasonCredentialRefused,
		402: provider.ReasonShopSuspended, 403: provider.ReasonCredentialRefused,
		404: provider.ReasonGone, 405: provider.ReasonRequestRejected, 408: provider.ReasonServerError,
		410: provider.ReasonRequestRejected, 415: provider.ReasonRequestRejected,
		422: provider.ReasonRequestRejected,
		425: provider.ReasonServerError, 429: provider.ReasonThrottled, 500: provider.ReasonServerError,
		501: provider.ReasonServerError, 503: provider.ReasonServerError,
		599: provider.ReasonServerError} {
		if got := provider.ReasonOf(statusError(&outbound.Response{Status: status,
			Header: http.Header{}})); got != want {
			t.Errorf("%d: %q", status, got)
		}
	}
}

func TestIsJSON(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{"application/json": true, "application/json; charset=UTF-8": true,
		"Application/JSON": true, "application/problem+json": true, "text/html": false, "text/json": false,
		"": false, "json": false} {
		if got := IsJSON(&outbound.Response{Header: http.Header{"Content-Type": {kind}}}); got != want {
			t.Errorf("%q: %v", kind, got)
		}
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	if c := FormatCursor("page", 3, 200); c != "page:3:200" {
		t.Errorf("written as %q", c)
	}
	if n, ok := ParseCursor("page:3:200", "page", 2); !ok || n[0] != 3 || n[1] != 200 {
		t.Errorf("read as %v", n)
	}
	for _, c := range []provider.Cursor{"", "page", "page:3", "page:3:200:1", "page:-1:5", "page:x:5",
		"other:3:200", "page::"} {
		if _, ok := ParseCursor(c, "page", 2); ok {
			t.Errorf("%q is read", c)
		}
	}
}

// TestShopThatHangs makes calls to a shop that never answers: after some of them no more are sent, and the
// error says when to try again.
func TestShopThatHangs(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests.Add(1)
		<-end
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	client, err := outbound.New(outbound.Config{Timeout: 50 * time.Millisecond,
		AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	api := &API{HTTP: client, RateLimiter: outbound.NewRateLimiter(
		outbound.Limits{Capacity: 100, Refill: 100, MaxInFlight: 100}, time.Second)}
	call := func() error {
		_, err := api.Do(t.Context(), provider.Shop{ConnectionID: "con_1"}, 1,
			outbound.Request{Method: http.MethodGet, URL: server.URL}, nil)
		return err
	}
	for range 3 {
		if err := call(); provider.ReasonOf(err) != provider.Reason(outbound.TimedOut) {
			t.Fatalf("a call without an answer: %v", err)
		}
	}
	for range 20 {
		var e *provider.Temporary
		if err := call(); !errors.As(err, &e) || e.Reason != provider.Reason(outbound.ShopHangs) ||
			e.RetryAfter <= 0 {
			t.Fatalf("a call of a shop that hangs: %v", err)
		}
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests", n)
	}
}
