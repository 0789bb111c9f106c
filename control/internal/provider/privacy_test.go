package provider_test

import (
	"fmt"
	"slices"
	"testing"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/shopify"
	"storefront.internal/control/internal/provider/tiendanube"
	"storefront.internal/control/internal/provider/woocommerce"
)

// TestPrivacyRequestsAreToldByTheirBody tests each body under every topic that the unsigned header may say.
func TestPrivacyRequestsAreToldByTheirBody(t *testing.T) {
	t.Parallel()
	const customer = `"customer":{"id":2,"email":"x@y.example"}`
	platforms := []struct {
		adapter     provider.Adapter
		shop, store string // the member that names the shop, and the shop
		shopRedact  string
	}{
		{new(tiendanube.Adapter), `"store_id":1`, "1", "store/redact"},
		{new(shopify.Adapter), `"shop_id":1,"shop_domain":"d.example"`, "d.example", "shop/redact"},
	}
	for _, p := range platforms {
		topics := []string{p.shopRedact, "customers/redact", "customers/data_request", "", "app/uninstalled"}
		for _, c := range []struct {
			body   string
			kinds  []provider.EventKind // by topic; nil: the same for all
			kind   provider.EventKind
			orders []string
		}{
			{`{%[1]s,%[2]s,"orders_to_redact":[5,"6",0]}`, nil, provider.RedactCustomer, []string{"5", "6"}},
			{`{%[1]s,%[2]s,"orders_to_redact":[]}`, nil, provider.RedactCustomer, nil},
			{`{%[1]s,"orders_to_redact":[5]}`, nil, provider.RedactCustomer, []string{"5"}},
			{`{%[1]s,%[2]s,"orders_requested":[5],"data_request":{"id":1}}`, nil, provider.DataRequest,
				[]string{"5"}},
			{`{%[1]s,%[2]s,"data_request":{"id":1}}`, nil, provider.DataRequest, nil},
			{`{%[1]s,%[2]s,"orders_requested":[]}`, nil, provider.DataRequest, nil},
			{`{%[1]s,%[2]s,"orders_to_redact":[5],"orders_requested":[6]}`, nil, provider.Unspecified, nil},
			{`{%[2]s,"orders_to_redact":[5]}`, nil, provider.Unspecified, nil},
			{`{%[2]s,"orders_requested":[5]}`, nil, provider.Unspecified, nil},
			{`{%[1]s,%[2]s}`, []provider.EventKind{provider.Unspecified, provider.RedactCustomer,
				provider.DataRequest, provider.Unspecified, provider.Uninstalled}, "", nil},
			{`{%[1]s}`, []provider.EventKind{provider.RedactShop, provider.Unspecified, provider.Unspecified,
				provider.Unspecified, provider.Uninstalled}, "", nil},
		} {
			body := fmt.Sprintf(c.body+"%.0[1]s%.0[2]s", p.shop, customer)
			for n, topic := range topics {
				want := c.kind
				if c.kinds != nil {
					want = c.kinds[n]
				}
				got, err := p.adapter.ParseWebhook(topic, []byte(body))
				if err != nil || got.Kind != want || !slices.Equal(got.Orders, c.orders) ||
					got.Kind.IsPrivacy() && got.ExternalStoreID != p.store {
					t.Errorf("%s of %s: %+v, %v", topic, body, got, err)
				}
			}
		}
		for _, topic := range topics[:3] {
			// An entity's body is none, whatever it contains.
			body := fmt.Sprintf(`{%s,%s,"id":5,"orders_to_redact":[7]}`, p.shop, customer)
			if got, err := p.adapter.ParseWebhook(topic, []byte(body)); err != nil || got.Kind.IsPrivacy() {
				t.Errorf("%s of %s: %+v, %v", topic, body, got, err)
			}
		}
	}
	for _, topic := range []string{"customers/redact", "shop/redact", "store/redact"} {
		got, err := new(woocommerce.Adapter).ParseWebhook(topic,
			[]byte(`{`+customer+`,"orders_to_redact":[5]}`))
		if err == nil && got.Kind.IsPrivacy() {
			t.Errorf("WooCommerce sends none: %+v", got)
		}
	}
}
