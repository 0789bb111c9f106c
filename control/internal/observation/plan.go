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
	source *Source
	items  []itemChange
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
}

// Plan returns what the outcomes change.
func (b *Batch) Plan(outcomes []Outcome) *Plan {
	p := &Plan{source: &b.Source, nodes: make(map[catalog.TaxonomyID][]byte)}
	at := make(map[string]int)
	c := b.Source.ConnectionID
	for i := range b.Elements {
		e := &b.Elements[i]
		if outcomes[i].Status != Accepted {
			continue
		}
		switch e.Entity {
		case catalog.Category:
			p.nodes[catalog.NewTaxonomyID(c, e.ExternalID)] = e.Completed.Document
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
	return p
}

// Empty reports whether only the archive and the entities change.
func (p *Plan) Empty() bool { return len(p.items) == 0 && len(p.nodes) == 0 }

// ChangesTaxonomy reports whether a node changes; then the nodes are locked exclusively.
func (p *Plan) ChangesTaxonomy() bool { return len(p.nodes) > 0 }

// Nodes returns the nodes to lock: those that change and those that items name.
func (p *Plan) Nodes() []catalog.TaxonomyID {
	ids := slices.Collect(maps.Keys(p.nodes))
	for i := range p.items {
		ids = append(ids, p.items[i].element.Completed.Taxonomy...)
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

// Aggregate is the new state of an item, without its documents.
type Aggregate struct {
	ItemID          ident.ItemID
	RefreshRevision int64
	TaxonomyIDs     []catalog.TaxonomyID
	Sellable        bool

	element    *Element
	source     *Source
	categories map[catalog.TaxonomyID]*catalog.TaxonomyNodeDocument
}

// Documents returns the stored document of the item and the body that is served, nil for a deleted item. The
// body is composed here, so that a batch does not hold the bodies of all of its items.
func (a *Aggregate) Documents() (document, body []byte, err error) {
	if !a.element.Completed.Product {
		return nil, nil, nil
	}
	completed := a.element.completed(a.source)
	body, err = completed.Compose(a.RefreshRevision, a.categories)
	return completed.Document, body, err
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
		completed := &change.element.Completed
		a := Aggregate{ItemID: change.id, RefreshRevision: before.RefreshRevision + change.accepted,
			TaxonomyIDs: completed.Taxonomy, Sellable: completed.Sellable,
			element: change.element, source: p.source, categories: categories}
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
