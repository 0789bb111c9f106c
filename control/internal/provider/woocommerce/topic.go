package woocommerce

import (
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// Topics implements provider.Adapter. Nothing tells of categories.
func (*Adapter) Topics() []string {
	return []string{"product.created", "product.updated", "product.deleted", "order.created", "order.updated", "order.deleted"}
}

// Topic implements provider.Adapter. The body is the resource and does not say of which kind; of a deletion it is the id
// alone. So without a hint the shape decides, where it can.
func (a *Adapter) Topic(hint string, body []byte) (provider.Topic, error) {
	if a.Ping(body) {
		return provider.Topic{Kind: provider.Ping}, nil
	}
	var n struct {
		ID         payload.ID   `json:"id"`
		Parent     payload.ID   `json:"parent_id"`
		Type       payload.Text `json:"type"`
		Visibility payload.Text `json:"catalog_visibility"`
		Permalink  payload.Text `json:"permalink"`
		OrderKey   payload.Text `json:"order_key"`
	}
	if err := remote.Shape(payload.Decode(body, &n)); err != nil {
		return provider.Topic{}, &provider.Malformed{Reason: "notification"}
	}
	subject, event, _ := strings.Cut(strings.ToLower(strings.TrimSpace(hint)), ".")
	t := provider.Topic{Kind: provider.Changed, ExternalID: string(n.ID)}
	switch {
	case subject == "product", subject == "" && (n.Visibility != "" || n.Permalink != ""):
		t.Entity = catalog.Product
	case subject == "order", subject == "" && n.OrderKey != "":
		t.Entity = catalog.Order
	case subject == "":
		return provider.Topic{Kind: provider.Unclear}, nil
	default:
		return provider.Topic{Kind: provider.Ignored}, nil
	}
	if !n.ID.Some() {
		return provider.Topic{Kind: provider.Unclear}, nil
	}
	if event == "deleted" {
		t.Kind = provider.Deleted
	}
	if t.Entity == catalog.Product && n.Type == "variation" && n.Parent.Some() {
		t.Kind, t.ExternalID = provider.Changed, string(n.Parent) // a variation is part of its product
	}
	return t, nil
}
