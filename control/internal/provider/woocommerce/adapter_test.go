package woocommerce

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/providertest"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/settings"
)

// TestVector is the published vector: 55 bytes, the secret "test-secret".
func TestVector(t *testing.T) {
	t.Parallel()
	const (
		body   = `{"store_id":123,"event":"product/updated","id":1948209}`
		base64 = "KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d0="
	)
	a, secrets := new(Adapter), []settings.Secret{"test-secret"}
	for signature, want := range map[string]bool{base64: true, strings.ToLower(base64): false,
		base64 + "\n": false, strings.TrimRight(base64, "="): false,
		strings.NewReplacer("+", "-", "/", "_").Replace(base64):            false,
		"29e24c14593ef6c1c87d70a8888fb590b9d841ba517b03e4acf65021dfaed1dd": false} {
		if a.VerifySignature(secrets, signature, []byte(body)) != want {
			t.Errorf("%q: want %v", signature, want)
		}
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{"webhook_id=12": true, "webhook_id=": false,
		"webhook_id=12&x=1": false, "webhook_id=a": false, "webhook_id=12\n": false,
		" webhook_id=12": false, "WEBHOOK_ID=1": false, "webhook_id=" + strings.Repeat("1", 30): false,
		`{"webhook_id":12}`: false, "": false} {
		if got := new(Adapter).IsPing([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hint, body string
		want       provider.WebhookEvent
	}{
		{"product.created", `{"id":5}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "5"}},
		{"product.deleted", `{"id":5}`,
			provider.WebhookEvent{Kind: provider.Deleted, Entity: catalog.Product, ExternalID: "5"}},
		{"product.restored", `{"id":5}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "5"}},
		{"product.updated", `{"id":21,"type":"variation","parent_id":12}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "12"}},
		{"product.deleted", `{"id":21,"type":"variation","parent_id":12}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "12"}},
		{" Order.Updated ", `{"id":"5"}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Order, ExternalID: "5"}},
		{"customer.updated", `{"id":5}`, provider.WebhookEvent{Kind: provider.Ignored}},
		{"coupon.deleted", `{"id":5}`, provider.WebhookEvent{Kind: provider.Ignored}},
		{"", `{"id":5}`, provider.WebhookEvent{Kind: provider.Unspecified}},
		{"", `{"id":5,"order_key":"wc_order_x"}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Order, ExternalID: "5"}},
		{"product.updated", `{}`, provider.WebhookEvent{Kind: provider.Unspecified}},
		{"product.updated", `webhook_id=3`, provider.WebhookEvent{Kind: provider.Ping}},
	} {
		got, err := new(Adapter).ParseWebhook(c.hint, []byte(c.body))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s %s: %+v, %v", c.hint, c.body, got, err)
		}
	}
}

