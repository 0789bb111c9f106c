package shopify

import (
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// WebhookTopics implements provider.Adapter.
func (*Adapter) WebhookTopics() []string {
	return []string{"products/create", "products/update", "products/delete", "collections/create",
		"collections/update", "collections/delete",
		"orders/create", "orders/updated", "orders/cancelled", "orders/paid", "app/uninstalled"}
}

// ParseWebhook implements provider.Adapter. Only the hint names the event, and of privacy requests the
// members of the signed body. Without a hint, the global id in the body tells the type of the entity; the
// body of a deletion has no global id.
func (*Adapter) ParseWebhook(hint string, body []byte) (provider.WebhookEvent, error) {
	var n struct {
		ID          payload.ID   `json:"id"`
		GlobalID    payload.Text `json:"admin_graphql_api_id"`
		ShopDomain  payload.Text `json:"shop_domain"`
		MyshopifyID payload.Text `json:"myshopify_domain"`
		payload.Privacy
	}
	if err := remote.DecodeError(payload.Decode(body, &n)); err != nil {
		return provider.WebhookEvent{}, &provider.Malformed{Reason: "webhook body"}
	}
	id, kind := parseGID(string(n.GlobalID))
	if id == "" {
		id, _ = parseGID(string(n.ID))
	}
	hint = strings.ToLower(strings.TrimSpace(hint))
	subject, event, _ := strings.Cut(hint, "/")
	t := provider.WebhookEvent{ExternalStoreID: string(n.ShopDomain + n.MyshopifyID)}
	if id == "" {
		if request, ok := n.Request(t.ExternalStoreID, privacyKind(hint)); ok {
			return request, nil
		}
	}
	switch {
	case hint == "app/uninstalled":
		t.Kind = provider.Uninstalled
	case privacyKind(hint) != "":
		t.Kind = provider.Unspecified // an entity's body is not a privacy request
	default:
		t.Kind, t.Entity = topicKind(subject, event, kind)
		if t.Entity != "" && id == "" {
			t.Kind, t.Entity = provider.Unspecified, ""
		}
		if t.Entity != "" {
			t.ExternalID = id
		}
	}
	return t, nil
}

// privacyKind returns the kind of a privacy request that a topic names, "" for other topics.
func privacyKind(hint string) provider.EventKind {
	switch hint {
	case "shop/redact":
		return provider.RedactShop
	case "customers/redact":
		return provider.RedactCustomer
	case "customers/data_request":
		return provider.DataRequest
	}
	return ""
}

// topicKind decides by the hint, or by the type of the global id when there is no hint.
func topicKind(subject, event, kind string) (provider.EventKind, catalog.Entity) {
	change := provider.Changed
	if event == "delete" || event == "deleted" {
		change = provider.Deleted
	}
	switch {
	case subject == "products", subject == "" && kind == "Product":
		return change, catalog.Product
	case subject == "collections", subject == "" && kind == "Collection":
		return change, catalog.Category
	case subject == "orders", subject == "" && kind == "Order":
		return change, catalog.Order
	case subject == "":
		return provider.Unspecified, ""
	default:
		return provider.Ignored, ""
	}
}
