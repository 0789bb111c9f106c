package catalog

import "slices"

// Compose returns the body of getCatalogItem: the aggregate as stored, with the refresh_revision of the item,
// and with the name, handles and parent of each taxonomy node whose category document is known. Other nodes
// keep what was delivered with the item. It does not change the stored aggregate.
func Compose(stored *CatalogAggregate, refreshRevision int64,
	categories map[TaxonomyID]*TaxonomyNodeDocument) []byte {
	a := *stored
	a.RefreshRevision = refreshRevision
	if len(categories) > 0 {
		a.Item.Taxonomy = slices.Clone(stored.Item.Taxonomy)
		nameTaxonomy(a.Item.Taxonomy, categories)
	}
	w := newWriter()
	a.write(w)
	return w.b
}

// nameTaxonomy takes name, handles and parent from the known categories.
func nameTaxonomy(refs []TaxonomyRef, categories map[TaxonomyID]*TaxonomyNodeDocument) {
	for i := range refs {
		if c := categories[refs[i].TaxonomyID]; c != nil {
			refs[i].Name, refs[i].Handles, refs[i].ParentID = c.Name, c.Handles, c.ParentID
		}
	}
}

func (a *CatalogAggregate) write(w *writer) {
	a.writeItem(w)
	for i := range a.Variants {
		a.Variants[i].write(w)
	}
	a.writeAvailability(w)
}

// writeItem writes what comes before the variants.
func (a *CatalogAggregate) writeItem(w *writer) {
	w.open('{')
	w.name("item")
	a.Item.write(w)
	w.name("variants")
	w.open('[')
}

// writeAvailability writes what comes behind the variants.
func (a *CatalogAggregate) writeAvailability(w *writer) {
	w.close(']')
	w.name("availability")
	w.open('[')
	for i := range a.Availability {
		a.Availability[i].write(w)
	}
	w.close(']')
	w.integer("refresh_revision", a.RefreshRevision)
	w.close('}')
}

func (i *Item) write(w *writer) {
	w.open('{')
	w.textMember("item_id", string(i.ItemID))
	w.textMember("store_id", string(i.StoreID))
	w.textMember("connection_id", string(i.ConnectionID))
	w.textMember("external_id", i.ExternalID)
	w.localized("title", i.Title)
	w.textMember("status", string(i.Status))
	w.textMember("source_version", i.SourceVersion)
	if i.PrimaryMedia != nil {
		w.name("primary_media")
		i.PrimaryMedia.write(w)
	}
	w.localized("description", i.Description)
	w.localized("handles", i.Handles)
	w.localized("urls", i.URLs)
	writeList(w, "media", i.Media, func(m *Media) { m.write(w) })
	w.textMember("brand", i.Brand)
	writeList(w, "tags", i.Tags, func(tag *string) { w.text(*tag) })
	if i.FreeShipping != nil {
		w.name("free_shipping")
		if *i.FreeShipping {
			w.raw([]byte("true"))
		} else {
			w.raw([]byte("false"))
		}
	}
	w.taxonomy.from = len(w.b)
	i.writeTaxonomy(w)
	w.taxonomy.to = len(w.b)
	w.close('}')
}

func (i *Item) writeTaxonomy(w *writer) {
	writeList(w, "taxonomy", i.Taxonomy, func(t *TaxonomyRef) { t.write(w) })
}

// writeList writes a member unless the slice is nil.
func writeList[T any](w *writer, name string, list []T, write func(*T)) {
	if list == nil {
		return
	}
	w.name(name)
	w.open('[')
	for i := range list {
		write(&list[i])
	}
	w.close(']')
}

func (m *Media) write(w *writer) {
	w.open('{')
	w.textMember("url", m.URL)
	w.localized("alt", m.Alt)
	w.close('}')
}

func (t *TaxonomyRef) write(w *writer) {
	w.open('{')
	w.textMember("taxonomy_id", string(t.TaxonomyID))
	w.textMember("external_id", t.ExternalID)
	w.localized("name", t.Name)
	w.localized("handles", t.Handles)
	w.textMember("parent_id", string(t.ParentID))
	w.close('}')
}

func (v *Variant) write(w *writer) {
	w.open('{')
	w.textMember("variant_id", string(v.VariantID))
	w.textMember("item_id", string(v.ItemID))
	w.textMember("external_id", v.ExternalID)
	w.textMember("status", string(v.Status))
	w.textMember("sku", v.SKU)
	w.localized("title", v.Title)
	w.money("price", v.Price)
	w.money("promotional_price", v.PromotionalPrice)
	writeList(w, "attributes", v.Attributes, func(a *Attribute) {
		w.open('{')
		w.localized("name", a.Name)
		w.localized("value", a.Value)
		w.close('}')
	})
	w.close('}')
}

func (a *Availability) write(w *writer) {
	w.open('{')
	w.textMember("variant_id", string(a.VariantID))
	w.textMember("sellable", a.Sellable)
	if !a.AsOf.IsZero() {
		w.time("as_of", a.AsOf)
	}
	if a.Quantity != nil {
		w.integer("quantity", *a.Quantity)
	}
	w.close('}')
}
