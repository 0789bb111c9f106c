package observation

import (
	"fmt"
	"maps"
	"slices"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Plan is what the accepted elements of a batch change besides the archive.
type Plan struct {
	items []itemChange
	// nodes are the changed categories with the document of their last accepted element, nil for a deleted
	// one.
	nodes map[catalog.TaxonomyID][]byte
}

// itemChange is a product's last accepted element and the number of accepted ones: each raises the
// refresh_revision.
type itemChange struct {
	id       ident.ItemID
	element  *Element
	accepted int64
	taxonomy []catalog.TaxonomyID // sorted, each once
}

// Plan returns what the outcomes change.
func (b *Batch) Plan(outcomes []Outcome) *Plan {
	p := &Plan{nodes: make(map[catalog.TaxonomyID][]byte)}
	at := make(map[string]int)
	c := b.Source.ConnectionID
	for i := range b.Elements {
		e := &b.Elements[i]
		if outcomes[i].Status != Accepted {
			continue
		}
		switch e.Entity {
		case catalog.Category:
			p.nodes[catalog.NewTaxonomyID(c, e.ExternalID)] = e.Document
		case catalog.Product:
			n, seen := at[e.ExternalID]
			if !seen {
				n = len(p.items)
				at[e.ExternalID] = n
				p.items = append(p.items, itemChange{id: catalog.NewItemID(c, e.ExternalID)})
			}
			p.items[n].element = e
			p.items[n].accepted++
		case catalog.Order:
		}
	}
	for i := range p.items {
		p.items[i].taxonomy = taxonomyOf(p.items[i].element)
	}
	return p
}

func taxonomyOf(e *Element) []catalog.TaxonomyID {
	product, ok := e.Content.(*catalog.CatalogAggregate)
	if !ok {
		return nil
	}
	return TaxonomyOf(product)
}

// TaxonomyOf returns the distinct nodes of an item, sorted.
func TaxonomyOf(a *catalog.CatalogAggregate) []catalog.TaxonomyID {
	ids := make([]catalog.TaxonomyID, 0, len(a.Item.Taxonomy))
	for i := range a.Item.Taxonomy {
		ids = append(ids, a.Item.Taxonomy[i].TaxonomyID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Empty reports whether only the archive and the entities change.
func (p *Plan) Empty() bool { return len(p.items) == 0 && len(p.nodes) == 0 }

// ChangesTaxonomy reports whether a node changes; then the nodes are locked exclusively.
func (p *Plan) ChangesTaxonomy() bool { return len(p.nodes) > 0 }

// Nodes returns the nodes to lock: those that change and those that items name.
func (p *Plan) Nodes() []catalog.TaxonomyID {
	ids := slices.Collect(maps.Keys(p.nodes))
	for i := range p.items {
		ids = append(ids, p.items[i].taxonomy...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Items returns the items that change.
func (p *Plan) Items() []ident.ItemID {
	ids := make([]ident.ItemID, 0, len(p.items))
	for i := range p.items {
		ids = append(ids, p.items[i].id)
	}
	return ids
}

// Locked is what the store read under its locks.
type Locked struct {
	Nodes map[catalog.TaxonomyID][]byte // documents; nil where none is known
	Items map[ident.ItemID]LockedItem
}

// LockedItem is the stored state of an item; the zero value is an item that never existed.
type LockedItem struct {
	RefreshRevision int64
	TaxonomyIDs     []catalog.TaxonomyID
}

// Aggregate is the new state of an item. Document and Body are nil for a deleted one.
type Aggregate struct {
	ItemID          ident.ItemID
	RefreshRevision int64
	Document        []byte
	Body            []byte
	TaxonomyIDs     []catalog.TaxonomyID
	Sellable        bool
}

// Link links an item to a node.
type Link struct {
	TaxonomyID catalog.TaxonomyID
	ItemID     ident.ItemID
}

// Effects is what the store has to write.
type Effects struct {
	Aggregates            []Aggregate
	Nodes                 map[catalog.TaxonomyID][]byte // those whose document changes
	AddLinks, RemoveLinks []Link
}

// Effects computes the writes from what was locked.
func (p *Plan) Effects(l Locked) (Effects, error) {
	out := Effects{Nodes: make(map[catalog.TaxonomyID][]byte)}
	known := maps.Clone(l.Nodes)
	for id, document := range p.nodes {
		if !slices.Equal(document, l.Nodes[id]) {
			out.Nodes[id], known[id] = document, document
		}
	}
	categories, err := Categories(known)
	if err != nil {
		return Effects{}, err
	}
	for i := range p.items {
		change := &p.items[i]
		before := l.Items[change.id]
		a := Aggregate{ItemID: change.id, RefreshRevision: before.RefreshRevision + change.accepted}
		if product, ok := change.element.Content.(*catalog.CatalogAggregate); ok {
			a.Document = change.element.Document
			a.Body = catalog.Compose(product, a.RefreshRevision, categories)
			a.TaxonomyIDs, a.Sellable = change.taxonomy, Sellable(product)
		}
		out.Aggregates = append(out.Aggregates, a)
		out.AddLinks = appendLinks(out.AddLinks, a.ItemID, a.TaxonomyIDs, before.TaxonomyIDs)
		out.RemoveLinks = appendLinks(out.RemoveLinks, a.ItemID, before.TaxonomyIDs, a.TaxonomyIDs)
	}
	return out, nil
}

// Categories decodes the documents of nodes; nodes without a document are left out.
func Categories(
	documents map[catalog.TaxonomyID][]byte,
) (map[catalog.TaxonomyID]*catalog.TaxonomyNodeDocument, error) {
	out := make(map[catalog.TaxonomyID]*catalog.TaxonomyNodeDocument, len(documents))
	for id, document := range documents {
		if document == nil {
			continue
		}
		d, err := catalog.Decode(catalog.Category, document)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", id, err)
		}
		if node, ok := d.(*catalog.TaxonomyNodeDocument); ok {
			out[id] = node
		}
	}
	return out, nil
}

// appendLinks appends links to the nodes ids that are not in except. Both are sorted.
func appendLinks(links []Link, item ident.ItemID, ids, except []catalog.TaxonomyID) []Link {
	for _, id := range ids {
		if _, found := slices.BinarySearch(except, id); !found {
			links = append(links, Link{id, item})
		}
	}
	return links
}

// Sellable reports whether an item may be recommended without an engine: it is active and a variant is not
// hidden. The provider's availability text does not count.
func Sellable(a *catalog.CatalogAggregate) bool {
	return a.Item.Status == catalog.Active &&
		slices.ContainsFunc(a.Variants, func(v catalog.Variant) bool { return v.Status != catalog.Hidden })
}
