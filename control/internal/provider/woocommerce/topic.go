package woocommerce

import (
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// WebhookTopics implements provider.Adapter. No topic tells of categories.
func (*Adapter) WebhookTopics() []string {
	return []string{"product.created", "product.updated", "product.deleted", "order.created", "order.updated",
		"order.deleted"}
}

// ParseWebhook implements provider.Adapter. The body is the entity without its type, or only its id after a
// deletion. Without a hint the members tell the type, where they can.
func (a *Adapter) ParseWebhook(hint string, body []byte) (provider.WebhookEvent, error) {
	if a.IsPing(body) {
		return provider.WebhookEvent{Kind: provider.Ping}, nil
	}
	var n struct {
		ID         payload.ID   `json:"id"`
		Parent     payload.ID   `json:"parent_id"`
		Type       payload.Text `json:"type"`
		Visibility payload.Text `json:"catalog_visibility"`
		Permalink  payload.Text `json:"permalink"`
		OrderKey   payload.Text `json:"order_key"`
	}
	if err := remote.DecodeError(payload.Decode(body, &n)); err != nil {
		return provider.WebhookEvent{}, &provider.Malformed{Reason: "webhook body"}
	}
	subject, event, _ := strings.Cut(strings.ToLower(strings.TrimSpace(hint)), ".")
	t := provider.WebhookEvent{Kind: provider.Changed, ExternalID: string(n.ID)}
	switch {
	case subject == "product", subject == "" && (n.Visibility != "" || n.Permalink != ""):
		t.Entity = catalog.Product
	case subject == "order", subject == "" && n.OrderKey != "":
		t.Entity = catalog.Order
	case subject == "":
		return provider.WebhookEvent{Kind: provider.Unspecified}, nil
	default:
		return provider.WebhookEvent{Kind: provider.Ignored}, nil
	}
	if !n.ID.IsSet() {
		return provider.WebhookEvent{Kind: provider.Unspecified}, nil
	}
	if event == "deleted" {
		t.Kind = provider.Deleted
	}
	if t.Entity == catalog.Product && n.Type == "variation" && n.Parent.IsSet() {
		t.Kind, t.ExternalID = provider.Changed, string(n.Parent) // a variation is part of its product
	}
	return t, nil
}
