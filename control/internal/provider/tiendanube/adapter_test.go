package tiendanube

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
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
		sum    = "29e24c14593ef6c1c87d70a8888fb590b9d841ba517b03e4acf65021dfaed1dd"
		base64 = "KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d0="
	)
	a, secrets := new(Adapter), []settings.Secret{"test-secret"}
	for signature, want := range map[string]bool{sum: true, strings.ToUpper(sum): true, base64: false,
		sum + "\n": false, sum[2:]: false, "0x" + sum[2:]: false} {
		if a.VerifySignature(secrets, signature, []byte(body)) != want {
			t.Errorf("%q: want %v", signature, want)
		}
	}
	if a.VerifySignature(secrets, sum, []byte(body+"\n")) ||
		a.VerifySignature(secrets, sum, []byte(body+" ")) {
		t.Error("verified with a byte more")
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]provider.WebhookEvent{
		`{"store_id":1,"event":"product/created","id":5}`: {Kind: provider.Changed,
			Entity: catalog.Product, ExternalID: "5", ExternalStoreID: "1"},
		`{"store_id":"1","event":"category/deleted","id":"5"}`: {Kind: provider.Deleted,
			Entity: catalog.Category, ExternalID: "5", ExternalStoreID: "1"},
		`{"store_id":1,"event":"order/packed","id":5}`: {Kind: provider.Changed,
			Entity: catalog.Order, ExternalID: "5", ExternalStoreID: "1"},
		`{"store_id":1,"event":"order/custom_fields_updated","id":5}`: {Kind: provider.Changed,
			Entity: catalog.Order, ExternalID: "5", ExternalStoreID: "1"},
		`{"store_id":1,"event":"product/updated"}`: {Kind: provider.Unspecified,
			ExternalStoreID: "1"},
		`{"store_id":1,"event":"app/uninstalled"}`: {Kind: provider.Uninstalled,
			ExternalStoreID: "1"},
		`{"store_id":1,"event":"app/suspended"}`: {Kind: provider.Suspended,
			ExternalStoreID: "1"},
		`{"store_id":1,"event":"app/resumed"}`: {Kind: provider.Resumed,
			ExternalStoreID: "1"},
		`{"store_id":1,"event":"domain/updated"}`: {Kind: provider.Ignored,
			ExternalStoreID: "1"},
		`{"store_id":1,"event":"customer/created","id":5}`: {Kind: provider.Ignored,
			ExternalStoreID: "1"},
		`{"store_id":1,"event":"product_variant/custom_fields_updated","id":5}`: {Kind: provider.Ignored,
			ExternalStoreID: "1"},
		`{"store_id":1,"event":"theme/updated","old_theme":"a","new_theme":"b"}`: {Kind: provider.Ignored,
			ExternalStoreID: "1"},
	} {
		// The signed body names the event, so a forged hint changes nothing.
		for _, hint := range []string{"", "app/uninstalled", "product/deleted"} {
			got, err := new(Adapter).ParseWebhook(hint, []byte(body))
			if err != nil || got.Kind != want.Kind || got.Entity != want.Entity ||
				got.ExternalID != want.ExternalID || got.ExternalStoreID != want.ExternalStoreID {
				t.Errorf("%s, hint %q: %+v, %v", body, hint, got, err)
			}
		}
	}
	redact, err := new(Adapter).ParseWebhook("customers/redact",
		[]byte(`{"store_id":1,"customer":{"id":2,"email":"x@y.example"},"orders_to_redact":[213,"214",0]}`))
	if err != nil || redact.Kind != provider.RedactCustomer || strings.Join(redact.Orders, ",") != "213,214" {
		t.Errorf("redact: %+v, %v", redact, err)
	}
	if redact.Customer.ID != "2" || redact.Customer.Email != "x@y.example" ||
		strings.Contains(fmt.Sprintf("%v %+v %#v", redact, redact, redact), "x@y") {
		t.Errorf("the customer of %+v", redact)
	}
	// The header that says that it is a privacy request is not signed: the body has to have the form of one.
	for hint, body := range map[string]string{"store/redact": `{"store_id":1,"customer":{}}`,
		"customers/redact": `{"store_id":1}`, "customers/data_request": `{"store_id":1}`} {
		if got, err := new(Adapter).ParseWebhook(hint, []byte(body)); err != nil ||
			got.Kind != provider.Unspecified {
			t.Errorf("%s of %s: %+v, %v", hint, body, got, err)
		}
	}
	for hint, want := range map[string]provider.EventKind{"store/redact": provider.RedactShop,
		"": provider.Unspecified} {
		if got, err := new(Adapter).ParseWebhook(hint, []byte(`{"store_id":1}`)); err != nil ||
			got.Kind != want {
			t.Errorf("%s: %+v, %v", hint, got, err)
		}
	}
}

