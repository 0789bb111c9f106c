package remote

import (
	"net/http"
	"testing"

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
