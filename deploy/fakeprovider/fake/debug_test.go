package fake

import (
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/hooks"
)

func TestDebugProducts(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{Tiendanube: "name", Shopify: "title", WooCommerce: "name"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newHarness(t)
			for _, at := range []string{"/" + name + "/debug/products/", "/debug/products/"} {
				query := "?provider=" + name
				b.must(404, "GET", at+"77"+query, "")
				shown := b.must(200, "GET", at+"1005"+query, "").body
				if again := b.must(200, "GET", at+"1005"+query, "").body; again != shown {
					t.Error("not the same product twice")
				}
				b.must(400, "PUT", at+"1005"+query, `[1]`)
				a := b.must(200, "PUT", at+"1005"+query, `{"`+first+`":"Neu","a_member":{"of":"a test"}}`)
				if !strings.Contains(a.body, `"`+first+`":"Neu"`) ||
					!strings.Contains(a.body, "2026-07-01T12:00:00") ||
					!strings.Contains(a.body, `"a_member"`) {
					t.Errorf("changed to %s", a.body)
				}
				b.must(204, "DELETE", at+"1005"+query, "")
				b.must(404, "DELETE", at+"1005"+query, "")
				b.must(404, "GET", at+"1005"+query, "")
				if a := b.must(201, "PUT", at+"1005"+query, shown); len(a.body) != len(shown) {
					t.Errorf("put back\n%s\nfor\n%s", a.body, shown)
				}
				b.must(204, "DELETE", at+"1005"+query, "")
				if a := b.must(201, "PUT", at+"1005"+query, `{}`); !strings.Contains(a.body, `"id":1005`) {
					t.Errorf("new: %s", a.body)
				}
			}
			b.must(404, "GET", "/debug/fruits?provider="+name, "")
			if a := b.must(200, "GET", "/debug/orders?provider="+name, ""); strings.Count(a.body,
				"5000") != 6 {
				t.Errorf("orders %s", a.body)
			}
		})
	}
}

func TestDebugVariantsAreLaidOver(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	a := b.must(200, "PUT", "/debug/products/1001",
		`{"variants":[{"id":100101,"price":"1.00"},{"price":"2.00"}],`+
			`"updated_at":"2025-01-01T00:00:00+0000"}`)
	for _, want := range []string{`"id":100101`, `"price":"1.00"`, `"sku":"SKU-1001-1"`, `"price":"2.00"`,
		`"id":100107`, `2025-01-01T00:00:00+0000`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s in %s", want, a.body)
		}
	}
	if strings.Contains(a.body, `"id":100102`) {
		t.Errorf("a variant that was not sent is still there: %s", a.body)
	}
	if a := b.must(200, "PUT", "/debug/products/1001", `{"variants":null}`); !strings.Contains(a.body,
		`"variants":null`) {
		t.Errorf("null is not kept: %s", a.body)
	}
	b.must(400, "PUT", "/debug/products/1001", `{"variants":[null]}`)
}

func TestDebugReachesEveryStoreThatWasSeen(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	name := func(store string) string {
		return b.must(200, "GET", "/tiendanube/v1/"+store+"/products/1001?fields=name", "",
			tiendanubeAuth()...).body
	}
	if name("1") == name("2") {
		t.Error("two stores have the same product")
	}
	b.must(200, "PUT", "/debug/products/1001?store=2", `{"name":"only two"}`)
	if name("1") == name("2") || name("2") != `{"name":"only two"}` {
		t.Error("a named store")
	}
	b.must(200, "PUT", "/debug/products/1001", `{"name":"all"}`)
	if name("1") != name("2") {
		t.Error("no store was named")
	}
	if a := b.must(200, "GET", "/debug/stores", ""); a.body != `{"stores":["1001001","1","2"]}` {
		t.Errorf("stores %s", a.body)
	}
}

func TestDebugBehaviour(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	behave := func(body string) { b.must(204, "POST", "/debug/behaviour", body) }
	get := func() answer { return b.call("GET", tiendanubeAPI+"/store", "", tiendanubeAuth()...) }
	for _, wrong := range []string{`{`, `{"app":{}}`, `{"api":{"status":99}}`, `{"api":{"answer":"cake"}}`,
		`{"api":{"times":-1}}`} {
		b.must(400, "POST", "/debug/behaviour", wrong)
	}
	behave(`{"api":{"status":429,"retry_after":3,"times":2}}`)
	for range 2 {
		if a := get(); a.status != 429 || a.header.Get("Retry-After") != "3" {
			t.Errorf("%+v", a)
		}
	}
	if a := get(); a.status != 200 {
		t.Errorf("after its times: %+v", a)
	}
	behave(`{"api":{"status":500,"every":3}}`)
	for i, want := range []int{200, 200, 500, 200, 200, 500} {
		if a := get(); a.status != want {
			t.Errorf("call %d: %d", i, a.status)
		}
	}
	behave(`{"api":{"answer":"html"}}`)
	if a := get(); a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("%+v", a)
	}
	behave(`{"api":{"answer":"redirect"}}`)
	if a := get(); a.status != 302 || a.header.Get("Location") == "" {
		t.Errorf("%+v", a)
	}
	behave(`{"api":{"answer":"huge"}}`)
	if a := get(); len(a.body) < 20<<20 {
		t.Errorf("%d bytes", len(a.body))
	}
	behave(`{"api":{"answer":"drop","hang_ms":1}}`)
	if a := get(); a.status != 0 {
		t.Errorf("%d", a.status)
	}
	b.must(204, "POST", "/debug/behaviour?provider=shopify", `{}`)
	if a := get(); a.status != 0 {
		t.Error("another provider's behaviour was changed")
	}
	behave(`{}`)
	if a := get(); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

