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
	for signature, want := range map[string]bool{base64: true, strings.ToLower(base64): false, base64 + "\n": false, strings.TrimRight(base64, "="): false,
		strings.NewReplacer("+", "-", "/", "_").Replace(base64): false, "29e24c14593ef6c1c87d70a8888fb590b9d841ba517b03e4acf65021dfaed1dd": false} {
		if a.Verify(secrets, signature, []byte(body)) != want {
			t.Errorf("%q: want %v", signature, want)
		}
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{"webhook_id=12": true, "webhook_id=": false, "webhook_id=12&x=1": false, "webhook_id=a": false, "webhook_id=12\n": false,
		" webhook_id=12": false, "WEBHOOK_ID=1": false, "webhook_id=" + strings.Repeat("1", 30): false, `{"webhook_id":12}`: false, "": false} {
		if got := new(Adapter).Ping([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hint, body string
		want       provider.Topic
	}{
		{"product.created", `{"id":5}`, provider.Topic{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "5"}},
		{"product.deleted", `{"id":5}`, provider.Topic{Kind: provider.Deleted, Entity: catalog.Product, ExternalID: "5"}},
		{"product.restored", `{"id":5}`, provider.Topic{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "5"}},
		{"product.updated", `{"id":21,"type":"variation","parent_id":12}`, provider.Topic{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "12"}},
		{"product.deleted", `{"id":21,"type":"variation","parent_id":12}`, provider.Topic{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "12"}},
		{" Order.Updated ", `{"id":"5"}`, provider.Topic{Kind: provider.Changed, Entity: catalog.Order, ExternalID: "5"}},
		{"customer.updated", `{"id":5}`, provider.Topic{Kind: provider.Ignored}},
		{"coupon.deleted", `{"id":5}`, provider.Topic{Kind: provider.Ignored}},
		{"", `{"id":5}`, provider.Topic{Kind: provider.Unclear}},
		{"", `{"id":5,"order_key":"wc_order_x"}`, provider.Topic{Kind: provider.Changed, Entity: catalog.Order, ExternalID: "5"}},
		{"product.updated", `{}`, provider.Topic{Kind: provider.Unclear}},
		{"product.updated", `webhook_id=3`, provider.Topic{Kind: provider.Ping}},
	} {
		got, err := new(Adapter).Topic(c.hint, []byte(c.body))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s %s: %+v, %v", c.hint, c.body, got, err)
		}
	}
}

// TestSite is the first half of the guard for the host that a merchant names.
func TestSite(t *testing.T) {
	t.Parallel()
	a := new(Adapter)
	for id, want := range map[string]string{
		"shop.example.org":            "https://shop.example.org/wp-json/wc/v3",
		"https://Shop.Example.org/":   "https://shop.example.org/wp-json/wc/v3",
		"https://example.org/my-shop": "https://example.org/my-shop/wp-json/wc/v3",
		"http://shop.example.org":     "", "shop.example.org:8080": "", "user@shop.example.org": "", "127.0.0.1": "", "localhost": "", "https://[::1]/": "",
		"shop.example.org/../admin": "", "shop.example.org/?x": "", "shop.example.org#": "", "shop.example.org//x": "", "": "", "0x7f.1": "", "metadata.google.internal": "",
	} {
		got, err := a.root(provider.Store{ExternalStoreID: id})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
	got, err := a.root(provider.Store{ExternalStoreID: "17", Profile: provider.Profile{Domain: "shop.example.org"}})
	if err != nil || got != "https://shop.example.org/wp-json/wc/v3" {
		t.Errorf("by domain: %q, %v", got, err)
	}
}

// TestVariations reads all of them, in a fetch and in a page, and keeps every body as it came.
func TestVariations(t *testing.T) {
	t.Parallel()
	subject, server, _ := openServer(t, providertest.Client(t, 30*time.Second))
	const span = `{"id":12,"name":"Shirt","type":"variable","status":"publish","variations":[1]}`
	server.put("products", "12", span, time.Time{})
	for i := range 130 {
		server.variations[12] = append(server.variations[12], fmt.Sprintf(`{"id":%d,"regular_price":"%d"}`, 500+i, i))
	}
	single, err := subject.Adapter.Fetch(t.Context(), subject.Store, catalog.Product, "12")
	if err != nil {
		t.Fatal(err)
	}
	page, err := subject.Adapter.Page(t.Context(), subject.Store, catalog.Product, time.Time{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []provider.Fetched{single, page.Items[0]} {
		raw := strings.SplitN(string(f.Raw), "\n", 2)
		if len(f.Document.(*catalog.CatalogAggregate).Variants) != 130 || f.Form != provider.JSONL || raw[0] != span || !strings.HasPrefix(raw[1], `[{"id":500,`) || !strings.HasSuffix(raw[1], `"129"}]`) {
			t.Errorf("fetched: %d variants, %s", len(f.Document.(*catalog.CatalogAggregate).Variants), f.Raw[:100])
		}
	}
	server.put("products", "13", `{"id":500,"name":"v","type":"variation","parent_id":12,"status":"publish"}`, time.Time{})
	var malformed *provider.Malformed
	if _, err := subject.Adapter.Fetch(t.Context(), subject.Store, catalog.Product, "13"); !errors.As(err, &malformed) {
		t.Errorf("a variation as a product: %v", err)
	}
}

// TestBelieved shows that what another than the shop says neither revokes nor deletes.
func TestBelieved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trouble providertest.Trouble
		want    provider.Reason
	}{
		"firewall":      {providertest.Trouble{Status: 403, Header: map[string]string{"Content-Type": "text/html"}, Body: "<h1>Forbidden</h1>"}, provider.ReasonContentType},
		"proxy":         {providertest.Trouble{Status: 401, Body: `{}`}, provider.ReasonContentType},
		"routes off":    {providertest.Trouble{Status: 404, Body: `{"code":"rest_no_route","message":"x"}`}, provider.ReasonContentType},
		"other plugin":  {providertest.Trouble{Status: 404, Body: `{"code":"lost","message":"x"}`}, provider.ReasonContentType},
		"the shop":      {providertest.Trouble{Status: 401, Body: `{"code":"woocommerce_rest_cannot_view"}`}, provider.ReasonRefused},
		"the REST core": {providertest.Trouble{Status: 403, Body: `{"code":"rest_forbidden"}`}, provider.ReasonRefused},
	} {
		subject, _, front := openServer(t, providertest.Client(t, 30*time.Second))
		front.Trouble(c.trouble)
		f, err := subject.Adapter.Fetch(t.Context(), subject.Store, catalog.Product, "1")
		if provider.ReasonOf(err) != c.want || f.Gone {
			t.Errorf("%s: gone %v, %v", name, f.Gone, err)
		}
	}
}

// TestQuietListing counts where a plugin strips the headers, and asks for smaller pages where one is too large.
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
	subject, _, front := openServer(t, providertest.Client(t, 30*time.Second))
	for _, credential := range []settings.Secret{"", "ck_only", ":cs", "ck:"} {
		s := subject.Store
		s.Credential = credential
		if _, err := subject.Adapter.Profile(t.Context(), s); provider.ReasonOf(err) != provider.ReasonRefused {
			t.Errorf("credential in the wrong form: %v", err)
		}
	}
	if front.Calls() != 0 {
		t.Error("a broken credential was sent")
	}
	if _, err := subject.Adapter.Subscribe(t.Context(), subject.Store, provider.Subscription{Topic: "product.updated", URL: "https://x.example.org"}); err == nil {
		t.Error("subscribed without a secret")
	}
}
