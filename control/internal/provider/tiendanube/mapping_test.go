package tiendanube

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/providertest"
	"storefront.internal/shared/catalog"
)

// full is a product with every trap of the provider's documents.
const full = `{"id": "1948209", "name": {"es": "Remera", "pt": "Camiseta", "en": null}, "description": ` +
	`{"es": "<p>Algod\u00f3n</p>"}, "handle": {"es": "remera"},
 "attributes": [{"es": "Color", "pt": "Cor"}, {"es": "Talle"}], "tags": "verano, algod\u00f3n ,,verano", ` +
	`"brand": null, "published": true, "free_shipping": true,
 "created_at": "2026-01-02T03:04:05-0300", "updated_at": "2026-02-03T04:05:06+0000",
 "categories": [{"id": 11, "name": {"es": "Remeras"}, "handle": [], "parent": "10", "subcategories": [12]}` +
	`, {"id": 10, "name": {"es": "Ropa"}, "parent": 0}, 99],
 "images": [{"id": 2, "src": "//cdn.example.org/b.jpg", "position": "2"}, {"id": 1, "src": ` +
	`"https://cdn.example.org/a b.jpg", "position": 1, "alt": {"es": "Frente"}},
            {"id": 3, "src": "javascript:alert(1)", "position": 3}],
 "variants": [
  {"id": 1, "price": "1500.00", "promotional_price": "1200.00", "stock_management": true, "stock": "7", ` +
	`"sku": "A-1", "values": [{"es": "Rojo", "pt": "Vermelho"}, {"es": "M"}]},
  {"id": "2", "price": null, "promotional_price": null, "stock_management": false, "stock": 12, "sku": ` +
	`null, "values": [{"es": "Azul"}]},
  {"id": 3, "price": 10, "stock_management": true, "stock": null, "inventory_levels": [{"location_id": ` +
	`"x", "stock": 2}, {"location_id": "y", "stock": "3"}]},
  {"id": 4, "price": "0.00", "stock_management": true, "stock": null},
  {"id": 5, "price": "1", "stock_management": true, "stock": 9, "inventory_levels": [{"stock": null}, ` +
	`{"stock": 1}]}]}`

func readProduct(t *testing.T, text string) *catalog.CatalogAggregate {
	t.Helper()
	f := read(catalog.Product, []byte(text), "es", "ARS")
	if f.Malformed != nil {
		t.Fatal(f.Malformed)
	}
	return f.Document.(*catalog.CatalogAggregate)
}

