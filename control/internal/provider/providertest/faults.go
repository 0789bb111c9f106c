package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/settings"
)

func testFaults(t *testing.T, open Open) {
	html := map[string]string{"Content-Type": "text/html; charset=utf-8"}
	for name, c := range map[string]struct {
		fault Fault
		want  provider.Reason
	}{
		"401": {Fault{Status: 401, Body: `{"error":"invalid token","code":"x"}`},
			provider.ReasonCredentialRefused},
		"403": {Fault{Status: 403, Body: `{"error":"scope","code":"x"}`},
			provider.ReasonCredentialRefused},
		"402": {Fault{Status: 402, Body: `{"error":"unpaid"}`}, provider.ReasonShopSuspended},
		"400": {Fault{Status: 400, Body: `{"error":"bad"}`}, provider.ReasonRequestRejected},
		"500": {Fault{Status: 500, Body: `{}`}, provider.ReasonServerError},
		"502 HTML": {Fault{Status: 502, Header: html, Body: "<html>Bad Gateway</html>"},
			provider.ReasonServerError},
		"503": {Fault{Status: 503, Header: map[string]string{"Retry-After": "30"}, Body: ``},
			provider.ReasonServerError},
		"HTML": {Fault{Status: 200, Header: html, Body: "<html>Maintenance</html>"},
			provider.ReasonContentType},
		"no type": {Fault{Status: 200, Header: map[string]string{"Content-Type": ""}, Body: "{}"},
			provider.ReasonContentType},
		"half JSON": {Fault{Status: 200, Body: `{"id": 1, "na`}, provider.ReasonInvalidJSON},
		"empty":     {Fault{Status: 200, Body: ``}, provider.ReasonInvalidJSON},
		"truncated": {Fault{Truncate: true}, "truncated"},
		"redirect":  {Fault{Redirect: "http://169.254.169.254/latest/meta-data"}, "redirect"},
		"20 MB":     {Fault{Huge: 20 << 20}, "too_large"},
		"bomb":      {Fault{Bomb: true}, "too_large"},
		"broken gzip": {Fault{Status: 200, Header: map[string]string{"Content-Encoding": "gzip"},
			Body: "no gzip"}, "content_coding"},
		"other coding": {Fault{Status: 200, Header: map[string]string{"Content-Encoding": "br"}, Body: "x"},
			"content_coding"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Client(t, callTimeout))
			s.Data.PutProduct(shirt("1001"))
			s.SetFault(c.fault)
			calls := map[string]func() error{
				"fetch": func() error {
					f, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Product, "1001")
					if f.Gone || f.Document != nil {
						t.Errorf("fetched %+v", f)
					}
					return err
				},
				"page": func() error {
					_, err := s.Adapter.Page(t.Context(), s.Shop, catalog.Product, time.Time{}, "")
					return err
				},
				"profile": func() error {
					_,
						err := s.Adapter.Profile(t.Context(), s.Shop)
					return err
				},
				"subscriptions": func() error {
					_,
						err := s.Adapter.Subscriptions(t.Context(), s.Shop)
					return err
				},
			}
			for call, do := range calls {
				err := do()
				if after, _ := provider.RetryAfter(err); after > 0 { // the rate limiter remembers
					continue
				}
				if got := provider.ReasonOf(err); got != c.want {
					t.Errorf("%s: %q (%v), want %q", call, got, err, c.want)
				}
				silent(t, err, c.fault.Body)
			}
			final := []provider.Reason{
				provider.ReasonCredentialRefused, provider.ReasonShopSuspended,
				provider.ReasonRequestRejected,
			}
			_, retryable := provider.RetryAfter(calls["fetch"]())
			if retryable == slices.Contains(final, c.want) {
				t.Errorf("retryable: %v", retryable)
			}
		})
	}
}

// silent fails when an error contains a secret or the response.
func silent(t *testing.T, err error, body string) {
	t.Helper()
	printed := fmt.Sprintf("%v %+v %#v", err, err, err)
	user, password, _ := strings.Cut(Token, ":")
	for _, secret := range []string{Token, user, password, Secret, Buyer} {
		if strings.Contains(printed, secret) {
			t.Errorf("an error holds a secret: %s", printed)
		}
	}
	if len(body) > 4 && strings.Contains(printed, body) {
		t.Errorf("an error echoes the answer: %s", printed)
	}
}

// testThrottledShop tests that a throttled shop fails at once, and does not delay another shop.
func testThrottledShop(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	s.Data.PutProduct(shirt("1001"))
	s.SetFault(Fault{Status: 429, Header: map[string]string{"Retry-After": "70"},
		Body: `{"error":"slow down"}`, Times: 1})
	for i := range 2 {
		start := time.Now()
		_, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Product, "1001")
		var throttled *provider.Throttled
		if !errors.As(err, &throttled) || throttled.RetryAfter < 60*time.Second ||
			throttled.RetryAfter > 70*time.Second {
			t.Fatalf("fetch %d: %v", i, err)
		}
		if took := time.Since(start); took > callTimeout {
			t.Errorf("fetch %d waited %v", i, took)
		}
	}
	if _, err := s.Adapter.Fetch(t.Context(), s.OtherShop, catalog.Product, "1001"); err != nil {
		t.Errorf("the other store: %v", err)
	}
}

func testHang(t *testing.T, open Open) {
	s := open(t, Client(t, 300*time.Millisecond))
	s.SetFault(Fault{Hang: true})
	_, err := s.Adapter.Fetch(t.Context(), s.Shop, catalog.Product, "1001")
	if _, retryable := provider.RetryAfter(err); provider.ReasonOf(err) != "timeout" || !retryable ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("fetch: %v", err)
	}
}

func testCancelled(t *testing.T, open Open) {
	s := open(t, Client(t, callTimeout))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Adapter.Fetch(ctx, s.Shop, catalog.Product, "1001"); !errors.Is(err, context.Canceled) {
		t.Errorf("fetch: %v", err)
	}
	printed := fmt.Sprintf("%v %+v %#v", s.Shop, s.Shop, s.Shop)
	if strings.Contains(printed, Token) {
		t.Error("a store prints its credential")
	}
	if sub := (provider.Subscription{Secret: settings.Secret(Secret)}); strings.Contains(fmt.Sprintf("%+v",
		sub), Secret) {
		t.Error("a subscription prints its secret")
	}
}
