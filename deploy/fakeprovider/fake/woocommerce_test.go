package fake

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"storefront.internal/deploy/fakeprovider/hooks"
)

const wooAPI = "/woocommerce/shop.example/wp-json/wc/v3"

func wooAuth() []string {
	return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("demo-ck:cs"))}
}

func TestWooCommerceRoutes(t *testing.T) {
	t.Parallel()
	f := func(name string, status int, path, want string, headers ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if a := newHarness(t).must(status, "GET", path, "", headers...); !strings.Contains(a.body, want) {
				t.Errorf("no %s in %.300s", want, a.body)
			}
		})
	}
	f("keys in the query", 200, wooAPI+"/products/1001?consumer_key=demo-ck&consumer_secret=cs", `"id":1001`)
	f("no key", 401, wooAPI+"/products", `"code":"woocommerce_rest_cannot_view"`)
	f("foreign key", 401, wooAPI+"/products?consumer_key=ck_1&consumer_secret=cs", `"data":{"status":401}`)
	f("unknown route", 404, wooAPI+"/pages", "rest_no_route", wooAuth()...)
	f("no such product", 404, wooAPI+"/products/77", "woocommerce_rest_product_invalid_id", wooAuth()...)
	f("no such order", 404, wooAPI+"/orders/77", "woocommerce_rest_shop_order_invalid_id", wooAuth()...)
	f("no such category", 404, wooAPI+"/products/categories/77", "woocommerce_rest_term_invalid",
		wooAuth()...)
	f("variations of no product", 404, wooAPI+"/products/77/variations",
		"woocommerce_rest_product_invalid_id", wooAuth()...)
	f("a simple product", 200, wooAPI+"/products/1005", `"type":"simple"`, wooAuth()...)
	f("a variable product", 200, wooAPI+"/products/1001",
		`"variations":[100101,100102,100103,100104,100105,100106]`, wooAuth()...)
	f("its price", 200, wooAPI+"/products/1001", `"regular_price":""`, wooAuth()...)
	f("a time without a zone", 200, wooAPI+"/products/1001", `"date_modified_gmt":"2024-01-28T00:17:00"`,
		wooAuth()...)
	f("variations", 200, wooAPI+"/products/1001/variations", `"option":"Azul"`, wooAuth()...)
	f("a category", 200, wooAPI+"/products/categories/107", `"parent":101`, wooAuth()...)
	f("an order", 200, wooAPI+"/orders/500001", `"customer_ip_address"`, wooAuth()...)
	f("fields", 200, wooAPI+"/products?_fields=id&per_page=1&orderby=id&order=asc", `[{"id":1001}]`,
		wooAuth()...)
	f("newest first", 200, wooAPI+"/products?_fields=id&per_page=1", `[{"id":1060}]`, wooAuth()...)
	f("behind the last page", 200, wooAPI+"/products?page=99", `[]`, wooAuth()...)
	f("page size", 400, wooAPI+"/products?per_page=101", "rest_invalid_param", wooAuth()...)
	f("a time that is none", 400, wooAPI+"/products?modified_after=x", "rest_invalid_param", wooAuth()...)
	f("status", 200, wooAPI+"/system_status", `"currency":"ARS"`, wooAuth()...)
	f("another name of the store", 200, "/woocommerce/https:%2F%2FShop.example/wp-json/wc/v3/orders",
		`"id":500001`, wooAuth()...)
}

func TestWooCommercePages(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	a := b.must(200, "GET", wooAPI+"/products?page=2&per_page=25", "", wooAuth()...)
	h := a.header
	if h.Get("X-WP-Total") != "60" || h.Get("X-WP-TotalPages") != "3" ||
		!strings.Contains(h.Get("Link"), "page=3") || !strings.Contains(h.Get("Link"), `rel="prev"`) {
		t.Errorf("headers %v", h)
	}
	b.must(200, "PUT", "/woocommerce/debug/products/1009", `{"name":"Neu"}`)
	for query, want := range map[string]string{
		"modified_after=2026-07-01T11:59:59&dates_are_gmt=true": `[{"id":1009}]`,
		"modified_after=2026-07-01T12:00:00&dates_are_gmt=true": `[]`,
		"modified_after=2026-07-01T08:59:59":                    `[{"id":1009}]`,
		// the shop's clock
	} {
		if a := b.must(200, "GET", wooAPI+"/products?_fields=id&"+query, "", wooAuth()...); a.body != want {
			t.Errorf("%s: %s, want %s", query, a.body, want)
		}
	}
}