func TestDebugStates(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	get := func(token string, status int) {
		t.Helper()
		b.must(status, "GET", tiendanubeAPI+"/store", "", "Authentication", "bearer "+token)
	}
	state := func(s string) { b.must(204, "POST", "/debug/stores", `{"store":"123","state":"`+s+`"}`) }
	b.must(400, "POST", "/debug/stores", `{"state":"lost"}`)
	get("demo-1", 200)
	state("suspended")
	get("demo-1", 402)
	state("active")
	get("demo-1", 200)
	state("uninstalled")
	get("demo-1", 401)
	get("demo-2", 200) // installed again
	get("demo-1", 401)
}

func TestDebugWebhooksRepeatForgeAndWait(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	in := newInbox(t)
	b.must(201, "POST", tiendanubeAPI+"/webhooks", `{"event":"product/updated","url":"`+in.url+`/h"}`,
		tiendanubeAuth()...)
	for _, wrong := range []string{`{}`, `{"topic":"product/updated","repeat":-1}`,
		`{"topic":"product/updated","forge":"x"}`, `{"topic":"product/updated","x":1}`} {
		b.must(400, "POST", "/debug/webhooks", wrong)
	}
	send := func(options string) {
		b.must(202, "POST", "/debug/webhooks", `{"topic":"product/updated","external_id":1001`+options+`}`)
	}
	send(`,"repeat":3`)
	send(`,"forge":true`)
	send(`,"forge":"body"`)
	send(`,"forge":"missing"`)
	send(`,"delay_ms":1`)
	honest := ""
	for _, d := range in.wait(7) {
		signature := d.header.Get("X-Linkedstore-Hmac-Sha256")
		switch {
		case signature == "":
			honest += "missing "
		case signature == hooks.Hex("test-secret", []byte(d.body)):
			honest += "honest "
		case strings.HasSuffix(d.body, "\n"):
			honest += "body "
		default:
			honest += "forged "
		}
	}
	if honest != "honest honest honest forged body missing honest " {
		t.Errorf("delivered %s", honest)
	}
}

func TestDeliveriesAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := newHarness(t, func(c *Config) { c.Retries = []time.Duration{0, time.Millisecond} })
	in := newInbox(t, 500, 503, 200, 401)
	b.must(201, "POST", tiendanubeAPI+"/webhooks", `{"event":"product/updated","url":"`+in.url+`/h"}`,
		tiendanubeAuth()...)
	if a := b.must(202, "POST", "/debug/webhooks",
		`{"topic":"product/updated","external_id":"1001"}`); !strings.Contains(a.body, `"status":500`) {
		t.Errorf("the first attempt: %s", a.body)
	}
	got := in.wait(3)
	if got[0].body != got[2].body ||
		got[0].header.Get("X-Linkedstore-Hmac-Sha256") != got[2].header.Get("X-Linkedstore-Hmac-Sha256") {
		t.Errorf("tried again with another body: %+v", got)
	}
	b.must(202, "POST", "/debug/webhooks",
		`{"topic":"product/updated","external_id":"1001","forge":true}`) // is refused, and not tried again
	b.must(202, "POST", "/debug/webhooks", `{"topic":"product/updated","external_id":"1001"}`)
	if got := in.wait(2); len(got) != 5 {
		t.Errorf("%d deliveries", len(got))
	}
}

func TestAReceiverStandsInForTheRegisteredHost(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	b := newHarness(t, func(c *Config) { c.Receiver, c.StrictURLs = in.url+"/local/", true })
	b.must(201, "POST", tiendanubeAPI+"/webhooks",
		`{"event":"product/updated","url":"https://hooks.example/tiendanube/whe_1"}`, tiendanubeAuth()...)
	b.must(202, "POST", "/debug/webhooks", `{"topic":"product/updated","external_id":"1001"}`)
	if got := in.all(); len(got) != 1 || got[0].path != "/local/tiendanube/whe_1" {
		t.Errorf("delivered %+v", got)
	}
	if a := b.must(200, "GET", "/debug/subscriptions", ""); !strings.Contains(a.body,
		`"topic":"product/updated","url":"https://hooks.example/tiendanube/whe_1"`) {
		t.Errorf("subscriptions %s", a.body)
	}
}
