package tiendanube

import (
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// Topics implements provider.Adapter.
func (*Adapter) Topics() []string {
	return []string{"product/created", "product/updated", "product/deleted", "category/created", "category/updated", "category/deleted",
		"order/created", "order/updated", "order/paid", "order/cancelled", "app/uninstalled", "app/suspended", "app/resumed"}
}

// Topic implements provider.Adapter. The body names its event, and the signature covers it: a hint counts only for what
// names none (the privacy requests).
func (*Adapter) Topic(hint string, body []byte) (provider.Topic, error) {
	var n struct {
		Store     payload.ID       `json:"store_id"`
		Event     payload.Text     `json:"event"`
		ID        payload.ID       `json:"id"`
		Customer  payload.Customer `json:"customer"`
		Redact    []payload.ID     `json:"orders_to_redact"`
		Requested []payload.ID     `json:"orders_requested"`
	}
	if err := remote.Shape(payload.Decode(body, &n)); err != nil {
		return provider.Topic{}, &provider.Malformed{Reason: "notification"}
	}
	event := strings.ToLower(strings.TrimSpace(string(n.Event)))
	if event == "" {
		event = strings.ToLower(strings.TrimSpace(hint))
	}
	t := provider.Topic{Kind: kind(event), ExternalStoreID: string(n.Store)}
	switch t.Kind {
	case provider.Changed, provider.Deleted:
		subject, _, _ := strings.Cut(event, "/")
		t.Entity, _ = catalog.ParseEntity(subject)
		t.ExternalID = string(n.ID)
		if !n.ID.Some() {
			return provider.Topic{Kind: provider.Unclear, ExternalStoreID: t.ExternalStoreID}, nil
		}
	case provider.RedactStore, provider.RedactCustomer, provider.DataRequest:
		someone := n.Customer.There || len(n.Redact) > 0
		if n.ID.Some() || t.Kind == provider.RedactStore && someone || t.Kind == provider.RedactCustomer && !someone {
			t.Kind = provider.Unclear // only the header says so, and the body, which alone is signed, is not of that form
			break
		}
		t.Orders, t.Customer = payload.Known(append(n.Redact, n.Requested...)), n.Customer.Customer
	}
	return t, nil
}

func kind(event string) provider.Kind {
	switch event {
	case "":
		return provider.Unclear
	case "app/uninstalled":
		return provider.Uninstalled
	case "app/suspended":
		return provider.Suspended
	case "app/resumed":
		return provider.Resumed
	case "store/redact":
		return provider.RedactStore
	case "customers/redact":
		return provider.RedactCustomer
	case "customers/data_request":
		return provider.DataRequest
	}
	subject, what, _ := strings.Cut(event, "/")
	if _, ok := catalog.ParseEntity(subject); !ok {
		return provider.Ignored
	}
	if what == "deleted" {
		return provider.Deleted
	}
	return provider.Changed
}
