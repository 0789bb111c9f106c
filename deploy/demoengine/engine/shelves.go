package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// product is what the engine remembers of a product that it read.
type product struct {
	Item
	ExternalID string   `json:"external_id"`
	Active     bool     `json:"active"`
	Nodes      []string `json:"nodes"` // our ids of the categories that it hangs from
}

// readProduct takes what a recommendation needs out of a product's document.
func readProduct(document []byte) product {
	var d struct {
		Item struct {
			ItemID   string `json:"item_id"`
			Status   string `json:"status"`
			Taxonomy []struct {
				TaxonomyID string `json:"taxonomy_id"`
			} `json:"taxonomy"`
		} `json:"item"`
		Variants []struct {
			VariantID string `json:"variant_id"`
			Status    string `json:"status"`
		} `json:"variants"`
	}
	if json.Unmarshal(document, &d) != nil {
		return product{}
	}
	p := product{Item: Item{ItemID: d.Item.ItemID}, Active: d.Item.Status == "active"}
	for _, v := range d.Variants {
		if v.Status != "hidden" {
			p.VariantID = v.VariantID
			break
		}
	}
	for _, node := range d.Item.Taxonomy {
		p.Nodes = append(p.Nodes, node.TaxonomyID)
	}
	return p
}

// readRaw takes the same out of a provider's own document, as far as a demo cares: whether the platform says that it is on sale.
func readRaw(document []byte, o Observed) product {
	var d struct {
		Published bool   `json:"published"` // Tiendanube
		Status    string `json:"status"`    // Shopify, WooCommerce
	}
	if o.Entity != "product" || json.Unmarshal(document, &d) != nil {
		return product{}
	}
	return product{
		Item:   Item{ItemID: o.Subject},
		Active: o.Subject != "" && (d.Published || strings.EqualFold(d.Status, "active") || d.Status == "publish"),
	}
}

// shelf holds what one connection sells, as far as the engine was told.
type shelf struct {
	Revisions map[string]int64 `json:"revisions"` // by external id; deleted products stay, so that an older event does not bring them back
	Products  []product        `json:"products"`  // active ones, by external id
}

type shelves map[string]*shelf

// Known tells how many products of a connection the engine would recommend.
func (e *Engine) Known(connection string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if one := e.memory.shelves[connection]; one != nil {
		return len(one.Products)
	}
	return 0
}

// learn takes a product in, or out. The greatest revision counts, in whatever order the events come.
func (s shelves) learn(o Observed, p product) {
	if o.Entity != "product" {
		return
	}
	one := s[o.ConnectionID]
	if one == nil {
		one = &shelf{Revisions: map[string]int64{}}
		s[o.ConnectionID] = one
	}
	if one.Revisions[o.ExternalID] >= o.Revision {
		return
	}
	one.Revisions[o.ExternalID] = o.Revision
	at, there := slices.BinarySearchFunc(one.Products, o.ExternalID, func(p product, id string) int { return cmp.Compare(p.ExternalID, id) })
	p.ExternalID = o.ExternalID
	switch wanted := o.Operation != "delete" && p.Active; {
	case wanted && there:
		one.Products[at] = p
	case wanted:
		one.Products = slices.Insert(one.Products, at, p)
	case there:
		one.Products = slices.Delete(one.Products, at, at+1)
	}
}

// pick answers at most limit items of the connection, those first that share a category with the one that the shopper looks
// at, and never that one. Without such an item the list begins at a place that turns with every Decision.
func (s shelves) pick(connection, seen string, turn, limit int) []Item {
	one := s[connection]
	if one == nil {
		return nil
	}
	var nodes []string
	for _, p := range one.Products {
		if p.ItemID == seen {
			nodes, turn = p.Nodes, 0
		}
	}
	near, far := []Item{}, []Item{}
	for i := range one.Products {
		p := one.Products[(i+turn)%len(one.Products)]
		switch {
		case p.ItemID == seen:
		case slices.ContainsFunc(p.Nodes, func(id string) bool { return slices.Contains(nodes, id) }):
			near = append(near, p.Item)
		default:
			far = append(far, p.Item)
		}
	}
	all := append(near, far...)
	return all[:min(limit, len(all))]
}
