package signalrules

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"storefront.internal/shared/signal"
)

func TestClient(t *testing.T) {
	f := func(client, want string) {
		t.Helper()
		out, reason := validate(t, with(signal.Click, "client", client))
		got := string(out.Signal.Client)
		if out.DiscardedClient {
			got += "discarded"
		}
		if reason != "" || got != want {
			t.Errorf("%.200s: %s got %.200s, want %.200s", client, reason, got, want)
		}
	}
	kept := func(client string) { t.Helper(); f(client, client) }
	discarded := func(client string) { t.Helper(); f(client, "discarded") }
	kept(`{"page_url":"https://shop.example/p?q=1#f","languages":["es-AR","en"],` +
		`"timezone":"America/Argentina/Buenos_Aires","viewport":{"width":390,"height":844,"pixel_ratio":3}}`)
	kept(`{ "timezone" : "UTC" }`)
	kept(`{}`)
	f(`null`, ``)
	f(`{"page_url":"http://a.example","x":{"secret":1}}`, `{"page_url":"http://a.example"}`)
	f(`{"x":"\u0000","viewport":{"y":"\ud800","height":2,"width":1},"timezone":null,"languages":[ "es" ]}`,
		`{"languages":[ "es" ],"viewport":{"width":1,"height":2}}`)
	f(`{"viewport":{"depth":24}}`, `{"viewport":{}}`)
	f(`{"x":1}`, `{}`)
	for _, v := range []string{`"x"`, `[]`, `1`, `true`} {
		discarded(v)
	}
	// length
	pad := func(n int) string {
		return `{"timezone":` + strings.Repeat(" ", n-len(`{"timezone":"UTC"}`)) + `"UTC"}`
	}
	kept(pad(4096))
	discarded(pad(4097))
	discarded(`{"viewport":{"pixel_ratio":1.` + strings.Repeat("0", 4096) + `}}`)
	discarded(`{"x":"` + strings.Repeat("x", 4096) + `"}`)
	// page_url
	for _, u := range []string{"https://a.example", "HTTP://a.example:8080/x", "https://user@a.example/",
		"https://[::1]/", "https://é.example/ü", "https://a.example/?q=\\\\|{}"} {
		kept(`{"page_url":"` + u + `"}`)
	}
	for _, u := range []string{"", "/p", "a.example", "ftp://a.example", "javascript:alert(1)",
		"https:/a.example", "https://", "https:///p", "https://?q", "https://:80/", "https://@/",
		"https://a b", "https://a\\u0000", "https://a/\\ud800", "https://a/\\n", " https://a.example"} {
		discarded(`{"page_url":"` + u + `"}`)
	}
	discarded(`{"page_url":1}`)
	kept(`{"page_url":"https://a/` + strings.Repeat("x", 2048-10) + `"}`)
	discarded(`{"page_url":"https://a/` + strings.Repeat("x", 2048-9) + `"}`)
	discarded(`{"page_url":"https://a/` + strings.Repeat("é", 1020) + `"}`)
	// languages
	kept(`{"languages":[]}`)
	kept(`{"languages":["es","e\u006e-US"]}`)
	kept(`{"languages":["es-` + strings.Repeat("abcdefg-", 3) + `abcdefgh"]}`)
	discarded(`{"languages":["es-` + strings.Repeat("abcdefg-", 4) + `a"]}`)
	kept(`{"languages":[` + strings.TrimSuffix(strings.Repeat(`"es",`, 20), ",") + `]}`)
	discarded(`{"languages":[` + strings.TrimSuffix(strings.Repeat(`"es",`, 21), ",") + `]}`)
	for _, l := range []string{`"es"`, `{}`, `1`, `[1]`, `[null]`, `[["es"]]`, `["es",{"a":1}]`, `["es_AR"]`,
		`[""]`, `["es\u0000"]`, `["es","é"]`} {
		discarded(`{"languages":` + l + `}`)
	}
	// timezone
	for _, z := range []string{"UTC", "GMT", "Europe/Kyiv", "Asia/Calcutta", "Etc/GMT+3",
		"America/Buenos_Aires"} {
		kept(`{"timezone":"` + z + `"}`)
	}
	for _, z := range []string{"", "Mars/Olympus", "../etc/passwd", "Local", "GMT+3x", "UTC\\u0000"} {
		discarded(`{"timezone":"` + z + `"}`)
	}
	discarded(`{"timezone":3}`)
	// viewport
	for _, v := range []string{`{}`, `{"width":1,"height":100000,"pixel_ratio":0.01}`, `{"pixel_ratio":16}`,
		`{"pixel_ratio":1.5e0}`, `{"pixel_ratio":16.0}`} {
		kept(`{"viewport":` + v + `}`)
	}
	for _, v := range []string{`1`, `[]`, `{"width":0}`, `{"width":100001}`, `{"height":1.5}`,
		`{"height":1e2}`, `{"height":"1"}`, `{"pixel_ratio":0}`, `{"pixel_ratio":-1}`,
		`{"pixel_ratio":16.01}`, `{"pixel_ratio":"2"}`, `{"pixel_ratio":1e999999}`,
		`{"pixel_ratio":1e-999999}`} {
		discarded(`{"viewport":` + v + `}`)
	}
}

// FuzzVisitor: a visitor is kept as sent when both ids are well-formed, and discarded otherwise.
func FuzzVisitor(f *testing.F) {
	for _, id := range []string{"vis_a", "vis_5491112345678", "vis_1234567", "vis_123456", "vis_", "ses_a",
		"vis_a@b", "vis_%40", "vis_" + strings.Repeat("a", 65), "VIS_a", "\x00"} {
		f.Add(id, "ses_"+id)
	}
	wellFormed := regexp.MustCompile(`^(vis|ses)_[A-Za-z0-9_-]{1,64}$`)
	telephone := regexp.MustCompile(`^[a-z]+_[0-9]{7,15}$`)
	validator := NewShopperValidator()
	f.Fuzz(func(t *testing.T, visitor, session string) {
		body, err := json.Marshal(map[string]string{"visitor_id": visitor, "session_id": session})
		if err != nil {
			return // invalid UTF-8
		}
		got := validator.Validate(body, nil)
		good := func(s, prefix string) bool {
			return strings.HasPrefix(s, prefix) && wellFormed.MatchString(s) && !telephone.MatchString(s)
		}
		switch want := good(visitor, "vis_") && good(session, "ses_"); {
		case want != (got.Visitor != nil), want == got.DiscardedVisitor:
			t.Fatalf("%s: kept %t, want %t", body, got.Visitor != nil, want)
		case want && (string(got.Visitor.VisitorID) != visitor || string(got.Visitor.SessionID) != session):
			t.Fatalf("%s became %+v", body, got.Visitor)
		}
	})
}
