package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// product is what the engine stores of a product that it read.
type product struct {
	Item
	ExternalID string   `json:"external_id"`
	Active     bool     `json:"active"`
	Nodes      []string `json:"nodes"` // our ids of its categories
}

// productFromDocument reads what a recommendation needs from a product's document.
func productFromDocument(document []byte) product {
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

// productFromRaw reads from a provider's own document whether the platform sells the product.
func productFromRaw(document []byte, o Observed) product {
	var d struct {
		Published bool   `json:"published"` // Tiendanube
		Status    string `json:"status"`    // Shopify, WooCommerce
	}
	if o.Entity != "product" || json.Unmarshal(document, &d) != nil {
		return product{}
	}
	return product{
		Item: Item{ItemID: o.Subject},
		Active: o.Subject != "" &&
			(d.Published || strings.EqualFold(d.Status, "active") || d.Status == "publish"),
	}
}

// productList is what one connection sells, as far as the engine read it.
type productList struct {
	// Revisions are by external id. Those of deleted products stay, so that an older event does not restore
	// them.
	Revisions map[string]int64 `json:"revisions"`
	Products  []product        `json:"products"` // active ones, by external id
}

type catalogs map[string]*productList

// Known returns how many products of a connection the engine would recommend.
func (e *Engine) Known(connection string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if one := e.memory.catalogs[connection]; one != nil {
		return len(one.Products)
	}
	return 0
}

// apply adds, replaces or removes a product. The greatest revision counts, in whatever order events come.
func (s catalogs) apply(o Observed, p product) {
	if o.Entity != "product" {
		return
	}
	one := s[o.ConnectionID]
	if one == nil {
		one = &productList{Revisions: map[string]int64{}}
		s[o.ConnectionID] = one
	}
	if one.Revisions[o.ExternalID] >= o.Revision {
		return
	}
	one.Revisions[o.ExternalID] = o.Revision
	at, there := slices.BinarySearchFunc(one.Products, o.ExternalID,
		func(p product, id string) int { return cmp.Compare(p.ExternalID, id) })
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

// recommend returns at most limit items of the connection without the one that the shopper looks at; those
// that share a category with it come first. Without such an item the list begins at start.
func (s catalogs) recommend(connection, seen string, start, limit int) []Item {
	one := s[connection]
	if one == nil {
		return nil
	}
	var nodes []string
	for _, p := range one.Products {
		if p.ItemID == seen {
			nodes, start = p.Nodes, 0
		}
	}
	sameCategory, others := []Item{}, []Item{}
	for i := range one.Products {
		p := one.Products[(i+start)%len(one.Products)]
		switch {
		case p.ItemID == seen:
		case slices.ContainsFunc(p.Nodes, func(id string) bool { return slices.Contains(nodes, id) }):
			sameCategory = append(sameCategory, p.Item)
		default:
			others = append(others, p.Item)
		}
	}
	all := append(sameCategory, others...)
	return all[:min(limit, len(all))]
}
