package fake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/hooks"
)

const tiendanubeAPI = "/tiendanube/2025-03/123"

func tiendanubeAuth() []string { return []string{"Authentication", "bearer demo-1"} }

func TestTiendanubeAdmits(t *testing.T) {
	t.Parallel()
	f := func(name string, status int, method, path, body string, headers ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newHarness(t).must(status, method, path, body, headers...)
		})
	}
	f("old header", 200, "GET", tiendanubeAPI+"/store", "", "Authentication", "bearer demo-1")
	f("new header", 200, "GET", tiendanubeAPI+"/store", "", "Authorization", "Bearer demo-x")
	f("v1", 200, "GET", "/tiendanube/v1/9/store", "", tiendanubeAuth()...)
	f("no token", 401, "GET", tiendanubeAPI+"/store", "")
	f("foreign token", 401, "GET", tiendanubeAPI+"/store", "", "Authentication", "bearer live-1")
	f("no user agent", 400, "GET", tiendanubeAPI+"/store", "", append(tiendanubeAuth(), "User-Agent", "")...)
	f("no content type", 415, "POST", tiendanubeAPI+"/webhooks", "{}",
		append(tiendanubeAuth(), "Content-Type", "")...)
	f("unknown route", 404, "GET", tiendanubeAPI+"/nothing", "", tiendanubeAuth()...)
	f("unknown version", 404, "GET", "/tiendanube/v9/1/store", "", tiendanubeAuth()...)
	f("no such product", 404, "GET", tiendanubeAPI+"/products/99", "", tiendanubeAuth()...)
	f("a product", 200, "GET", tiendanubeAPI+"/products/1001", "", tiendanubeAuth()...)
	f("a category", 200, "GET", tiendanubeAPI+"/categories/101", "", tiendanubeAuth()...)
	f("an order", 200, "GET", tiendanubeAPI+"/orders/500001", "", tiendanubeAuth()...)
	f("page size", 422, "GET", tiendanubeAPI+"/products?per_page=201", "", tiendanubeAuth()...)
	f("behind the last page", 404, "GET", tiendanubeAPI+"/products?page=3", "", tiendanubeAuth()...)
}

