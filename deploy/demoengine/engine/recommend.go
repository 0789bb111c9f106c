package engine

import (
	"encoding/json"
	"net/http"
	"strconv"

	"storefront.internal/shared/ident"
)

// Item is something that the engine recommends.
type Item struct {
	ItemID    string `json:"item_id"`
	VariantID string `json:"variant_id,omitempty"`
}

const (
	demoCount    = 12
	defaultLimit = 10
)

// demoItems are the engine's own: until a catalog tells it of others it recommends these to everybody.
func demoItems() []Item {
	items := make([]Item, demoCount)
	for i := range items {
		n := strconv.Itoa(1001 + i)
		items[i] = Item{
			ItemID:    ident.Derive(ident.Item, "con_demo", "product", n),
			VariantID: ident.Derive(ident.Variant, "con_demo", "variant", n, "1"),
		}
	}
	return items
}

// Items are what the engine recommends, best first.
func (e *Engine) Items() []Item { return append([]Item{}, e.items...) }

// recommend answers the list in order, without the item that the shopper is looking at.
func (e *Engine) recommend(body []byte, _ Behaviour) (int, any) {
	var request struct {
		DecisionID string `json:"decision_id"`
		ItemID     string `json:"item_id"`
		Limit      int    `json:"limit"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return http.StatusBadRequest, problem{"invalid_request"}
	}
	limit := request.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	items := make([]Item, 0, limit)
	for _, item := range e.items {
		if item.ItemID != request.ItemID && len(items) < limit {
			items = append(items, item)
		}
	}
	return http.StatusOK, map[string]any{
		"items":      items,
		"engine_ids": map[string]string{"recommendation": "rec-" + request.DecisionID, "model": "demo-1"},
	}
}
