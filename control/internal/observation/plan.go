package observation

import (
	"fmt"
	"maps"
	"slices"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Plan is what the accepted elements of a batch change beside the archive.
type Plan struct {
	items []itemChange
	// nodes are the categories that change, by their last accepted element: nil bytes are a deleted one.
	nodes map[catalog.TaxonomyID][]byte
}

// itemChange is a product's last accepted element, and how many were accepted: each raises the refresh_revision.
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

// TaxonomyOf returns the nodes that an item hangs from, sorted, each once.
func TaxonomyOf(a *catalog.CatalogAggregate) []catalog.TaxonomyID {
	ids := make([]catalog.TaxonomyID, 0, len(a.Item.Taxonomy))
	for i := range a.Item.Taxonomy {
		ids = append(ids, a.Item.Taxonomy[i].TaxonomyID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Empty reports whether nothing but the archive and the entities changes.
func (p *Plan) Empty() bool { return len(p.items) == 0 && len(p.nodes) == 0 }

// ChangesTaxonomy reports whether a node changes: then the nodes are locked against everybody.
func (p *Plan) ChangesTaxonomy() bool { return len(p.nodes) > 0 }

// Nodes returns the nodes that must be locked before anything is composed: those that change and those that items name.
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

// LockedItem is what is known of an item; its zero value is an item that never was.
type LockedItem struct {
	RefreshRevision int64
	Taxonomy        []catalog.TaxonomyID
}

// Aggregate is an item as it shall be. Document and Body are nil for a deleted one.
type Aggregate struct {
	ItemID          ident.ItemID
	RefreshRevision int64
	Document        []byte
	Body            []byte
	Taxonomy        []catalog.TaxonomyID
	Sellable        bool
}

// Link ties an item to a node.
type Link struct {
	TaxonomyID catalog.TaxonomyID
	ItemID     ident.ItemID
}

// Effects is what the store has to write.
type Effects struct {
	Aggregates []Aggregate
	Nodes      map[catalog.TaxonomyID][]byte // those whose bytes change
	Tie, Untie []Link
}

// Effects composes what changes from what was locked.
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
			a.Taxonomy, a.Sellable = change.taxonomy, Sellable(product)
		}
		out.Aggregates = append(out.Aggregates, a)
		out.Tie = appendLinks(out.Tie, a.ItemID, a.Taxonomy, before.Taxonomy)
		out.Untie = appendLinks(out.Untie, a.ItemID, before.Taxonomy, a.Taxonomy)
	}
	return out, nil
}

// Categories reads the documents of nodes, leaving out those that have none.
func Categories(documents map[catalog.TaxonomyID][]byte) (map[catalog.TaxonomyID]*catalog.TaxonomyNodeDocument, error) {
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

// appendLinks appends the links to the nodes of which that are not in but. Both are sorted.
func appendLinks(links []Link, item ident.ItemID, of, but []catalog.TaxonomyID) []Link {
	for _, id := range of {
		if _, found := slices.BinarySearch(but, id); !found {
			links = append(links, Link{id, item})
		}
	}
	return links
}

// Sellable reports whether an item may be recommended when no engine does it: it is shown, and so is one of its variants.
// What the provider said of availability is opaque and decides nothing.
func Sellable(a *catalog.CatalogAggregate) bool {
	return a.Item.Status == catalog.Active &&
		slices.ContainsFunc(a.Variants, func(v catalog.Variant) bool { return v.Status != catalog.Hidden })
}
