package engine

import (
	"encoding/json"
	"hash/fnv"
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

// demoItems are the engine's own. They are recommended to everybody by an engine that was given no snapshots to read.
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

// Items are the engine's own items.
func (e *Engine) Items() []Item { return append([]Item{}, e.items...) }

type question struct {
	ConnectionID string `json:"connection_id"`
	DecisionID   string `json:"decision_id"`
	ItemID       string `json:"item_id"`
	Limit        int    `json:"limit"`
}

// recommend answers products of the connection that the engine has read of. Of a connection that it knows no product of it
// says 503: an item of its own would be left out as foreign, and an empty list would be taken for its opinion, while an engine
// that cannot answer is replaced by the catalog's own products.
func (e *Engine) recommend(body []byte, _ Behaviour) (int, any) {
	var q question
	if err := json.Unmarshal(body, &q); err != nil {
		return http.StatusBadRequest, problem{"invalid_request"}
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	items := e.memory.shelves.pick(q.ConnectionID, q.ItemID, turnOf(q.DecisionID), q.Limit)
	if len(items) == 0 {
		if e.source != nil {
			return http.StatusServiceUnavailable, problem{"no_product_known"}
		}
		items = e.own(q)
	}
	return http.StatusOK, map[string]any{
		"items":      items,
		"engine_ids": map[string]string{"recommendation": "rec-" + q.DecisionID, "model": "demo-2"},
	}
}

// own answers the engine's own list in order, without the item that the shopper is looking at.
func (e *Engine) own(q question) []Item {
	items := make([]Item, 0, q.Limit)
	for _, item := range e.items {
		if item.ItemID != q.ItemID && len(items) < q.Limit {
			items = append(items, item)
		}
	}
	return items
}

// turnOf makes every Decision start elsewhere, and the same one always at the same place.
func turnOf(decision string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(decision)) // never fails
	return int(h.Sum32() & 0xffff)
}
