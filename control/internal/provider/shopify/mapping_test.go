package shopify

import (
	"encoding/json"
	"strings"
	"testing"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

const full = `{"id":"gid://shopify/Product/632910392","title":"IPod Nano","descriptionHtml":"<p>x</p>",` +
	`"handle":"ipod-nano","vendor":"Apple","status":"ACTIVE","tags":["Emotive","Flash, Memory"],
 "updatedAt":"2026-02-03T04:05:06Z","onlineStoreUrl":"https://shop.example.org/products/ipod-nano",
 "variants":{"nodes":[
  {"id":"gid://shopify/ProductVariant/1","sku":"IPOD-1","price":"199.00","compareAtPrice":"249.00",` +
	`"inventoryPolicy":"CONTINUE","inventoryQuantity":-3,"availableForSale":true,` +
	`"inventoryItem":{"tracked":true},"selectedOptions":[{"name":"Color","value":"Pink"}]},
  {"id":"gid://shopify/ProductVariant/2","sku":null,"price":"199.00","compareAtPrice":"199.00",` +
	`"inventoryPolicy":"DENY","inventoryQuantity":0,"inventoryItem":{"tracked":false},` +
	`"selectedOptions":[{"name":"Title","value":"Default Title"}]},
  {"id":"gid://shopify/ProductVariant/3","price":"199.00","compareAtPrice":"20.0",` +
	`"inventoryQuantity":null,"availableForSale":false,"inventoryItem":{"tracked":true}},
  {"id":"gid://shopify/ProductVariant/4","price":"1000.00","compareAtPrice":"999.99",` +
	`"inventoryPolicy":"DENY","inventoryQuantity":5},
  {"id":"gid://shopify/ProductVariant/5","price":null,"compareAtPrice":"999.99"}]},
 "media":{"edges":[{"node":{"id":"gid://shopify/Video/9","alt":"film","mediaContentType":"VIDEO"}},` +
	`{"node":{"id":"gid://shopify/MediaImage/1","alt":"Front",` +
	`"image":{"url":"https://cdn.example.org/1.png","altText":"x"}}},` +
	`{"node":{"id":"gid://shopify/MediaImage/2",` +
	`"image":{"url":"https://cdn.example.org/2.png","altText":"Back"}}}]},
 "collections":{"nodes":[{"id":"gid://shopify/Collection/7","title":"Players","handle":"players"}]}}`

func readProduct(t *testing.T, text string, profile provider.Profile) provider.Fetched {
	t.Helper()
	f := provider.Fetched{Entity: catalog.Product}
	var p product
	if !decodeFailed(&f, []byte(text), &p) {
		p.setDocument(&f, profile)
	}
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

func TestProduct(t *testing.T) {
	t.Parallel()
	f := readProduct(t, full, provider.Profile{Language: "pt_BR", Currency: "brl"})
	got := stored(t, f)
	for _, want := range []string{
		`"external_id":"632910392","title":{"pt-BR":"IPod Nano"},"status":"active",` +
			`"source_version":"2026-02-03T04:05:06Z",` +
			`"primary_media":{"url":"https://cdn.example.org/1.png","alt":{"pt-BR":"Front"}}`,
		`"handles":{"pt-BR":"ipod-nano"},"urls":{"pt-BR":"https://shop.example.org/products/ipod-nano"},` +
			`"media":[{"url":"https://cdn.example.org/1.png","alt":{"pt-BR":"Front"}},` +
			`{"url":"https://cdn.example.org/2.png","alt":{"pt-BR":"Back"}}]`,
		`"brand":"Apple","tags":["Emotive","Flash, Memory"],"taxonomy":[`,
		`"external_id":"7","name":{"pt-BR":"Players"},"handles":{"pt-BR":"players"}}`,
		`"external_id":"1","sku":"IPOD-1","price":{"amount":"249.00","currency":"BRL"},` +
			`"promotional_price":{"amount":"199.00","currency":"BRL"},` +
			`"attributes":[{"name":{"pt-BR":"Color"},"value":{"pt-BR":"Pink"}}]}`,
		`"external_id":"2","price":{"amount":"199.00","currency":"BRL"}}`,
		`"external_id":"3","price":{"amount":"199.00","currency":"BRL"}}`,
		`"external_id":"4","price":{"amount":"1000.00","currency":"BRL"}}`, // as numbers, not as text
		`"external_id":"5"}`,
		`"sellable":"continue","quantity":-3}`, `"sellable":"deny"}`, `"sellable":"false"}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s\nin %s", want, got)
		}
	}
	for _, never := range []string{"gid:", "free_shipping", "parent_id", "Default Title", "film",
		`"quantity":0`, `"quantity":5`} {
		if strings.Contains(got, never) {
			t.Errorf("%s in %s", never, got)
		}
	}
}

func TestStatusAndForms(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]catalog.Status{"ACTIVE": catalog.Active, "active": catalog.Active,
		"DRAFT": catalog.Draft, "ARCHIVED": catalog.Hidden, "UNLISTED": catalog.Hidden, "": ""} {
		if got := status(word); got != want {
			t.Errorf("%q: %q", word, got)
		}
	}
	f := readProduct(t, `{"id":"gid://shopify/Product/1?x=1","title":"","status":"DRAFT","tags":"a, b",`+
		`"variants":{"nodes":[{"id":"gid://shopify/ProductVariant/1"}]}}`, provider.Profile{})
	if a := f.Document.(*catalog.CatalogAggregate); f.ExternalID != "1" ||
		strings.Join(a.Item.Tags, "|") != "a|b" || a.Item.Title["und"] != "" || len(a.Item.Title) != 1 {
		t.Errorf("forms: %+v", a.Item)
	}
	for global, want := range map[string]string{"gid://shopify/Product/1": "1", "1": "1",
		"gid://shopify/Product/x": "", "gid://shopify/Product/": "", "gid://other/Product/1": "", "": "",
		"gid://shopify/Product/1/2": ""} {
		if got, _ := parseGID(global); got != want {
			t.Errorf("%q: %q", global, got)
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	const v = `"variants":{"nodes":[{"id":"gid://shopify/ProductVariant/1"}]}`
	for _, c := range []struct{ text, want string }{
		{`{"id":"gid://shopify/Product/1","status":"ACTIVE",` + v + `}`, "missing at /item/title"},
		{`{"id":"gid://shopify/Product/1","title":"x",` + v + `}`, "missing at /item/status"},
		{`{"id":"gid://shopify/Product/1","title":"x","status":"ACTIVE"}`, "too_few at /variants"},
		{`{"id":"gid://shopify/Product/1","title":"x","status":"ACTIVE","variants":[]}`,
			"wrong_type at /variants"},
		{`{"id":"other","title":"x","status":"ACTIVE",` + v + `}`, "invalid_external_id"},
		{`{"id":"gid://shopify/Product/1","title":"x","status":"ACTIVE",` +
			`"variants":{"nodes":[{"id":"gid://shopify/X/1","price":"x"}]}}`, "invalid_amount"},
		{`{"id":"gid://shopify/Product/1","title":"x","status":"ACTIVE","tags":{"secret":1},` + v + `}`,
			"wrong_type"},
	} {
		text, want := c.text, c.want
		f := readProduct(t, text, provider.Profile{Currency: "USD"})
		if f.Malformed == nil || !strings.Contains(f.Malformed.Reason, want) ||
			strings.Contains(f.Malformed.Reason, "secret") || f.Document != nil {
			t.Errorf("%s: %v, want %s", text, f.Malformed, want)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	const text = `{"id":"gid://shopify/Order/5","name":"#1001","createdAt":"2026-01-02T03:04:05Z",` +
		`"updatedAt":"2026-01-03T00:00:00Z","cancelledAt":"2026-01-04T00:00:00Z","closed":true,` +
		`"currencyCode":"USD",
 "displayFinancialStatus":"REFUNDED","totalPriceSet":{"shopMoney":{"amount":"30.0","currencyCode":"USD"}},` +
		`"email":"","phone":null,"customer":{"id":"gid://shopify/Customer/3","displayName":"Ann",` +
		`"email":"a@x.example","phone":"+1"},
 "lineItems":{"nodes":[{"quantity":3,"product":{"id":"gid://shopify/Product/7"},` +
		`"variant":{"id":"gid://shopify/ProductVariant/8"},` +
		`"originalUnitPriceSet":{"shopMoney":{"amount":"10.0","currencyCode":"USD"}}},
 {"quantity":1,"product":null,"variant":null,"originalUnitPriceSet":{"shopMoney":{"amount":"1",` +
		`"currencyCode":"USD"}}}]}}`
	f := provider.Fetched{Entity: catalog.Order}
	var o order
	if decodeFailed(&f, []byte(text), &o) {
		t.Fatal(f.Malformed)
	}
	o.setDocument(&f, provider.Profile{})
	got := stored(t, f)
	for _, want := range []string{`"number":"#1001","status":"cancelled","payment_status":"refunded",` +
		`"currency":"USD","total":{"amount":"30.0","currency":"USD"}`, `"item_external_id":"7"`,
		`"variant_external_id":"8","quantity":3`,
		`"buyer":{"email":"a@x.example","id":"3","name":"Ann","phone":"+1"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s\nin %s", want, got)
		}
	}
	if strings.Count(got, "unit_price") != 1 {
		t.Errorf("a position of no product: %s", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(full)
	f.Add(`{"id":"gid://shopify/Order/5","name":1,"customer":[],` +
		`"lineItems":{"edges":[{"node":{"quantity":"1"}}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		got := readProduct(t, text, provider.Profile{Language: "en", Currency: "USD"})
		if (got.Document == nil) == (got.Malformed == nil) {
			t.Fatalf("%+v", got)
		}
		var o order
		of := provider.Fetched{Entity: catalog.Order}
		if !decodeFailed(&of, []byte(text), &o) {
			o.setDocument(&of, provider.Profile{})
		}
		if (of.Document == nil) == (of.Malformed == nil) {
			t.Fatalf("%+v", of)
		}
	})
}

// FuzzSplit reads files of any bytes in chunks of any size: the line of each parent comes exactly once, in
// order.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("{\"id\":\"gid://shopify/Product/1\"}\n{\"id\":\"gid://shopify/ProductVariant/2\","+
		"\"__parentId\":\"gid://shopify/Product/1\"}\n\n{\"id\":\"gid://shopify/Product/3\"}"), uint8(50))
	f.Add([]byte("{\"id\":\"a\"}\r\n{\"__parentId\":\"gid://shopify/Product/9\"}\n"), uint8(3))
	f.Fuzz(func(t *testing.T, file []byte, size uint8) {
		whole, orphans, used := splitEntities(file, true)
		if used != len(file) && len(whole) < maxChunkEntities && len(orphans) < maxOrphans {
			t.Fatalf("%d of %d bytes used", used, len(file))
		}
		var pieces []entityLines
		lost := make(map[string]bool)
		for offset, length := 0, int(size)+1; offset < len(file); {
			end := offset+length >= len(file)
			groups, more, n := splitEntities(file[offset:min(offset+length, len(file))], end)
			if n == 0 && !end {
				length *= 2
				continue
			}
			pieces = append(pieces, groups...)
			for _, id := range more {
				lost[id] = true
			}
			offset, length = offset+n, int(size)+1
		}
		a, b := "", ""
		for _, g := range whole {
			a += string(payload.JoinLines(g...)) + "|"
		}
		for _, g := range pieces {
			b += string(payload.JoinLines(g...)) + "|"
		}
		if a != b || len(orphans) > len(lost) {
			t.Fatalf("whole %q, in pieces %q; %v, %v", a, b, orphans, lost)
		}
	})
}

var _ provider.Adapter = (*Adapter)(nil)
