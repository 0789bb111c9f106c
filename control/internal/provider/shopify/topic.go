package shopify

import (
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// Topics implements provider.Adapter.
func (*Adapter) Topics() []string {
	return []string{"products/create", "products/update", "products/delete", "collections/create", "collections/update", "collections/delete",
		"orders/create", "orders/updated", "orders/cancelled", "orders/paid", "app/uninstalled"}
}

// Topic implements provider.Adapter. Only the hint says what happened; without one the body's global id tells of what
// kind the resource is, and of a deletion the body is a number.
func (*Adapter) Topic(hint string, body []byte) (provider.Topic, error) {
	var n struct {
		ID          payload.ID       `json:"id"`
		GlobalID    payload.Text     `json:"admin_graphql_api_id"`
		ShopDomain  payload.Text     `json:"shop_domain"`
		MyshopifyID payload.Text     `json:"myshopify_domain"`
		Customer    payload.Customer `json:"customer"`
		Redact      []payload.ID     `json:"orders_to_redact"`
		Requested   []payload.ID     `json:"orders_requested"`
	}
	if err := remote.Shape(payload.Decode(body, &n)); err != nil {
		return provider.Topic{}, &provider.Malformed{Reason: "notification"}
	}
	id, kind := number(string(n.GlobalID))
	if id == "" {
		id, _ = number(string(n.ID))
	}
	hint = strings.ToLower(strings.TrimSpace(hint))
	subject, event, _ := strings.Cut(hint, "/")
	t := provider.Topic{ExternalStoreID: string(n.ShopDomain + n.MyshopifyID)}
	someone := n.Customer.There || len(n.Redact) > 0
	switch {
	case hint == "app/uninstalled":
		t.Kind = provider.Uninstalled
	case private(hint) && (id != "" || hint == "shop/redact" && someone || hint == "customers/redact" && !someone):
		t.Kind = provider.Unclear // the body, which alone is signed, is not of that form
	case hint == "shop/redact":
		t.Kind = provider.RedactStore
	case hint == "customers/data_request":
		t.Kind, t.Orders, t.Customer = provider.DataRequest, payload.Known(n.Requested), n.Customer.Customer
	case hint == "customers/redact":
		t.Kind, t.Orders, t.Customer = provider.RedactCustomer, payload.Known(n.Redact), n.Customer.Customer
	default:
		t.Kind, t.Entity = subjectOf(subject, event, kind)
		if t.Entity != "" && id == "" {
			t.Kind, t.Entity = provider.Unclear, ""
		}
		if t.Entity != "" {
			t.ExternalID = id
		}
	}
	return t, nil
}

// private reports whether a topic is a privacy request. Only the unsigned header says so, so the body has to look like it.
func private(hint string) bool {
	return hint == "shop/redact" || hint == "customers/redact" || hint == "customers/data_request"
}

// subjectOf decides by the hint, and by the type of the global id where there is none.
func subjectOf(subject, event, kind string) (provider.Kind, catalog.Entity) {
	what := provider.Changed
	if event == "delete" || event == "deleted" {
		what = provider.Deleted
	}
	switch {
	case subject == "products", subject == "" && kind == "Product":
		return what, catalog.Product
	case subject == "collections", subject == "" && kind == "Collection":
		return what, catalog.Category
	case subject == "orders", subject == "" && kind == "Order":
		return what, catalog.Order
	case subject == "":
		return provider.Unclear, ""
	default:
		return provider.Ignored, ""
	}
}
