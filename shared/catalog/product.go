package catalog

import "storefront.internal/shared/ident"

func (a *CatalogAggregate) complete(id Identity) {
	a.completeItem(id)
	for i := range a.Variants {
		a.Variants[i].complete(id, a.Item.ItemID)
	}
	a.completeAvailability(id)
}

func (a *CatalogAggregate) completeItem(id Identity) {
	a.Item.ItemID = NewItemID(id.ConnectionID, id.ExternalID)
	a.Item.StoreID, a.Item.ConnectionID, a.Item.ExternalID = id.StoreID, id.ConnectionID, id.ExternalID
	for i := range a.Item.Taxonomy {
		t := &a.Item.Taxonomy[i]
		t.TaxonomyID = NewTaxonomyID(id.ConnectionID, t.ExternalID)
		if t.ParentExternalID != "" {
			t.ParentID = NewTaxonomyID(id.ConnectionID, t.ParentExternalID)
		}
	}
	a.RefreshRevision = id.Revision
}

func (v *Variant) complete(id Identity, item ident.ItemID) {
	v.VariantID, v.ItemID = NewVariantID(id.ConnectionID, id.ExternalID, v.ExternalID), item
}

func (a *CatalogAggregate) completeAvailability(id Identity) {
	for i := range a.Availability {
		if v := &a.Availability[i]; v.VariantExternalID != "" {
			v.VariantID = NewVariantID(id.ConnectionID, id.ExternalID, v.VariantExternalID)
		}
	}
}

// readProduct reads a product. A completion takes its variants one by one; without one the product has them.
func readProduct(r *reader, root int, c *completion) *CatalogAggregate {
	a := &CatalogAggregate{Item: readItem(r, r.object(r.need(root, "item"))), Variants: []Variant{},
		Availability: []Availability{}}
	r.keep()
	c.begin(a)
	list := r.need(root, "variants")
	byVariantID := make(map[string]string) // variant_id in the document → external id
	known := make(map[string]bool)
	for n := range r.each(list, maxVariants) {
		v := readVariant(r, r.object(n))
		if known[v.ExternalID] {
			r.fail(r.get(n, "external_id"), DuplicateExternalID)
		}
		known[v.ExternalID] = true
		if c.variant(&v) {
			r.recycle()
		} else {
			a.Variants = append(a.Variants, v)
		}
		if id := r.documentVariantID(n); id != "" {
			byVariantID[id] = v.ExternalID
		}
	}
	if r.violation == nil && len(known) == 0 {
		r.fail(list, TooFew)
	}
	for n := range r.each(r.get(root, "availability"), maxAvailable) {
		a.Availability = append(a.Availability, readAvailability(r, r.object(n), known, byVariantID))
	}
	return a
}

// documentVariantID returns the variant_id that came with a variant or an availability. It is not one of our
// ids and is not kept: it allows a document that we completed to be delivered again, in which an availability
// has no other reference to its variant.
func (r *reader) documentVariantID(n int) string {
	n = r.get(n, "variant_id")
	if n == absent || r.kind(n) != '"' {
		return ""
	}
	if s := string(r.tree.string(n)); ident.Valid(ident.Variant, s) {
		return s
	}
	return ""
}

func readItem(r *reader, n int) Item {
	item := Item{
		Title:         r.localized(r.need(n, "title")),
		Status:        r.status(r.need(n, "status"), Active, Hidden, Draft),
		SourceVersion: r.shortText(r.get(n, "source_version"), WrongType),
		Description:   r.localized(r.get(n, "description")),
		Handles:       r.localized(r.get(n, "handles")),
		URLs:          r.localizedURLs(r.get(n, "urls")),
		Brand:         r.shortText(r.get(n, "brand"), WrongType),
		FreeShipping:  r.boolean(r.get(n, "free_shipping")),
	}
	if media := r.object(r.get(n, "primary_media")); media != absent {
		m := readMedia(r, media)
		item.PrimaryMedia = &m
	}
	item.Media = list(r, r.get(n, "media"), maxList, func(n int) Media { return readMedia(r, r.object(n)) })
	item.Tags = list(r, r.get(n, "tags"), maxList, func(n int) string { return r.shortText(n, WrongType) })
	item.Taxonomy = list(r, r.get(n, "taxonomy"), maxList, func(n int) TaxonomyRef {
		n = r.object(n)
		return TaxonomyRef{
			ExternalID: r.externalID(r.need(n, "external_id")),
			Name:       r.localized(r.get(n, "name")),
			Handles:    r.localized(r.get(n, "handles")),
		}
	})
	return item
}

// list returns the elements of an array, nil when absent.
func list[T any](r *reader, n, most int, read func(n int) T) []T {
	if n == absent {
		return nil
	}
	out := []T{}
	for child := range r.each(n, most) {
		out = append(out, read(child))
	}
	return out
}

func readMedia(r *reader, n int) Media {
	return Media{URL: r.url(r.need(n, "url")), Alt: r.localized(r.get(n, "alt"))}
}

func readVariant(r *reader, n int) Variant {
	v := Variant{
		ExternalID:       r.externalID(r.need(n, "external_id")),
		Status:           r.status(r.get(n, "status"), Active, Hidden),
		SKU:              r.shortText(r.get(n, "sku"), WrongType),
		Title:            r.localized(r.get(n, "title")),
		Price:            readPrice(r, r.get(n, "price")),
		PromotionalPrice: readPrice(r, r.get(n, "promotional_price")),
	}
	v.Attributes = list(r, r.get(n, "attributes"), maxList, func(n int) Attribute {
		n = r.object(n)
		return Attribute{Name: r.localized(r.need(n, "name")), Value: r.localized(r.need(n, "value"))}
	})
	return v
}

func readPrice(r *reader, n int) *Money {
	if n == absent {
		return nil
	}
	m := r.money(n)
	return &m
}

func readAvailability(r *reader, n int, known map[string]bool, byVariantID map[string]string) Availability {
	v := Availability{
		VariantExternalID: r.externalID(r.get(n, "variant_external_id")),
		Sellable:          r.shortText(r.get(n, "sellable"), WrongType),
		AsOf:              r.time(r.get(n, "as_of")),
	}
	if v.VariantExternalID == "" {
		if v.VariantExternalID = byVariantID[r.documentVariantID(n)]; v.VariantExternalID == "" {
			r.need(n, "variant_external_id")
		}
	} else if !known[v.VariantExternalID] {
		r.fail(r.get(n, "variant_external_id"), UnknownVariant)
	}
	if quantity := r.get(n, "quantity"); quantity != absent {
		q := r.integer(quantity, -maxInteger, maxInteger)
		v.Quantity = &q
	}
	return v
}
