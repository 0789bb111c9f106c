package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Completed is a document with our ids, as it is stored, and what a store needs to know of it.
type Completed struct {
	Document []byte // canonical bytes

	// Of a product.
	Product  bool
	Sellable bool         // active, with a variant that is not hidden
	Taxonomy []TaxonomyID // distinct nodes of the item, sorted
	taxonomy span         // of the member in the document, empty without one
}

// CompleteDocument is Complete, and tells what else a store needs of the document.
func CompleteDocument(d Document, id Identity) Completed {
	c := newCompletion(id, 0)
	if a, ok := d.(*CatalogAggregate); ok {
		c.begin(a)
		for i := range a.Variants {
			c.variant(&a.Variants[i])
		}
	}
	return c.end(d)
}

// completion writes a document. It takes the variants of a product one by one, so that a reader needs no
// memory for all of them. The methods begin and variant do nothing without a completion.
type completion struct {
	id  Identity
	w   *writer
	out Completed
	of  *CatalogAggregate
}

// newCompletion returns a completion for a document of about that size.
func newCompletion(id Identity, size int) *completion {
	const ids = 1 << 10
	return &completion{id: id, w: &writer{b: make([]byte, 0, size+size/8+ids)}}
}

// begin takes what comes before the variants.
func (c *completion) begin(a *CatalogAggregate) {
	if c == nil {
		return
	}
	a.completeItem(c.id)
	c.of = a
	c.out.Product, c.out.Taxonomy = true, a.taxonomyIDs()
	a.writeItem(c.w)
	c.out.taxonomy = c.w.taxonomy
}

// variant takes a variant; false without a completion.
func (c *completion) variant(v *Variant) bool {
	if c == nil {
		return false
	}
	v.complete(c.id, c.of.Item.ItemID)
	v.write(c.w)
	c.out.Sellable = c.out.Sellable || c.of.Item.Status == Active && v.Status != Hidden
	return true
}

// end takes the rest of a product, or the whole of another document.
func (c *completion) end(d Document) Completed {
	if a, ok := d.(*CatalogAggregate); ok {
		a.completeAvailability(c.id)
		a.writeAvailability(c.w)
	} else {
		d.complete(c.id)
		d.write(c.w)
	}
	c.out.Document = c.w.b
	if cap(c.w.b) > 2*len(c.w.b) {
		c.out.Document = bytes.Clone(c.w.b)
	}
	return c.out
}

func (a *CatalogAggregate) taxonomyIDs() []TaxonomyID {
	ids := make([]TaxonomyID, 0, len(a.Item.Taxonomy))
	for i := range a.Item.Taxonomy {
		ids = append(ids, a.Item.Taxonomy[i].TaxonomyID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Compose is Compose for a document that is not decoded: it replaces the taxonomy and the refresh_revision in
// the canonical bytes.
func (c *Completed) Compose(refreshRevision int64,
	categories map[TaxonomyID]*TaxonomyNodeDocument) ([]byte, error) {
	from, to := c.taxonomy.from, c.taxonomy.to
	revision := bytes.LastIndexByte(c.Document, ':') + 1
	w := &writer{b: make([]byte, 0, len(c.Document)+32)}
	if !slices.ContainsFunc(c.Taxonomy, func(id TaxonomyID) bool { return categories[id] != nil }) {
		w.b = append(w.b, c.Document[:revision]...)
	} else {
		var item Item
		if err := json.Unmarshal(c.taxonomyValue(), &item.Taxonomy); err != nil {
			return nil, fmt.Errorf("taxonomy of a completed document: %w", err)
		}
		nameTaxonomy(item.Taxonomy, categories)
		w.b = append(w.b, c.Document[:from]...)
		item.writeTaxonomy(w)
		w.b = append(w.b, c.Document[to:revision]...)
	}
	w.b = strconv.AppendInt(w.b, refreshRevision, 10)
	return append(w.b, '}'), nil
}

// taxonomyValue is the array in the member.
func (c *Completed) taxonomyValue() []byte {
	member := c.Document[c.taxonomy.from:c.taxonomy.to]
	return member[bytes.IndexByte(member, '['):]
}
