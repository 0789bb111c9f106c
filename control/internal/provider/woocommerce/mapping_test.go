package woocommerce

import (
	"encoding/json"
	"strings"
	"testing"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

const (
	shirt = `{"id":"12","name":"Shirt &amp; Tie","slug":"shirt",` +
		`"permalink":"https://shop.example.org/p/shirt","type":"variable","status":"publish",` +
		`"catalog_visibility":"catalog",
 "description":"<p>x</p>","sku":"","price":"","regular_price":"","sale_price":"","on_sale":true,` +
		`"manage_stock":false,"stock_quantity":null,"stock_status":"instock",
 "categories":[{"id":9,"name":"Clothes","slug":"clothes"}],"tags":[{"id":1,"name":"new, in","slug":"new"}` +
		`],"images":[{"id":1,"src":"https://shop.example.org/a.jpg","name":"a","alt":"Front"},{"id":2,` +
		`"src":"/b.jpg","alt":""}],
 "variations":[21,22,23],"date_modified":"2026-02-03T01:05:06","date_modified_gmt":"2026-02-03T04:05:06"}`
	variations = `[{"id":21,"status":"publish","sku":"S-1","price":"8.00","regular_price":"10.00",` +
		`"sale_price":"8.00","on_sale":true,"manage_stock":true,"stock_quantity":"-2",` +
		`"stock_status":"onbackorder","attributes":[{"id":1,"name":"Color","option":"Red"},{"id":2,` +
		`"name":"Size","option":""}]},
 {"id":22,"status":"private","price":"9","regular_price":"","sale_price":"7","on_sale":false,` +
		`"manage_stock":"parent","stock_quantity":50,"stock_status":"outofstock",` +
		`"attributes":[{"id":0,"slug":"pa_color","option":"Blue"}]},
 {"id":23,"status":"publish","price":"","regular_price":"","sale_price":"","on_sale":false,` +
		`"manage_stock":false,"stock_quantity":7,"stock_status":"instock","attributes":[]}]`
)

func decode(t *testing.T, span, some, currency string) provider.Fetched {
	t.Helper()
	var p product
	if err := payload.Decode([]byte(span), &p); err != nil {
		return provider.Fetched{Entity: catalog.Product, Malformed: &provider.Malformed{Reason: err.Error()}}
	}
	var all []variation
	if err := payload.Decode([]byte(some), &all); err != nil {
		t.Fatal(err)
	}
	f := provider.Fetched{Entity: catalog.Product, ExternalID: string(p.ID)}
	f.SetDocument(p.document(all, "pt_BR", currency))
	return f
}

func stored(t *testing.T, f provider.Fetched) string {
	t.Helper()
	if f.Malformed != nil {
		t.Fatal(f.Malformed)
	}
	return string(catalog.Complete(f.Document,
		catalog.Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: f.ExternalID, Revision: 1}))
}