// TestUnsortedListing tests a listing whose ids do not rise: pages are counted.
func TestUnsortedListing(t *testing.T) {
	t.Parallel()
	subject, server := openServer(t, providertest.Client(t, 30*time.Second))
	server.unsorted = true
	for i := range 450 {
		server.PutCategory(strconv.Itoa(1000+i), "c", "")
	}
	if got := len(providertest.All(t, subject, catalog.Category, time.Time{}, nil)); got != 450 {
		t.Errorf("%d categories, want 450", got)
	}
}

// TestLargePages tests a page that is too large to read.
func TestLargePages(t *testing.T) {
	t.Parallel()
	subject, server := openServer(t, providertest.Client(t, 30*time.Second))
	for i := range 150 {
		server.PutProduct(providertest.Product{ID: strconv.Itoa(1000 + i),
			Title: strings.Repeat("x", 20_000)})
	}
	if got := len(providertest.All(t, subject, catalog.Product, time.Time{}, nil)); got != 150 {
		t.Errorf("%d products", got)
	}
}

func TestBucketFeedback(t *testing.T) {
	t.Parallel()
	answer := func(limit, remaining, reset string) *outbound.Response {
		h := http.Header{}
		h.Set("X-Rate-Limit-Limit", limit)
		h.Set("X-Rate-Limit-Remaining", remaining)
		h.Set("X-Rate-Limit-Reset", reset)
		return &outbound.Response{Header: h}
	}
	if got := bucketFeedback(answer("40", "10", "15000")); got != (outbound.Feedback{Known: true,
		Capacity: 40, Available: 10, Refill: 2}) {
		t.Errorf("report: %+v", got)
	}
	if got := bucketFeedback(answer("400", "400", "0")); !got.Known || got.Refill != 0 ||
		got.Capacity != 400 {
		t.Errorf("full bucket: %+v", got)
	}
	for _, strange := range [][3]string{{"", "", ""}, {"x", "1", "1"}, {"0", "0", "0"}, {"-1", "1", "1"},
		{"NaN", "NaN", "NaN"}, {"40", "-1", "1"}, {"Inf", "1", "1"}} {
		if got := bucketFeedback(answer(strange[0], strange[1], strange[2])); got.Known {
			t.Errorf("%v: %+v", strange, got)
		}
	}
}

func TestStoreIDs(t *testing.T) {
	t.Parallel()
	subject, _ := openServer(t, providertest.Client(t, 30*time.Second))
	for _, id := range []string{"", "12/../13", "x", "1?y", "@evil.example"} {
		s := subject.Shop
		s.ExternalStoreID = id
		if _, err := subject.Adapter.Profile(t.Context(),
			s); provider.ReasonOf(err) != provider.ReasonRequestRejected {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func FuzzTopic(f *testing.F) {
	f.Add("product/updated", `{"store_id":123,"event":"product/updated","id":1948209}`)
	f.Add("", `{"id":null}`)
	f.Fuzz(func(t *testing.T, hint, body string) {
		topic, err := new(Adapter).ParseWebhook(hint, []byte(body))
		if err == nil && (topic.Kind == provider.Changed ||
			topic.Kind == provider.Deleted) == (topic.ExternalID == "" || topic.Entity == "") {
			t.Fatalf("%+v", topic)
		}
	})
}
