package httpapi

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"storefront.internal/shared/tracing"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tc := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no header", "203.0.113.1", nil, "203.0.113.1"},
		{"header of an untrusted peer", "203.0.113.1", []string{"198.51.100.1"}, "203.0.113.1"},
		{"one proxy", "10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"forged addresses", "10.0.0.1", []string{"1.1.1.1, 2.2.2.2, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.0.0.1", []string{"1.1.1.1, 198.51.100.1 , 10.0.0.2"}, "198.51.100.1"},
		{"two headers", "10.0.0.1", []string{"1.1.1.1, 198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		{"proxies only", "10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"no address", "10.0.0.1", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		{"empty", "10.0.0.1", []string{""}, "10.0.0.1"},
		{"a port", "10.0.0.1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"IPv6 in brackets", "10.0.0.1", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		{"IPv6 in brackets, no port", "fd00::1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"mapped", "10.0.0.1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"mapped proxy", "10.0.0.1", []string{"198.51.100.1, ::ffff:10.0.0.2"}, "198.51.100.1"},
		{"zone", "10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
	} {
		var forwarded [][]byte
		for _, f := range tc.forwarded {
			forwarded = append(forwarded, []byte(f))
		}
		if got := clientAddress(netip.MustParseAddr(tc.peer), forwarded, trusted); got.String() != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestAuditValue(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"plain": "plain", "": "", "a\xff\xfeb": "a\ufffdb",
		"a\x00b": "ab", "né": "né",
		"12345678901": "1234567890", "123456789é": "123456789", "1234567\xf0\x9f\x98\x80": "1234567"} {
		if got := string(appendAuditValue(nil, []byte(in), 10)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzAuditValue(f *testing.F) {
	f.Add([]byte("Mozilla/5.0"), 5)
	f.Add([]byte("\xff\xff\xff\xff\xe2\x82"), 4)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 0 || limit > 4096 {
			return
		}
		s := string(appendAuditValue(nil, b, limit))
		if len(s) > limit || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Fatalf("%q", s)
		}
	})
}

func TestCrawler(t *testing.T) {
	t.Parallel()
	for ua, want := range map[string]bool{
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": true,
		"HeadlessChrome/120": true, "": false,
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15": false,
	} {
		if crawler([]byte(ua)) != want {
			t.Errorf("%q: %t", ua, !want)
		}
	}
}

func TestTraceparentForms(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if c, ok := tracing.ParseTraceparent(good); !ok ||
		c.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Error("a well-formed one was refused")
	}
	for _, bad := range []string{"", good + "-x", strings.ToUpper(good), "01" + good[2:],
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01"} {
		if _, ok := tracing.ParseTraceparent(bad); ok {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// Matching a path does not panic, and only the exact forms match a route.
func FuzzPath(f *testing.F) {
	f.Add("/v1/connections/con_a/storefront-signals")
	f.Add("/healthz?x")
	f.Add("http://h/healthz")
	r := newRouter(Routes())
	f.Fuzz(func(t *testing.T, uri string) {
		path, _ := splitTarget([]byte(uri))
		route, id, _ := r.match("POST", path)
		if route == nil {
			return
		}
		if want := strings.Replace(route.Path, "{connection_id}", string(id), 1); string(path) != want {
			t.Fatalf("%q is no %s", path, route.Path)
		}
	})
}

func FuzzBearer(f *testing.F) {
	f.Add([]byte("Bearer spk_x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if token, ok := bearer(b); ok && (len(token) == 0 || strings.ContainsRune(string(token), ' ')) {
			t.Fatalf("%q", token)
		}
	})
}

func TestBodylessMethodsAreKnownByTheirHeader(t *testing.T) {
	t.Parallel()
	var r fasthttp.Request
	r.Header.SetMethod("GET")
	r.SetBodyString("x")
	if checkFraming(&r, headers{}) == nil {
		t.Error("a body on GET was taken")
	}
}
