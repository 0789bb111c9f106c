package intake

import (
	"strings"
	"testing"

	"storefront.internal/shared/signal"
)

func TestClient(t *testing.T) {
	f := func(client, want string) {
		t.Helper()
		out, reason := judgeElement(t, with(signal.Click, "client", client))
		got := string(out.signal.Client)
		if out.discarded.client {
			got += "discarded"
		}
		if reason != "" || got != want {
			t.Errorf("%.200s: %s got %.200s, want %.200s", client, reason, got, want)
		}
	}
	same := func(client string) { t.Helper(); f(client, client) }
	not := func(client string) { t.Helper(); f(client, "discarded") }
	same(`{"page_url":"https://shop.example/p?q=1#f","languages":["es-AR","en"],"timezone":"America/Argentina/Buenos_Aires","viewport":{"width":390,"height":844,"pixel_ratio":3}}`)
	same(`{ "timezone" : "UTC" }`)
	same(`{}`)
	f(`null`, ``)
	f(`{"page_url":"http://a.example","x":{"secret":1}}`, `{"page_url":"http://a.example"}`)
	f(`{"x":"\u0000","viewport":{"y":"\ud800","height":2,"width":1},"timezone":null,"languages":[ "es" ]}`, `{"languages":[ "es" ],"viewport":{"width":1,"height":2}}`)
	f(`{"viewport":{"depth":24}}`, `{"viewport":{}}`)
	f(`{"x":1}`, `{}`)
	for _, v := range []string{`"x"`, `[]`, `1`, `true`} {
		not(v)
	}
	// page_url
	for _, u := range []string{"https://a.example", "HTTP://a.example:8080/x", "https://user@a.example/", "https://[::1]/", "https://é.example/ü", "https://a.example/?q=\\\\|{}"} {
		same(`{"page_url":"` + u + `"}`)
	}
	for _, u := range []string{"", "/p", "a.example", "ftp://a.example", "javascript:alert(1)", "https:/a.example", "https://", "https:///p", "https://?q", "https://:80/", "https://@/", "https://a b", "https://a\\u0000", "https://a/\\ud800", "https://a/\\n", " https://a.example"} {
		not(`{"page_url":"` + u + `"}`)
	}
	not(`{"page_url":1}`)
	same(`{"page_url":"https://a/` + strings.Repeat("x", 2048-10) + `"}`)
	not(`{"page_url":"https://a/` + strings.Repeat("x", 2048-9) + `"}`)
	not(`{"page_url":"https://a/` + strings.Repeat("é", 1020) + `"}`)
	// languages
	same(`{"languages":[]}`)
	same(`{"languages":["es","e\u006e-US"]}`)
	same(`{"languages":[` + strings.TrimSuffix(strings.Repeat(`"es",`, 20), ",") + `]}`)
	not(`{"languages":[` + strings.TrimSuffix(strings.Repeat(`"es",`, 21), ",") + `]}`)
	for _, l := range []string{`"es"`, `{}`, `1`, `[1]`, `[null]`, `[["es"]]`, `["es",{"a":1}]`, `["es_AR"]`, `[""]`, `["es\u0000"]`, `["es","é"]`} {
		not(`{"languages":` + l + `}`)
	}
	// timezone
	for _, z := range []string{"UTC", "GMT", "Europe/Kyiv", "Asia/Calcutta", "Etc/GMT+3", "America/Buenos_Aires"} {
		same(`{"timezone":"` + z + `"}`)
	}
	for _, z := range []string{"", "Mars/Olympus", "../etc/passwd", "Local", "GMT+3x", "UTC\\u0000"} {
		not(`{"timezone":"` + z + `"}`)
	}
	not(`{"timezone":3}`)
	// viewport
	for _, v := range []string{`{}`, `{"width":1,"height":100000,"pixel_ratio":0.01}`, `{"pixel_ratio":16}`, `{"pixel_ratio":1.5e0}`, `{"pixel_ratio":16.0}`} {
		same(`{"viewport":` + v + `}`)
	}
	for _, v := range []string{`1`, `[]`, `{"width":0}`, `{"width":100001}`, `{"height":1.5}`, `{"height":1e2}`, `{"height":"1"}`, `{"pixel_ratio":0}`, `{"pixel_ratio":-1}`, `{"pixel_ratio":16.01}`, `{"pixel_ratio":"2"}`, `{"pixel_ratio":1e999999}`, `{"pixel_ratio":1e-999999}`} {
		not(`{"viewport":` + v + `}`)
	}
}

func TestLanguageTag(t *testing.T) {
	for _, s := range []string{"es", "ES", "spa", "es-AR", "es-419", "zh-Hans-CN", "zh-cmn-Hans", "zh-yue-HK", "sl-rozaj-biske-1994", "de-CH-1901", "de-DE-u-co-phonebk", "en-a-bbb-x-a-ccc", "en-u-attr-t-es-0-abc",
		"x-whatever", "X-a", "qaa-Qaaa-QM-x-southern", "i-klingon", "en-GB-oed", "sgn-BE-FR", "hy-Latn-IT-arevela", "abcde", "abcdefgh", "art-lojban", "zh-min-nan", "ca-valencia"} {
		if !languageTag(s) {
			t.Errorf("%s is well-formed", s)
		}
	}
	for _, s := range []string{"", "e", "-", "es-", "-es", "es--AR", "es_AR", "123", "abcdefghi", "es-ARG-x", "es-a", "en-x", "x", "x-", "x-123456789", "en-a-bb-a-cc", "en-p-aa-p-bb", "en-P-aa-p-bb", "de-1901-1901", "de-DE-1901-DE-1901",
		"es-AR-419", "en-u", "en-u-a", "é", "es-Ä", "*", "es;q=0.5", "a-DE", "ar-a-aaa-b-bbb-a-ccc", "zh-aaa-bbb-ccc-ddd", "abcd-efg", "en-0-aa-0-bb"} {
		if languageTag(s) {
			t.Errorf("%s is not well-formed", s)
		}
	}
}