func TestTiendanubePages(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	next, seen := tiendanubeAPI+"/products?per_page=25&fields=id,name", map[int]bool{}
	for next != "" {
		a := b.must(200, "GET", next, "", tiendanubeAuth()...)
		var page []map[string]json.RawMessage
		a.into(t, &page)
		for _, p := range page {
			var id int
			if err := json.Unmarshal(p["id"], &id); err != nil || len(p) != 2 || seen[id] {
				t.Fatalf("%v of %v, seen %v", err, p, seen[id])
			}
			seen[id] = true
		}
		if a.header.Get("X-Total-Count") != "60" || a.header.Get("X-Main-Language") != "es" {
			t.Errorf("headers %v", a.header)
		}
		next = ""
		for part := range strings.SplitSeq(a.header.Get("Link"), ", ") {
			if link, rel, _ := strings.Cut(part, "; "); rel == `rel="next"` {
				next = strings.Trim(link, "<>")
			}
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d products", len(seen))
	}
}

func TestTiendanubeChangedSince(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	b.must(200, "PUT", "/debug/products/1007?store=123", `{"brand":"Neu"}`)
	f := func(since string, want int) {
		a := b.call("GET", tiendanubeAPI+"/products?updated_at_min="+since, "", tiendanubeAuth()...)
		if n := strings.Count(a.body, `"canonical_url"`); n != want {
			t.Errorf("since %s: %d of %d, want %d", since, n, a.status, want)
		}
	}
	f("2026-07-01T12:00:00Z", 1)
	f("2026-07-01T09:00:00-0300", 1)
	f("2026-07-01T12:00:01Z", 0)
}

func TestTiendanubeLimits(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	for range 40 {
		b.must(200, "GET", tiendanubeAPI+"/store", "", tiendanubeAuth()...)
	}
	a := b.must(429, "GET", tiendanubeAPI+"/store", "", tiendanubeAuth()...)
	if h := a.header; h.Get("X-Rate-Limit-Limit") != "40" || h.Get("X-Rate-Limit-Remaining") != "0" ||
		h.Get("X-Rate-Limit-Reset") != "20000" {
		t.Errorf("headers %v", h)
	}
	b.must(200, "GET", "/tiendanube/v1/other/store", "", tiendanubeAuth()...) // stores do not slow each other
	b.pass(time.Second)
	a = b.must(200, "GET", tiendanubeAPI+"/store", "", tiendanubeAuth()...)
	if a.header.Get("X-Rate-Limit-Remaining") != "1" {
		t.Errorf("headers %v", a.header)
	}
	generous := newHarness(t, func(c *Config) { c.Unthrottled = true })
	for range 100 {
		generous.must(200, "GET", tiendanubeAPI+"/store", "", tiendanubeAuth()...)
	}
}

func TestTiendanubeTraps(t *testing.T) {
	t.Parallel()
	b := newHarness(t, func(c *Config) { c.Products, c.Orders = 100, 4; c.Unthrottled = true })
	get := func(path string) string {
		return b.must(200, "GET", tiendanubeAPI+path, "",
			tiendanubeAuth()...).body
	}
	f := func(path, want string) {
		if got := get(path); !strings.Contains(got, want) {
			t.Errorf("%s has no %s: %.200s", path, want, got)
		}
	}
	f("/products/1067", `"price":null,"promotional_price":null`) // 97 × 11
	f("/products/1001", `+0000`)
	f("/products/1002", `-03:00`)
	f("/products/1010", `"stock_management":false,"stock":null`)
	f("/products/1012", `"inventory_levels":[`)
	f("/products/1050", `"published":false`)
	f("/products/1014", `"brand":null`)
	f("/products/1001", `"name":{"es":"`)
	f("/orders/500001", `"timezone_type":3`)
	if number, text := get("/orders/500001"),
		get("/orders/500002"); strings.Contains(number, `"quantity":"`) ||
		!strings.Contains(text, `"quantity":"`) {
		t.Error("quantities are text in every second order")
	}
}

func TestTiendanubeWebhooks(t *testing.T) {
	t.Parallel()
	b := newHarness(t, func(c *Config) { c.StrictURLs = true })
	auth := tiendanubeAuth()
	a := b.must(422, "POST", tiendanubeAPI+"/webhooks",
		`{"event":"product/eaten","url":"http://localhost/x"}`, auth...)
	if !strings.Contains(a.body, `"event":["`) || !strings.Contains(a.body, `"url":["`) {
		t.Errorf("faults %s", a.body)
	}
	b.must(422, "POST", tiendanubeAPI+"/webhooks", `{"event":"store/redact","url":"https://hooks.example/a"}`,
		auth...)
	b.must(422, "POST", tiendanubeAPI+"/webhooks",
		`{"event":"product/created","url":"https://x.tiendanube.com/a"}`, auth...)
	b.must(400, "POST", tiendanubeAPI+"/webhooks", `{`, auth...)
	b.must(404, "GET", tiendanubeAPI+"/webhooks", "", auth...)
	var h struct {
		ID    int64  `json:"id"`
		Event string `json:"event"`
	}
	b.must(201, "POST", tiendanubeAPI+"/webhooks",
		`{"event":"product/updated","url":"https://hooks.example/a"}`, auth...).into(t, &h)
	b.must(201, "POST", tiendanubeAPI+"/webhooks",
		`{"event":"product/updated","url":"https://hooks.example/a"}`, auth...) // doubles are kept
	one := fmt.Sprintf("%s/webhooks/%d", tiendanubeAPI, h.ID)
	if h.Event != "product/updated" {
		t.Errorf("made %+v", h)
	}
	for query, want := range map[string]int{"": 2, "?per_page=1": 1, fmt.Sprintf("?since_id=%d", h.ID): 1} {
		if a := b.must(200, "GET", tiendanubeAPI+"/webhooks"+query, "", auth...); strings.Count(a.body,
			`"id"`) != want {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	if a := b.must(200, "DELETE", one, "", auth...); a.body != "{}" {
		t.Errorf("deletion answered %s", a.body)
	}
	b.must(404, "DELETE", one, "", auth...)
}

func TestTiendanubeDelivers(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	in := newInbox(t)
	auth := tiendanubeAuth()
	b.must(201, "POST", tiendanubeAPI+"/webhooks",
		`{"event":"product/updated","url":"`+in.url+`/tiendanube/whe_1"}`, auth...)
	b.must(202, "POST", "/debug/webhooks", `{"topic":"product/updated","external_id":"1948209","store":123}`)
	b.must(202, "POST", "/debug/webhooks", `{"topic":"store/redact"}`)
	b.must(202, "POST", "/debug/webhooks", `{"topic":"customers/redact","external_id":"500001"}`)
	b.must(409, "POST", "/debug/webhooks", `{"topic":"product/deleted","external_id":"1"}`)
	b.must(422, "POST", "/debug/webhooks", `{"topic":"product/eaten","external_id":"1"}`)
	got := in.all()
	if len(got) != 3 {
		t.Fatalf("%d deliveries", len(got))
	}
	// The vector of the provider's signature.
	const body, signature = `{"store_id":123,"event":"product/updated","id":1948209}`,
		"29e24c14593ef6c1c87d70a8888fb590b9d841ba517b03e4acf65021dfaed1dd"
	if d := got[0]; d.body != body || d.header.Get("x-linkedstore-hmac-sha256") != signature ||
		d.path != "/tiendanube/whe_1" {
		t.Errorf("delivered %+v", d)
	}
	if got[1].body != `{"store_id":123}` || !strings.Contains(got[2].body, `"orders_to_redact":[500001]`) {
		t.Errorf("privacy: %+v", got[1:])
	}
	if hooks.Base64("test-secret", []byte(body)) != "KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d0=" {
		t.Error("the vector in base64")
	}
}
