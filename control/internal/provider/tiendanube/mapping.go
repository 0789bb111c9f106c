package tiendanube

import (
	"cmp"
	"encoding/json"
	"slices"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

type product struct {
	ID           payload.ID                  `json:"id"`
	Name         payload.Texts               `json:"name"`
	Description  payload.Texts               `json:"description"`
	Handle       payload.Texts               `json:"handle"`
	Attributes   payload.List[payload.Texts] `json:"attributes"`
	Tags         *payload.Text               `json:"tags"`
	Brand        payload.Text                `json:"brand"`
	Published    payload.Flag                `json:"published"`
	FreeShipping payload.Flag                `json:"free_shipping"`
	UpdatedAt    payload.Time                `json:"updated_at"`
	Categories   payload.List[category]      `json:"categories"`
	Images       payload.List[image]         `json:"images"`
	Variants     payload.List[variant]       `json:"variants"`
}

type image struct {
	Src      payload.Text  `json:"src"`
	Position payload.Count `json:"position"`
	Alt      payload.Texts `json:"alt"`
}

type variant struct {
	ID               payload.ID                  `json:"id"`
	Price            payload.Amount              `json:"price"`
	PromotionalPrice payload.Amount              `json:"promotional_price"`
	Managed          payload.Flag                `json:"stock_management"`
	Stock            payload.Count               `json:"stock"`
	Levels           payload.List[level]         `json:"inventory_levels"`
	SKU              payload.Text                `json:"sku"`
	Values           payload.List[payload.Texts] `json:"values"`
}

type level struct {
	Stock payload.Count `json:"stock"`
}

type category struct {
	ID        payload.ID    `json:"id"`
	Name      payload.Texts `json:"name"`
	Handle    payload.Texts `json:"handle"`
	Parent    payload.ID    `json:"parent"`
	UpdatedAt payload.Time  `json:"updated_at"`
}

// UnmarshalJSON takes a category, or only its id.
func (c *category) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return c.ID.UnmarshalJSON(b)
	}
	type plain category
	return json.Unmarshal(b, (*plain)(c))
}

// read decodes one entity and sets its document.
func read(e catalog.Entity, raw []byte, language, currency string) provider.Fetched {
	f := provider.Fetched{Entity: e, Raw: raw, RawFormat: provider.JSON}
	var (
		doc catalog.Document
		err error
	)
	switch e {
	case catalog.Product:
		var p product
		if err = payload.Decode(raw, &p); err == nil {
			f.ExternalID, f.SourceUpdatedAt = string(p.ID), p.UpdatedAt.Time
			doc = p.document(language, currency)
		}
	case catalog.Category:
		var c category
		if err = payload.Decode(raw, &c); err == nil {
			f.ExternalID, f.SourceUpdatedAt, doc = string(c.ID), c.UpdatedAt.Time, c.document(language)
		}
	default:
		var o order
		if err = payload.Decode(raw, &o); err == nil {
			f.ExternalID, f.SourceUpdatedAt, doc = string(o.ID), o.UpdatedAt.Time, o.document()
		}
	}
	if err != nil {
		f.ExternalID = payload.FindID(raw)
		f.Malformed = &provider.Malformed{Reason: err.Error()}
		return f
	}
	f.SetDocument(doc)
	return f
}

func (p *product) document(language, currency string) *catalog.CatalogAggregate {
	a := &catalog.CatalogAggregate{Variants: []catalog.Variant{}, Availability: []catalog.Availability{}}
	a.Item = catalog.Item{
		Title:         p.Name.In(language),
		Description:   p.Description.In(language),
		Handles:       p.Handle.In(language),
		SourceVersion: p.UpdatedAt.Version(),
		Brand:         string(p.Brand),
		FreeShipping:  p.FreeShipping.Pointer(),
	}
	sellable := ""
	switch p.Published {
	case payload.Flag{Known: true, True: true}:
		a.Item.Status, sellable = catalog.Active, "published"
	case payload.Flag{Known: true}:
		a.Item.Status, sellable = catalog.Hidden, "unpublished"
	}
	if p.Tags != nil {
		a.Item.Tags = payload.Tags(string(*p.Tags))
	}
	a.Item.Media, a.Item.PrimaryMedia = payload.Media(pictures(p.Images, language))
	if p.Categories != nil {
		a.Item.Taxonomy = make([]catalog.TaxonomyRef, 0, len(p.Categories))
		for _, c := range p.Categories {
			a.Item.Taxonomy = append(a.Item.Taxonomy, c.reference(language))
		}
	}
	names := make([]catalog.LocalizedText, 0, len(p.Attributes)) // shared by all variants
	for _, name := range p.Attributes {
		names = append(names, name.In(language))
	}
	for _, v := range p.Variants {
		a.Variants = append(a.Variants, catalog.Variant{
			ExternalID:       string(v.ID),
			SKU:              string(v.SKU),
			Price:            v.Price.Money(currency),
			PromotionalPrice: v.PromotionalPrice.Money(currency),
			Attributes:       attributes(names, v.Values, language),
		})
		a.Availability = append(a.Availability,
			catalog.Availability{VariantExternalID: string(v.ID), Sellable: sellable, Quantity: v.quantity()})
	}
	return a
}

// pictures are in the order of their positions; the first is primary.
func pictures(images []image, language string) []payload.Picture {
	if images == nil {
		return nil
	}
	slices.SortStableFunc(images, func(a, b image) int { return cmp.Compare(a.Position.N, b.Position.N) })
	out := make([]payload.Picture, 0, len(images))
	for _, i := range images {
		out = append(out, payload.Picture{URL: string(i.Src), Alt: i.Alt.In(language)})
	}
	return out
}

// quantity is the stock at all locations; it is unknown when the shop does not track the stock.
func (v *variant) quantity() *int64 {
	if !v.Managed.True {
		return nil
	}
	if len(v.Levels) == 0 {
		return v.Stock.Quantity()
	}
	var sum int64
	for _, l := range v.Levels {
		if !l.Stock.Known {
			return nil
		}
		sum += l.Stock.N
	}
	return &sum
}

// attributes pairs the names of the product with the values of the variant.
func attributes(names []catalog.LocalizedText, values []payload.Texts, language string) []catalog.Attribute {
	var out []catalog.Attribute
	for i := range min(len(names), len(values)) {
		if value := values[i].In(language); len(names[i]) > 0 && len(value) > 0 {
			out = append(out, catalog.Attribute{Name: names[i], Value: value})
		}
	}
	return out
}

func (c category) reference(language string) catalog.TaxonomyRef {
	return catalog.TaxonomyRef{ExternalID: string(c.ID), Name: c.Name.In(language),
		Handles: c.Handle.In(language), ParentExternalID: c.parent()}
}

func (c category) parent() string {
	if !c.Parent.IsSet() {
		return ""
	}
	return string(c.Parent)
}

func (c category) document(language string) *catalog.TaxonomyNodeDocument {
	return &catalog.TaxonomyNodeDocument{Name: c.Name.In(language), Handles: c.Handle.In(language),
		ParentExternalID: c.parent()}
}