func TestWooCommerceVariationsAreChangedWithTheirProduct(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	b.must(200, "PUT", "/woocommerce/debug/products/1001",
		`{"variations":[{"id":100102,"regular_price":"9.99"},{"regular_price":""}]}`)
	if a := b.must(200, "GET", wooAPI+"/products/1001", "", wooAuth()...); !strings.Contains(a.body,
		`"variations":[100102,100102]`) && !strings.Contains(a.body, `"variations":[100102,1001`) {
		t.Errorf("product %s", a.body)
	}
	a := b.must(200, "GET", wooAPI+"/products/1001/variations", "", wooAuth()...)
	if !strings.Contains(a.body, `"sku":"SKU-1001-2"`) || strings.Contains(a.body, `"id":100101`) {
		t.Errorf("variations %s", a.body)
	}
}

func TestWooCommerceWebhooks(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	in := newInbox(t)
	auth := wooAuth()
	create := func(status int, topic, url, more string) answer {
		t.Helper()
		return b.must(status, "POST", wooAPI+"/webhooks",
			`{"name":"n","topic":"`+topic+`","delivery_url":"`+url+`"`+more+`}`, auth...)
	}
	create(400, "category.updated", in.url, "") // there is no such topic
	create(400, "product.updated", "nowhere", "")
	create(400, "product.updated", in.url, `,"status":"odd"`)
	a := create(201, "product.updated", in.url+"/woocommerce/whe_1", `,"secret":"my-own"`)
	var h struct {
		ID     int64  `json:"id"`
		Status string `json:"status"`
	}
	a.into(t, &h)
	if strings.Contains(a.body, "my-own") || h.Status != "active" || a.header.Get("Location") == "" {
		t.Errorf("made %s %v", a.body, a.header)
	}
	if got := in.all(); len(got) != 1 || got[0].body != fmt.Sprintf("webhook_id=%d", h.ID) ||
		got[0].header.Get("X-Wc-Webhook-Signature") != "" {
		t.Fatalf("ping %+v", got)
	}
	b.must(202, "POST", "/woocommerce/debug/webhooks", `{"topic":"product.updated","external_id":"1003"}`)
	b.must(202, "POST", "/woocommerce/debug/webhooks", `{"topic":"product.updated","external_id":"77"}`)
	got := in.all()
	d := got[1]
	if shown := b.must(200, "GET", wooAPI+"/products/1003", "", auth...); d.body != shown.body {
		t.Errorf("delivered %s", d.body)
	}
	if d.header.Get("X-WC-Webhook-Signature") != hooks.Base64("my-own", []byte(d.body)) ||
		d.header.Get("X-WC-Webhook-Topic") != "product.updated" {
		t.Errorf("headers %v", d.header)
	}
	if got[2].body != `{"id":77}` ||
		got[2].header.Get("X-WC-Webhook-Delivery-ID") != d.header.Get("X-WC-Webhook-Delivery-ID") {
		t.Errorf("the second in a second: %+v", got[2])
	}
	one := fmt.Sprintf("%s/webhooks/%d", wooAPI, h.ID)
	b.must(501, "DELETE", one, "", auth...)
	b.must(200, "PUT", one, `{"status":"paused"}`, auth...)
	b.must(409, "POST", "/woocommerce/debug/webhooks", `{"topic":"product.updated","external_id":"1003"}`)
	if a := b.must(200, "GET", wooAPI+"/webhooks", "", auth...); !strings.Contains(a.body,
		`"status":"paused"`) {
		t.Errorf("list %s", a.body)
	}
	b.must(200, "DELETE", one+"?force=true", "", auth...)
	b.must(404, "DELETE", one+"?force=true", "", auth...)
	b.must(404, "PUT", one, `{}`, auth...)
}

func TestWooCommerceDisablesWhatFails(t *testing.T) {
	t.Parallel()
	b := newHarness(t)
	status := func() string {
		a := b.must(200, "GET", "/woocommerce/debug/subscriptions", "")
		_, rest, _ := strings.Cut(a.body, `"status":"`)
		s, _, _ := strings.Cut(rest, `"`)
		return s
	}
	strict := newInbox(t, 401) // as a receiver that wants a signature on the ping
	b.must(201, "POST", wooAPI+"/webhooks", `{"topic":"product.updated","delivery_url":"`+strict.url+`"}`,
		wooAuth()...)
	if status() != "disabled" {
		t.Errorf("after a refused ping: %s", status())
	}
	b = newHarness(t)
	in := newInbox(t, 200, 500, 500, 500, 500, 500, 302, 500, 500, 500, 500, 500, 500)
	b.must(201, "POST", wooAPI+"/webhooks", `{"topic":"product.updated","delivery_url":"`+in.url+`"}`,
		wooAuth()...)
	for i := range 12 {
		if status() != "active" {
			t.Fatalf("disabled after %d deliveries", i)
		}
		b.must(202, "POST", "/woocommerce/debug/webhooks", `{"topic":"product.updated","external_id":"1003"}`)
	}
	if status() != "disabled" || len(in.all()) != 13 {
		t.Errorf("%s after six failures in a row, %d deliveries", status(), len(in.all()))
	}
}