// TestSite tests the check of the host that a merchant names.
func TestSite(t *testing.T) {
	t.Parallel()
	a := new(Adapter)
	for id, want := range map[string]string{
		"shop.example.org":            "https://shop.example.org/wp-json/wc/v3",
		"https://Shop.Example.org/":   "https://shop.example.org/wp-json/wc/v3",
		"https://example.org/my-shop": "https://example.org/my-shop/wp-json/wc/v3",
		"http://shop.example.org":     "", "shop.example.org:8080": "", "user@shop.example.org": "",
		"127.0.0.1": "", "localhost": "", "https://[::1]/": "",
		"shop.example.org/../admin": "", "shop.example.org/?x": "", "shop.example.org#": "",
		"shop.example.org//x": "", "": "", "0x7f.1": "", "metadata.google.internal": "",
	} {
		got, err := a.apiRoot(provider.Shop{ExternalStoreID: id})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
	got, err := a.apiRoot(provider.Shop{ExternalStoreID: "17",
		Profile: provider.Profile{Domain: "shop.example.org"}})
	if err != nil || got != "https://shop.example.org/wp-json/wc/v3" {
		t.Errorf("by domain: %q, %v", got, err)
	}
}

// TestVariations tests variations by fetch and by listing; Raw keeps every body as it came.
func TestVariations(t *testing.T) {
	t.Parallel()
	subject, server, _ := openServer(t, providertest.Client(t, 30*time.Second))
	const span = `{"id":12,"name":"Shirt","type":"variable","status":"publish","variations":[1]}`
	server.put("products", "12", span, time.Time{})
	for i := range 130 {
		server.variations[12] = append(server.variations[12],
			fmt.Sprintf(`{"id":%d,"regular_price":"%d"}`, 500+i, i))
	}
	single, err := subject.Adapter.Fetch(t.Context(), subject.Shop, catalog.Product, "12")
	if err != nil {
		t.Fatal(err)
	}
	page, err := subject.Adapter.Page(t.Context(), subject.Shop, catalog.Product, time.Time{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []provider.Fetched{single, page.Items[0]} {
		raw := strings.SplitN(string(f.Raw), "\n", 2)
		if len(f.Document.(*catalog.CatalogAggregate).Variants) != 130 || f.RawFormat != provider.JSONL ||
			raw[0] != span || !strings.HasPrefix(raw[1], `[{"id":500,`) ||
			!strings.HasSuffix(raw[1], `"129"}]`) {
			t.Errorf("fetched: %d variants, %s", len(f.Document.(*catalog.CatalogAggregate).Variants),
				f.Raw[:100])
		}
	}
	server.put("products", "13", `{"id":500,"name":"v","type":"variation","parent_id":12,"status":"publish"}`,
		time.Time{})
	var malformed *provider.Malformed
	if _, err := subject.Adapter.Fetch(t.Context(), subject.Shop, catalog.Product, "13"); !errors.As(err,
		&malformed) {
		t.Errorf("a variation as a product: %v", err)
	}
}

// TestHugeVariations tests products whose variations are too large: one alone is malformed, and those of a
// page come in several.
func TestHugeVariations(t *testing.T) {
	t.Parallel()
	subject, server, _ := openServer(t, providertest.ProductionClient(t))
	put := func(id, count, size int) {
		server.put("products", strconv.Itoa(id),
			fmt.Sprintf(`{"id":%d,"name":"Shirt","status":"publish","type":"variable"}`, id),
			time.Time{})
		for i := range count {
			server.variations[id] = append(server.variations[id], fmt.Sprintf(`{"id":%d,"x":%q}`, 500+i,
				strings.Repeat("x", size)))
		}
	}
	put(10, 500, 38_000)
	put(11, 101, 50_000)
	for _, id := range []string{"10", "11"} {
		f, err := subject.Adapter.Fetch(t.Context(), subject.Shop, catalog.Product, id)
		var malformed *provider.Malformed
		if !errors.As(err, &malformed) || malformed.Reason != "variations: too_large" || len(f.Raw) == 0 {
			t.Errorf("%s: %v, %d bytes", id, err, len(f.Raw))
		}
	}
	server.DeleteProduct("10")
	server.DeleteProduct("11")
	for id := range 8 { // two are read at a time, so one or two more than fit
		put(20+id, 100, 38_000)
	}
	pages := 0
	all := providertest.All(t, subject, catalog.Product, time.Time{}, func(int) { pages++ })
	if len(all) != 8 || pages == 0 {
		t.Errorf("%d products in %d pages", len(all), pages+1)
	}
	for id, f := range all {
		if f.Document == nil {
			t.Errorf("%s: %v", id, f.Malformed)
		}
	}
}

// TestTrustShopErrors tests that errors without the shop's own code neither revoke nor delete.
func TestTrustShopErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trouble providertest.Fault
		want    provider.Reason
	}{
		"firewall": {providertest.Fault{Status: 403,
			Header: map[string]string{"Content-Type": "text/html"}, Body: "<h1>Forbidden</h1>"},
			provider.ReasonContentType},
		"proxy": {providertest.Fault{Status: 401, Body: `{}`}, provider.ReasonContentType},
		"routes off": {providertest.Fault{Status: 404, Body: `{"code":"rest_no_route","message":"x"}`},
			provider.ReasonContentType},
		"other plugin": {providertest.Fault{Status: 404, Body: `{"code":"lost","message":"x"}`},
			provider.ReasonContentType},
		"the shop": {providertest.Fault{Status: 401, Body: `{"code":"woocommerce_rest_cannot_view"}`},
			provider.ReasonCredentialRefused},
		"the REST core": {providertest.Fault{Status: 403, Body: `{"code":"rest_forbidden"}`},
			provider.ReasonCredentialRefused},
	} {
		subject, _, proxy := openServer(t, providertest.Client(t, 30*time.Second))
		proxy.SetFault(c.trouble)
		f, err := subject.Adapter.Fetch(t.Context(), subject.Shop, catalog.Product, "1")
		if provider.ReasonOf(err) != c.want || f.Gone {
			t.Errorf("%s: gone %v, %v", name, f.Gone, err)
		}
	}
}

// TestQuietListing tests a shop without paging headers, and pages that are too large to read.
func TestQuietListing(t *testing.T) {
	t.Parallel()
	subject, server, _ := openServer(t, providertest.Client(t, 30*time.Second))
	server.quiet = true
	for i := range 230 {
		title := "x"
		if i > 150 {
			title = strings.Repeat("x", 30_000)
		}
		server.PutProduct(providertest.Product{ID: strconv.Itoa(1000 + i), Title: title})
	}
	if got := len(providertest.All(t, subject, catalog.Product, time.Time{}, nil)); got != 230 {
		t.Errorf("%d products", got)
	}
}

func TestCredential(t *testing.T) {
	t.Parallel()
	subject, _, proxy := openServer(t, providertest.Client(t, 30*time.Second))
	for _, credential := range []settings.Secret{"", "ck_only", ":cs", "ck:"} {
		s := subject.Shop
		s.Credential = credential
		if _, err := subject.Adapter.Profile(t.Context(),
			s); provider.ReasonOf(err) != provider.ReasonCredentialRefused {
			t.Errorf("credential in the wrong form: %v", err)
		}
	}
	if proxy.Calls() != 0 {
		t.Error("a broken credential was sent")
	}
	if _, err := subject.Adapter.Subscribe(t.Context(), subject.Shop,
		provider.Subscription{Topic: "product.updated", URL: "https://x.example.org"}); err == nil {
		t.Error("subscribed without a secret")
	}
}
