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

// demoItems are the engine's own items, which it recommends when it has no snapshots to read.
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

type question struct {
	ConnectionID string `json:"connection_id"`
	DecisionID   string `json:"decision_id"`
	ItemID       string `json:"item_id"`
	Limit        int    `json:"limit"`
}

// recommend answers products of the connection that the engine has read. When it knows none it answers 503:
// an item of its own would be dropped as foreign, and an empty list would count as the engine's answer, while
// an engine that fails is replaced by the catalog's own products.
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
	items := e.memory.catalogs.recommend(q.ConnectionID, q.ItemID, startOf(q.DecisionID), q.Limit)
	if len(items) == 0 {
		if e.source != nil {
			return http.StatusServiceUnavailable, problem{"no_product_known"}
		}
		items = e.demoItemsFor(q)
	}
	return http.StatusOK, map[string]any{
		"items":      items,
		"engine_ids": map[string]string{"recommendation": "rec-" + q.DecisionID, "model": "demo-2"},
	}
}

// demoItemsFor returns the engine's own items in order, without the one that the shopper looks at.
func (e *Engine) demoItemsFor(q question) []Item {
	items := make([]Item, 0, q.Limit)
	for _, item := range e.items {
		if item.ItemID != q.ItemID && len(items) < q.Limit {
			items = append(items, item)
		}
	}
	return items
}

// startOf makes the lists of different Decisions begin at different places.
func startOf(decision string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(decision)) // never fails
	return int(h.Sum32() & 0xffff)
}