func TestProduct(t *testing.T) {
	t.Parallel()
	f := read(catalog.Product, []byte(full), "es", "ARS")
	if f.Malformed != nil {
		t.Fatal(f.Malformed)
	}
	if string(f.Raw) != full || f.ExternalID != "1948209" ||
		!f.SourceUpdatedAt.Equal(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)) {
		t.Errorf("fetched: %s %v", f.ExternalID, f.SourceUpdatedAt)
	}
	got := string(catalog.Complete(f.Document,
		catalog.Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: "1948209", Revision: 1}))
	for _, want := range []string{
		`"title":{"es":"Remera","pt":"Camiseta"},"status":"active",` +
			`"source_version":"2026-02-03T04:05:06Z",` +
			`"primary_media":{"url":"https://cdn.example.org/a%20b.jpg","alt":{"es":"Frente"}}`,
		`"media":[{"url":"https://cdn.example.org/a%20b.jpg","alt":{"es":"Frente"}},` +
			`{"url":"https://cdn.example.org/b.jpg"}]`,
		`"tags":["verano","algodón"],"free_shipping":true`,
		`"external_id":"1","sku":"A-1","price":{"amount":"1500.00","currency":"ARS"},` +
			`"promotional_price":{"amount":"1200.00","currency":"ARS"},` +
			`"attributes":[{"name":{"es":"Color","pt":"Cor"},"value":{"es":"Rojo","pt":"Vermelho"}},` +
			`{"name":{"es":"Talle"},"value":{"es":"M"}}]`,
		`"external_id":"2","attributes":[{"name":{"es":"Color","pt":"Cor"},"value":{"es":"Azul"}}]}`,
		`"external_id":"3","price":{"amount":"10","currency":"ARS"}}`,
		`"external_id":"4","price":{"amount":"0.00","currency":"ARS"}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s\nin %s", want, got)
		}
	}
	for _, never := range []string{`"brand"`, `"urls"`, "javascript", `"en"`, "as_of"} {
		if strings.Contains(got, never) {
			t.Errorf("%s in %s", never, got)
		}
	}
	a := f.Document.(*catalog.CatalogAggregate)
	if len(a.Item.Taxonomy) != 3 || a.Item.Taxonomy[0].ParentExternalID != "10" ||
		a.Item.Taxonomy[1].ParentExternalID != "" || a.Item.Taxonomy[2].ExternalID != "99" {
		t.Errorf("taxonomy: %+v", a.Item.Taxonomy)
	}
	for i, want := range []int64{7, -1, 5, -1, -1} { // -1: unknown, which is not 0
		switch q := a.Availability[i].Quantity; {
		case q == nil && want != -1, q != nil && *q != want:
			t.Errorf("quantity of variant %d: %v, want %d", i+1, q, want)
		}
		if a.Availability[i].Sellable != "published" {
			t.Errorf("sellable: %q", a.Availability[i].Sellable)
		}
	}
}

func TestProductVariations(t *testing.T) {
	t.Parallel()
	const rest = `"variants":[{"id":1}]}`
	hidden := readProduct(t, `{"id":1,"name":{"es":"x"},"published":false,`+rest)
	if hidden.Item.Status != catalog.Hidden || hidden.Availability[0].Sellable != "unpublished" {
		t.Errorf("unpublished: %+v", hidden.Item)
	}
	empty := readProduct(t,
		`{"id":1,"name":{"es_AR":"x"},"description":[],"handle":{},"published":true,"tags":"",`+
			`"categories":[],"images":[],`+rest)
	if empty.Item.Title["es-AR"] != "x" || empty.Item.Description != nil || empty.Item.Tags == nil ||
		empty.Item.Taxonomy == nil || empty.Item.Media == nil || empty.Item.PrimaryMedia != nil {
		t.Errorf("empty arrays: %+v", empty.Item)
	}
	plain := readProduct(t, `{"id":1,"name":"x","published":1,`+rest)
	if plain.Item.Title["es"] != "x" || plain.Item.Tags != nil || plain.Item.Taxonomy != nil {
		t.Errorf("a text in one language: %+v", plain.Item)
	}
	undetermined := read(catalog.Product, []byte(`{"id":1,"name":"x","published":true,`+rest), "", "ARS")
	if a := undetermined.Document.(*catalog.CatalogAggregate); a.Item.Title["und"] != "x" {
		t.Errorf("no language known: %+v", a.Item.Title)
	}
	poor := read(catalog.Product,
		[]byte(`{"id":1,"name":"x","published":true,"variants":[{"id":1,"price":"5"}]}`), "es", "")
	if a := poor.Document.(*catalog.CatalogAggregate); a.Variants[0].Price != nil {
		t.Errorf("no currency known: %+v", a.Variants[0])
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"id":1,"published":true,"variants":[{"id":1}]}`, "missing at /item/title"},
		{`{"id":1,"name":{},"published":true,"variants":[{"id":1}]}`, "missing at /item/title"},
		{`{"id":1,"name":{"es":"x"},"variants":[{"id":1}]}`, "missing at /item/status"},
		{`{"id":1,"name":{"es":"x"},"published":true,"variants":[]}`, "too_few at /variants"},
		{`{"id":1,"name":{"es":"x"},"published":true,"variants":[{"id":1},{"id":"1"}]}`,
			"duplicate_external_id"},
		{`{"id":1,"name":{"es":"x"},"published":true,"variants":[{"id":1,"price":"1,50"}]}`,
			"invalid_amount at /variants/0/price/amount"},
		{`{"id":1,"name":{"es":"x"},"published":true,"variants":[{"id":1,"price":"-1"}]}`, "invalid_amount"},
		{`{"id":1,"name":{"es":"x"},"published":true,"variants":[{"id":1,"price":1e400}]}`, "invalid_amount"},
		{`{"id":1,"name":{"es":"\u0000"},"published":true,"variants":[{"id":1}]}`, "nul_character"},
		{`{"id":{},"name":{"es":"x"}}`, "wrong_type"},
		{`{"id":1,"name":{"es":"x"},"variants":"secret value"}`, "wrong_type at /variants"},
		{`{"name":{"es":"x"},"published":true,"variants":[{"id":1}]}`, "invalid_external_id"},
		{`{"id":1,"name":{"es":"x"},"published":true,"variants":[{}]}`, "missing at /variants/0/external_id"},
		{`{"id":1,"name":{"es":"x"},"published":true,"variants":[{"id":"` + strings.Repeat("9", 600) + `"}]}`,
			"invalid_external_id"},
		{`[]`, "wrong_type"},
		{`"x"`, "wrong_type"},
		{`null`, "invalid_external_id"},
	} {
		text, want := c.text, c.want
		f := read(catalog.Product, []byte(text), "es", "ARS")
		if f.Malformed == nil || !strings.Contains(f.Malformed.Reason, want) || f.Document != nil ||
			string(f.Raw) != text {
			t.Errorf("%s: %v, want %s", text, f.Malformed, want)
		}
		if f.Malformed != nil && strings.Contains(f.Malformed.Reason, "secret") {
			t.Errorf("a reason quotes a value: %s", f.Malformed.Reason)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	const text = `{"id":5,"number":"101","status":"closed","payment_status":"paid","currency":"brl",` +
		`"total":"30.00","created_at":"2026-01-02T03:04:05-0300",
	 "completed_at":{"date":"2026-01-02 03:04:05.000000","timezone_type":3,"timezone":"UTC"},` +
		`"customer":{"id":1,"name":"N","email":"n@x.example","phone":null},
	 "products":[{"product_id":"7","variant_id":"8","price":"10.00","quantity":"3"},{"product_id":null,` +
		`"price":"1","quantity":1},{"product_id":9,"variant_id":null,"price":"5","quantity":1}]}`
	f := read(catalog.Order, []byte(text), "es", "ARS")
	if f.Malformed != nil {
		t.Fatal(f.Malformed)
	}
	got := string(catalog.Complete(f.Document,
		catalog.Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: "5", Revision: 1}))
	for _, want := range []string{`"number":"101","status":"closed","payment_status":"paid",` +
		`"currency":"BRL","total":{"amount":"30.00","currency":"BRL"}`,
		`"item_external_id":"7"`,
		`"variant_external_id":"8","quantity":3,"unit_price":{"amount":"10.00","currency":"BRL"}`,
		`"item_external_id":"9","quantity":1`,
		`"placed_at":"2026-01-02T06:04:05Z","buyer":{"email":"n@x.example","id":"1","name":"N"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s\nin %s", want, got)
		}
	}
	for _, broken := range []string{`{"id":5,"status":"open","currency":"ARS","total":"1",` +
		`"created_at":"yesterday","products":[]}`,
		`{"id":5,"status":"open","currency":"ARS","total":"1","created_at":"2026-01-02T03:04:05Z",` +
			`"products":[{"product_id":1,"price":"1","quantity":null}]}`} {
		if f := read(catalog.Order, []byte(broken), "es", "ARS"); f.Malformed == nil {
			t.Errorf("%s is an order", broken)
		}
	}
	none := read(catalog.Order,
		[]byte(`{"id":5,"status":"open","currency":"ARS","total":"1","created_at":"2026-01-02T03:04:05Z",`+
			`"products":[],"customer":[]}`), "es", "ARS")
	if none.Malformed != nil || none.Document.(*catalog.OrderDocument).Buyer != nil {
		t.Errorf("no customer: %v", none.Malformed)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("product", full)
	f.Add("category", `{"id":1,"name":{"es":"x"},"parent":null}`)
	f.Add("order", `{"id":5,"status":"open","currency":"ARS","total":"1",`+
		`"created_at":"2026-01-02T03:04:05Z","products":[{"product_id":1,"price":"1","quantity":1}]}`)
	f.Add("product", `{"id":1,"name":{"es":"\ud800"},"published":true,"variants":[{"id":1,`+
		`"price":1e99999999}]}`)
	f.Fuzz(func(t *testing.T, entity, text string) {
		e, ok := catalog.ParseEntity(entity)
		if !ok || !json.Valid([]byte(text)) {
			return
		}
		got := read(e, []byte(text), "es", "ARS")
		if (got.Document == nil) == (got.Malformed == nil) || string(got.Raw) != text {
			t.Fatalf("%+v", got)
		}
		if got.Document == nil {
			return
		}
		stored := catalog.Complete(got.Document,
			catalog.Identity{ConnectionID: "con_1", StoreID: "str_1", ExternalID: got.ExternalID,
				Revision: 1})
		if _, violation := catalog.ReadDocument(e, stored); violation != nil {
			t.Fatalf("the document breaks a rule: %v", violation)
		}
	})
}

var _ provider.Adapter = (*Adapter)(nil)

// TestSharedText fetches a product whose document would have 300 MB: each variant repeats the name of an
// attribute. It is not parallel: it measures what the process allocates.
func TestSharedText(t *testing.T) {
	client := providertest.ProductionClient(t)
	subject, server := openServer(t, client)
	variants := strings.TrimRight(strings.Repeat(`{"id":1,"price":"1.00","values":["x"]},`, 3000), ",")
	server.put("products", "5", `{"id":5,"name":{"es":"x"},"published":true,"attributes":[{"es":"`+
		strings.Repeat("n", 100_000)+`"}],"variants":[`+variants+`]}`, time.Time{})
	var err error
	allocated := providertest.Allocated(func() {
		_, err = subject.Adapter.Fetch(t.Context(), subject.Shop, catalog.Product, "5")
	})
	var malformed *provider.Malformed
	if !errors.As(err, &malformed) || malformed.Reason != string(catalog.TooLarge) {
		t.Error(err)
	}
	if t.Logf("%d MiB allocated", allocated>>20); allocated > 50<<20 {
		t.Errorf("%d MiB allocated", allocated>>20)
	}
}
