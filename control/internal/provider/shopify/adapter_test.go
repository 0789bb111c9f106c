package shopify

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
	for signature, want := range map[string]bool{base64: true, strings.ToUpper(base64): false,
		base64 + "\n": false, "\n" + base64: false, strings.TrimRight(base64, "="): false,
		"29e24c14593ef6c1c87d70a8888fb590b9d841ba517b03e4acf65021dfaed1dd": false,
		"KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d1=":                     false} {
		if a.VerifySignature(secrets, signature, []byte(body)) != want {
			t.Errorf("%q: want %v", signature, want)
		}
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	const body = `{"id":5,"admin_graphql_api_id":"gid://shopify/Product/5"}`
	for _, c := range []struct {
		hint, body string
		want       provider.WebhookEvent
	}{
		{"products/create", body,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "5"}},
		{"PRODUCTS/Delete", `{"id":5}`,
			provider.WebhookEvent{Kind: provider.Deleted, Entity: catalog.Product, ExternalID: "5"}},
		{"collections/update", `{"id":"6"}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Category, ExternalID: "6"}},
		{"orders/cancelled", `{"id":7}`,
			provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Order, ExternalID: "7"}},
		{"", body, provider.WebhookEvent{Kind: provider.Changed, Entity: catalog.Product, ExternalID: "5"}},
		{"", `{"id":"gid://shopify/Product/5"}`, provider.WebhookEvent{Kind: provider.Unspecified}},
		{"", `{"id":5}`, provider.WebhookEvent{Kind: provider.Unspecified}},
		{"products/update", `{}`, provider.WebhookEvent{Kind: provider.Unspecified}},
		{"inventory_levels/update", `{"inventory_item_id":1}`, provider.WebhookEvent{Kind: provider.Ignored}},
		{"app/uninstalled", `{"id":1,"myshopify_domain":"demo.myshopify.com"}`,
			provider.WebhookEvent{Kind: provider.Uninstalled, ExternalStoreID: "demo.myshopify.com"}},
		{"shop/redact", `{"shop_id":1,"shop_domain":"demo.myshopify.com"}`,
			provider.WebhookEvent{Kind: provider.RedactShop, ExternalStoreID: "demo.myshopify.com"}},
		{"shop/redact", `{"id":5,"shop_domain":"d"}`,
			provider.WebhookEvent{Kind: provider.Unspecified, ExternalStoreID: "d"}},
		{"shop/redact", `{"shop_domain":"d","customer":{"id":1}}`,
			provider.WebhookEvent{Kind: provider.Unspecified, ExternalStoreID: "d"}},
		{"customers/redact", `{"shop_domain":"d"}`,
			provider.WebhookEvent{Kind: provider.Unspecified, ExternalStoreID: "d"}},
		{"customers/data_request", `{"shop_domain":"d","customer":{"email":"x@y.example"}}`,
			provider.WebhookEvent{Kind: provider.DataRequest, ExternalStoreID: "d"}},
		{"customers/redact",
			`{"shop_domain":"d","customer":{"email":"x@y.example"},"orders_to_redact":[299938,"280263"]}`,
			provider.WebhookEvent{Kind: provider.RedactCustomer, ExternalStoreID: "d",
				Orders: []string{"299938", "280263"}}},
	} {
		got, err := new(Adapter).ParseWebhook(c.hint, []byte(c.body))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s %s: %+v, %v", c.hint, c.body, got, err)
		}
	}
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	a := &Adapter{version: "2026-07"}
	for id, want := range map[string]bool{"demo.myshopify.com": true, " Demo.MyShopify.com": true,
		"demo": false, "myshopify.com": false, ".myshopify.com": false, "a.b.myshopify.com": false,
		"demo.myshopify.com.evil.org": false, "evil.org/demo.myshopify.com": false,
		"demo.myshopify.com:8080": false, "x@demo.myshopify.com": false, "127.0.0.1": false, "": false} {
		got, err := a.endpoint(provider.Shop{ExternalStoreID: id})
		if (err == nil) != want || want &&
			got != "https://demo.myshopify.com/admin/api/2026-07/graphql.json" {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
	if _, err := a.endpoint(provider.Shop{ExternalStoreID: "17",
		Profile: provider.Profile{Domain: "demo.myshopify.com"}}); err != nil {
		t.Errorf("by domain: %v", err)
	}
}

// TestErrors tests errors in a 200: a null beside an error deletes nothing.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply string
		want  provider.Reason
	}{
		{`{"errors":[{"message":"Throttled"}],"extensions":{"cost":{"requestedQueryCost":400,` +
			`"throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":100,"restoreRate":10}}}}`,
			provider.ReasonThrottled},
		{`{"data":null,"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}`,
			provider.ReasonThrottled},
		{`{"data":{"product":null},"errors":[{"message":"Access denied for product field",` +
			`"extensions":{"code":"ACCESS_DENIED"}}]}`, provider.ReasonCredentialRefused},
		{`{"data":{"product":null},"errors":[{"message":"boom",` +
			`"extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}`, provider.ReasonServerError},
		{`{"errors":[{"message":"x","extensions":{"code":"SHOP_INACTIVE"}}]}`, provider.ReasonShopSuspended},
		{`{"errors":[{"message":"x","extensions":{"code":"MAX_COST_EXCEEDED"}}]}`,
			provider.ReasonRequestRejected},
		{`{"errors":"Not Found"}`, provider.ReasonRequestRejected},
		{`{"errors":{"x":["y"]}}`, provider.ReasonRequestRejected},
		{`{}`, provider.ReasonInvalidJSON},
		{`{"data":null}`, provider.ReasonInvalidJSON},
		{`{"data":[]}`, provider.ReasonInvalidJSON},
		{`{"data":{}}`, provider.ReasonInvalidJSON}, // no product is not "no such product"
		{`{"data":{"other":null}}`, provider.ReasonInvalidJSON},
		{`{"data":{"product":7}}`, provider.ReasonMalformed},
		{`[]`, provider.ReasonMalformed},
	} {
		reply, want := c.reply, c.want
		subject, server := openServer(t, providertest.Client(t, 30*time.Second))
		server.replies = []string{reply}
		f, err := subject.Adapter.Fetch(t.Context(), subject.Shop, catalog.Product, "1")
		if provider.ReasonOf(err) != want || f.Gone {
			t.Errorf("%s: gone %v, %v; want %s", reply, f.Gone, err, want)
		}
		var throttled *provider.Throttled
		if errors.As(err, &throttled) && strings.Contains(reply, "400") &&
			throttled.RetryAfter != 30*time.Second {
			t.Errorf("retry after %v", throttled.RetryAfter)
		}
	}
}