func TestVariableProduct(t *testing.T) {
	t.Parallel()
	got := stored(t, decode(t, shirt, variations, "BRL"))
	for _, want := range []string{
		`"title":{"pt-BR":"Shirt &amp; Tie"},"status":"active","source_version":"2026-02-03T04:05:06Z",` +
			`"primary_media":{"url":"https://shop.example.org/a.jpg","alt":{"pt-BR":"Front"}}`,
		`"handles":{"pt-BR":"shirt"},"urls":{"pt-BR":"https://shop.example.org/p/shirt"},` +
			`"media":[{"url":"https://shop.example.org/a.jpg","alt":{"pt-BR":"Front"}}],"tags":["new, in"]`,
		`"external_id":"9","name":{"pt-BR":"Clothes"},"handles":{"pt-BR":"clothes"}`,
		`"external_id":"21","status":"active","sku":"S-1","price":{"amount":"10.00","currency":"BRL"},` +
			`"promotional_price":{"amount":"8.00","currency":"BRL"},` +
			`"attributes":[{"name":{"pt-BR":"Color"},"value":{"pt-BR":"Red"}}]`,
		`"external_id":"22","status":"hidden","price":{"amount":"9","currency":"BRL"},` +
			`"attributes":[{"name":{"pt-BR":"pa_color"},"value":{"pt-BR":"Blue"}}]`,
		`"external_id":"23","status":"active"}`,
		`"sellable":"onbackorder","quantity":-2}`, `"sellable":"outofstock"}`, `"sellable":"instock"}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s\nin %s", want, got)
		}
	}
	if strings.Contains(got, `"external_id":"12","`+`status":"active","price"`) ||
		strings.Contains(got, "brand") || strings.Contains(got, "free_shipping") {
		t.Errorf("too much: %s", got)
	}
}

func TestSimpleProduct(t *testing.T) {
	t.Parallel()
	one := func(members string) *catalog.CatalogAggregate {
		t.Helper()
		f := decode(t, `{"id":5,"name":"x","type":"simple","status":"publish",`+
			`"date_modified_gmt":"2026-02-03T04:05:06",`+members+`}`, `[]`, "USD")
		if f.Malformed != nil {
			t.Fatal(f.Malformed)
		}
		return f.Document.(*catalog.CatalogAggregate)
	}
	a := one(`"price":"8","regular_price":"10","sale_price":"8","on_sale":true,"manage_stock":true,` +
		`"stock_quantity":0,"stock_status":"outofstock"`)
	if v := a.Variants[0]; v.ExternalID != "5" || v.Price.Amount != "10" ||
		v.PromotionalPrice.Amount != "8" || *a.Availability[0].Quantity != 0 || a.Item.URLs != nil ||
		a.Item.Tags != nil {
		t.Errorf("simple: %+v %+v", a.Variants, a.Availability)
	}
	a = one(`"price":"10","regular_price":"10","sale_price":"8","on_sale":false,"manage_stock":true,` +
		`"stock_quantity":null`) // the sale has not begun, or is over
	if v := a.Variants[0]; v.PromotionalPrice != nil || a.Availability[0].Quantity != nil ||
		a.Availability[0].Sellable != "" {
		t.Errorf("sale of another time: %+v", v)
	}
	if a = one(`"price":"","regular_price":"","sale_price":"","on_sale":false`); a.Variants[0].Price != nil {
		t.Errorf("a price that is not said: %+v", a.Variants[0])
	}
	if a = one(`"price":12.5,"regular_price":12.5,"manage_stock":true,` +
		`"stock_quantity":2.5`); a.Variants[0].Price.Amount != "12.5" || a.Availability[0].Quantity != nil {
		t.Errorf("numbers: %+v", a.Variants[0])
	}
	for members, want := range map[string]catalog.Status{
		`"status":"publish","catalog_visibility":"hidden"`: catalog.Hidden,
		`"status":"publish","catalog_visibility":"search"`: catalog.Active,
		`"status":"private"`: catalog.Hidden, `"status":"draft"`: catalog.Draft,
		`"status":"pending"`: catalog.Draft, `"status":"trash"`: catalog.Hidden,
		`"status":"draft","catalog_visibility":"hidden"`: catalog.Draft,
	} {
		if f := decode(t, `{"id":5,"name":"",`+members+`}`, `[]`, ""); f.Malformed != nil ||
			f.Document.(*catalog.CatalogAggregate).Item.Status != want {
			t.Errorf("%s: %+v", members, f)
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"id":5,"status":"publish"}`, "missing at /item/title"},
		{`{"id":5,"name":"x"}`, "missing at /item/status"},
		{`{"name":"x","status":"publish"}`, "invalid_external_id"},
		{`{"id":5,"name":"x","status":"publish","price":"12,50"}`, "invalid_amount"},
		{`{"id":5,"name":["x"],"status":"publish"}`, "wrong_type at /name"},
		{`{"id":5,"name":"x","status":"publish","categories":[{}]}`, "missing at " +
			"/item/taxonomy/0/external_id"},
		{`{"id":5,"name":"x","status":"publish","variations":[[]]}`, "wrong_type"},
		{`{"id":5,"name":"x\u0000","status":"publish","price":"1.0"}`, "nul_character"},
	} {
		text, want := c.text, c.want
		if f := decode(t, text, `[]`, "USD"); f.Malformed == nil ||
			!strings.Contains(f.Malformed.Reason, want) {
			t.Errorf("%s: %v, want %s", text, f.Malformed, want)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	f := provider.Fetched{Entity: catalog.Order}
	read(&f, []byte(`{"id":7,"number":"A-7","status":"on-hold","currency":"usd","total":"50.00",`+
		`"date_created_gmt":"2026-01-02T03:04:05","customer_id":3,"customer_ip_address":"10.1.2.3",`+
		`"customer_user_agent":"UA",
	 "billing":{"first_name":"Ann","last_name":"Lee","email":"a@x.example","phone":""},`+
		`"line_items":[{"product_id":5,"variation_id":0,"quantity":3,"price":16.666666666666668},`+
		`{"product_id":0,"quantity":1,"price":1},{"product_id":12,"variation_id":21,`+
		`"quantity":"1","price":"8.00"}]}`), "en")
	got := stored(t, f)
	for _, want := range []string{`"number":"A-7","status":"on-hold","currency":"USD",` +
		`"total":{"amount":"50.00","currency":"USD"}`, `"amount":"16.6666666667"`,
		`"item_external_id":"5"`, `"variant_external_id":"5","quantity":3`,
		`"variant_external_id":"21","quantity":1`, `"placed_at":"2026-01-02T03:04:05Z"`,
		`"buyer":{"email":"a@x.example","id":"3","name":"Ann Lee"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s\nin %s", want, got)
		}
	}
	for _, never := range []string{"10.1.2.3", "UA", `"item_external_id":"0"`} {
		if strings.Contains(got, never) {
			t.Errorf("%s in %s", never, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(shirt, variations)
	f.Add(`{"id":5,"name":"x","status":"publish","price":1e999}`, `[{"id":null}]`)
	f.Fuzz(func(t *testing.T, text, some string) {
		if !json.Valid([]byte(text)) || !json.Valid([]byte(some)) {
			return
		}
		var all []variation
		if payload.Decode([]byte(some), &all) != nil {
			return
		}
		got := decode(t, text, some, "USD")
		if (got.Document == nil) == (got.Malformed == nil) {
			t.Fatalf("%+v", got)
		}
		for _, e := range []catalog.Entity{catalog.Category, catalog.Order} {
			f := provider.Fetched{Entity: e}
			if read(&f, []byte(text), "en"); (f.Document == nil) == (f.Malformed == nil) {
				t.Fatalf("%+v", f)
			}
		}
	})
}

var _ provider.Adapter = (*Adapter)(nil)
