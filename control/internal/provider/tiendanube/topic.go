package tiendanube

import (
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/control/internal/provider/remote"
	"storefront.internal/shared/catalog"
)

// WebhookTopics implements provider.Adapter.
func (*Adapter) WebhookTopics() []string {
	return []string{"product/created", "product/updated", "product/deleted", "category/created",
		"category/updated", "category/deleted",
		"order/created", "order/updated", "order/paid", "order/cancelled", "app/uninstalled", "app/suspended",
		"app/resumed"}
}

// ParseWebhook implements provider.Adapter. The signed body names its event. A hint counts only for bodies
// without one (the privacy requests), as far as their members agree.
func (*Adapter) ParseWebhook(hint string, body []byte) (provider.WebhookEvent, error) {
	var n struct {
		Store payload.ID   `json:"store_id"`
		Event payload.Text `json:"event"`
		ID    payload.ID   `json:"id"`
		payload.Privacy
	}
	if err := remote.DecodeError(payload.Decode(body, &n)); err != nil {
		return provider.WebhookEvent{}, &provider.Malformed{Reason: "webhook body"}
	}
	event := strings.ToLower(strings.TrimSpace(string(n.Event)))
	if event == "" {
		event = strings.ToLower(strings.TrimSpace(hint))
	}
	t := provider.WebhookEvent{Kind: eventKind(event), ExternalStoreID: string(n.Store)}
	if (n.Event == "" || t.Kind.IsPrivacy()) && !n.ID.IsSet() {
		if request, ok := n.Request(string(n.Store), t.Kind); ok {
			return request, nil
		}
	}
	switch t.Kind {
	case provider.Changed, provider.Deleted:
		subject, _, _ := strings.Cut(event, "/")
		t.Entity, _ = catalog.ParseEntity(subject)
		t.ExternalID = string(n.ID)
		if !n.ID.IsSet() {
			return provider.WebhookEvent{Kind: provider.Unspecified, ExternalStoreID: t.ExternalStoreID}, nil
		}
	case provider.RedactShop, provider.RedactCustomer, provider.DataRequest:
		t.Kind = provider.Unspecified // an entity's body is not a privacy request
	}
	return t, nil
}

func eventKind(event string) provider.EventKind {
	switch event {
	case "":
		return provider.Unspecified
	case "app/uninstalled":
		return provider.Uninstalled
	case "app/suspended":
		return provider.Suspended
	case "app/resumed":
		return provider.Resumed
	case "store/redact":
		return provider.RedactShop
	case "customers/redact":
		return provider.RedactCustomer
	case "customers/data_request":
		return provider.DataRequest
	}
	subject, change, _ := strings.Cut(event, "/")
	if _, ok := catalog.ParseEntity(subject); !ok {
		return provider.Ignored
	}
	if change == "deleted" {
		return provider.Deleted
	}
	return provider.Changed
}
