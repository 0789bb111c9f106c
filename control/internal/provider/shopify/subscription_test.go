package shopify

import "testing"

// TestTopicsAreReadBack: a topic that is read back as another one would be subscribed again at each check.
func TestTopicsAreReadBack(t *testing.T) {
	t.Parallel()
	topics := append((*Adapter)(nil).WebhookTopics(), "inventory_items/update", "inventory_levels/update",
		"orders/updated", "product_listings/add")
	for _, topic := range topics {
		if got := parseEnumTopic(enumTopic(topic)); got != topic {
			t.Errorf("%s is read back as %s", topic, got)
		}
	}
	if got := parseEnumTopic("UNKNOWN"); got != "unknown" {
		t.Error(got)
	}
}
