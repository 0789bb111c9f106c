package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/settings"
)

func testTrouble(t *testing.T, open Open) {
	html := map[string]string{"Content-Type": "text/html; charset=utf-8"}
	for name, c := range map[string]struct {
		trouble Trouble
		want    provider.Reason
	}{
		"401":          {Trouble{Status: 401, Body: `{"error":"invalid token","code":"x"}`}, provider.ReasonRefused},
		"403":          {Trouble{Status: 403, Body: `{"error":"scope","code":"x"}`}, provider.ReasonRefused},
		"402":          {Trouble{Status: 402, Body: `{"error":"unpaid"}`}, provider.ReasonPaused},
		"400":          {Trouble{Status: 400, Body: `{"error":"bad"}`}, provider.ReasonRejected},
		"500":          {Trouble{Status: 500, Body: `{}`}, provider.ReasonServerError},
		"502 HTML":     {Trouble{Status: 502, Header: html, Body: "<html>Bad Gateway</html>"}, provider.ReasonServerError},
		"503":          {Trouble{Status: 503, Header: map[string]string{"Retry-After": "30"}, Body: ``}, provider.ReasonServerError},
		"HTML":         {Trouble{Status: 200, Header: html, Body: "<html>Maintenance</html>"}, provider.ReasonContentType},
		"no type":      {Trouble{Status: 200, Header: map[string]string{"Content-Type": ""}, Body: "{}"}, provider.ReasonContentType},
		"half JSON":    {Trouble{Status: 200, Body: `{"id": 1, "na`}, provider.ReasonInvalidJSON},
		"empty":        {Trouble{Status: 200, Body: ``}, provider.ReasonInvalidJSON},
		"truncated":    {Trouble{Truncate: true}, "truncated"},
		"redirect":     {Trouble{Redirect: "http://169.254.169.254/latest/meta-data"}, "redirect"},
		"20 MB":        {Trouble{Huge: 20 << 20}, "too_large"},
		"bomb":         {Trouble{Bomb: true}, "too_large"},
		"broken gzip":  {Trouble{Status: 200, Header: map[string]string{"Content-Encoding": "gzip"}, Body: "no gzip"}, "content_coding"},
		"other coding": {Trouble{Status: 200, Header: map[string]string{"Content-Encoding": "br"}, Body: "x"}, "content_coding"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Client(t, patience))
			s.Shop.PutProduct(shirt("1001"))
			s.Trouble(c.trouble)
			calls := map[string]func() error{
				"fetch": func() error {
					f, err := s.Adapter.Fetch(t.Context(), s.Store, catalog.Product, "1001")
					if f.Gone || f.Document != nil {
						t.Errorf("fetched %+v", f)
					}
					return err
				},
				"page": func() error {
					_, err := s.Adapter.Page(t.Context(), s.Store, catalog.Product, time.Time{}, "")
					return err
				},
				"profile":       func() error { _, err := s.Adapter.Profile(t.Context(), s.Store); return err },
				"subscriptions": func() error { _, err := s.Adapter.Subscriptions(t.Context(), s.Store); return err },
			}
			for call, do := range calls {
				err := do()
				if after, _ := provider.Retry(err); after > 0 { // the gate remembers
					continue
				}
				if got := provider.ReasonOf(err); got != c.want {
					t.Errorf("%s: %q (%v), want %q", call, got, err, c.want)
				}
				silent(t, err, c.trouble.Body)
			}
			if _, worth := provider.Retry(calls["fetch"]()); worth != (c.want != provider.ReasonRefused && c.want != provider.ReasonPaused && c.want != provider.ReasonRejected) {
				t.Errorf("worth another attempt: %v", worth)
			}
		})
	}
}

// silent fails when an error says what it must not.
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

// testThrottledStore shows that a store which has to wait says so at once, and holds no other store up.
func testThrottledStore(t *testing.T, open Open) {
	s := open(t, Client(t, patience))
	s.Shop.PutProduct(shirt("1001"))
	s.Trouble(Trouble{Status: 429, Header: map[string]string{"Retry-After": "70"}, Body: `{"error":"slow down"}`, Times: 1})
	for i := range 2 {
		start := time.Now()
		_, err := s.Adapter.Fetch(t.Context(), s.Store, catalog.Product, "1001")
		var throttled *provider.Throttled
		if !errors.As(err, &throttled) || throttled.RetryAfter < 60*time.Second || throttled.RetryAfter > 70*time.Second {
			t.Fatalf("fetch %d: %v", i, err)
		}
		if took := time.Since(start); took > patience {
			t.Errorf("fetch %d waited %v", i, took)
		}
	}
	if _, err := s.Adapter.Fetch(t.Context(), s.Other, catalog.Product, "1001"); err != nil {
		t.Errorf("the other store: %v", err)
	}
}

func testHang(t *testing.T, open Open) {
	s := open(t, Client(t, 300*time.Millisecond))
	s.Trouble(Trouble{Hang: true})
	_, err := s.Adapter.Fetch(t.Context(), s.Store, catalog.Product, "1001")
	if _, worth := provider.Retry(err); provider.ReasonOf(err) != "timeout" || !worth || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("fetch: %v", err)
	}
}

func testCancelled(t *testing.T, open Open) {
	s := open(t, Client(t, patience))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Adapter.Fetch(ctx, s.Store, catalog.Product, "1001"); !errors.Is(err, context.Canceled) {
		t.Errorf("fetch: %v", err)
	}
	printed := fmt.Sprintf("%v %+v %#v", s.Store, s.Store, s.Store)
	if strings.Contains(printed, Token) {
		t.Error("a store prints its credential")
	}
	if sub := (provider.Subscription{Secret: settings.Secret(Secret)}); strings.Contains(fmt.Sprintf("%+v", sub), Secret) {
		t.Error("a subscription prints its secret")
	}
}