// TestManyVariants tests products with more variants than one page holds, by fetch, by listing and by export.
func TestManyVariants(t *testing.T) {
	t.Parallel()
	subject, server := openServer(t, providertest.Client(t, 30*time.Second))
	server.extra = 699
	server.PutProduct(providertest.Product{ID: "5", Title: "x", Price: "1",
		UpdatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	single, err := subject.Adapter.Fetch(t.Context(), subject.Shop, catalog.Product, "5")
	if err != nil {
		t.Fatal(err)
	}
	since := providertest.All(t, subject, catalog.Product, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), nil)
	bulk := providertest.All(t, subject, catalog.Product, time.Time{}, nil)
	for name, f := range map[string]provider.Fetched{"fetch": single, "since": since["5"],
		"export": bulk["5"]} {
		if f.Document == nil || len(f.Document.(*catalog.CatalogAggregate).Variants) != 700 ||
			f.RawFormat != provider.JSONL {
			t.Errorf("%s: %+v", name, f.Malformed)
		}
		if f.Document != nil &&
			string(catalog.Complete(f.Document,
				catalog.Identity{ConnectionID: "con_1", ExternalID: "5", Revision: 1})) !=
				string(catalog.Complete(single.Document,
					catalog.Identity{ConnectionID: "con_1", ExternalID: "5", Revision: 1})) {
			t.Errorf("%s: another document than that of a fetch", name)
		}
	}
	if strings.Contains(string(single.Raw), "throttleStatus") {
		t.Error("raw holds the cost, which changes with every call")
	}
}

// TestExport goes through the states of an export.
func TestExport(t *testing.T) {
	t.Parallel()
	subject, server := openServer(t, providertest.Client(t, 30*time.Second))
	for i := range 300 {
		server.PutProduct(providertest.Product{ID: strconv.Itoa(1000 + i),
			Title: "Shirt " + strconv.Itoa(1000+i), Price: "1"})
	}
	read := func() int { return len(providertest.All(t, subject, catalog.Product, time.Time{}, nil)) }
	server.statuses = []string{"CREATED", "RUNNING", "RUNNING"}
	if got := read(); got != 300 || server.bulkCalls != 1 {
		t.Errorf("%d products by %d exports", got, server.bulkCalls)
	}
	server.statuses = []string{"RUNNING", "FAILED", "CANCELED"}
	if got := read(); got != 300 || server.bulkCalls != 4 {
		t.Errorf("%d products by %d exports after failures", got, server.bulkCalls)
	}
	server.noRanges = true
	if got := read(); got != 300 {
		t.Errorf("%d products without ranges", got)
	}
	server.noRanges, server.shuffled = false, true
	all := providertest.All(t, subject, catalog.Product, time.Time{}, nil)
	for id, f := range all {
		if f.Document == nil || len(f.Document.(*catalog.CatalogAggregate).Variants) != 1 {
			t.Errorf("%s of an ungrouped file: %+v", id, f.Malformed)
		}
	}
	if len(all) != 300 {
		t.Errorf("%d products of an ungrouped file", len(all))
	}
}

// TestExportFails tests failed exports, the limit of running exports, and the snapshot flags of pages.
func TestExportFails(t *testing.T) {
	t.Parallel()
	subject, server := openServer(t, providertest.Client(t, 30*time.Second))
	server.PutProduct(providertest.Product{ID: "1", Title: "x"})
	page := func(c provider.Cursor) (provider.Page, error) {
		return subject.Adapter.Page(t.Context(), subject.Shop, catalog.Product, time.Time{}, c)
	}
	server.replies = []string{`{"data":{"bulkOperationRunQuery":{"bulkOperation":null,` +
		`"userErrors":[{"field":null,"message":"A bulk query operation for this app and shop is already ` +
		`in progress: gid://shopify/BulkOperation/1."}]}}}`}
	limited, err := page("")
	if err != nil || limited.ReadyAfter == 0 || limited.SnapshotStarted || limited.Next == "" {
		t.Fatalf("in progress: %+v, %v", limited, err)
	}
	begun, err := page(limited.Next)
	if err != nil || !begun.SnapshotStarted || begun.FromSnapshot {
		t.Fatalf("begun: %+v, %v", begun, err)
	}
	if done, err := page(begun.Next); err != nil || !done.FromSnapshot || len(done.Items) != 1 ||
		done.Next != "" {
		t.Errorf("exported: %+v, %v", done, err)
	}
	server.statuses = []string{"FAILED", "FAILED", "EXPIRED"}
	cursor := provider.Cursor("")
	for range 20 {
		var p provider.Page
		if p, err = page(cursor); err != nil {
			break
		}
		cursor = p.Next
	}
	if provider.ReasonOf(err) != provider.ReasonBulkFailed {
		t.Errorf("after three failures: %v", err)
	}
	server.replies = []string{`{"data":{"bulkOperation":{"id":"x","status":"COMPLETED",` +
		`"url":"http://169.254.169.254/file"}}}`}
	if _, err := page("bulk:1:0:0"); provider.ReasonOf(err) != "address_forbidden" {
		t.Errorf("a file at a forbidden address: %v", err)
	}
}
