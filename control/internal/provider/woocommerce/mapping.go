package woocommerce

import (
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

type product struct {
	ID          payload.ID               `json:"id"`
	Name        *string                  `json:"name"`
	Slug        payload.Text             `json:"slug"`
	Permalink   payload.Text             `json:"permalink"`
	Type        payload.Text             `json:"type"`
	Status      payload.Text             `json:"status"`
	Visibility  payload.Text             `json:"catalog_visibility"`
	Description payload.Text             `json:"description"`
	Modified    payload.Time             `json:"date_modified_gmt"`
	Categories  payload.List[term]       `json:"categories"`
	Tags        payload.List[term]       `json:"tags"`
	Images      payload.List[image]      `json:"images"`
	Variations  payload.List[payload.ID] `json:"variations"`
	offer
}

// offer is what a simple product and a variation have in common.
type offer struct {
	SKU          payload.Text   `json:"sku"`
	Price        payload.Amount `json:"price"`
	RegularPrice payload.Amount `json:"regular_price"`
	SalePrice    payload.Amount `json:"sale_price"`
	OnSale       payload.Flag   `json:"on_sale"`
	ManageStock  payload.Flag   `json:"manage_stock"` // "parent" in a variation: the product's stock
	Quantity     payload.Count  `json:"stock_quantity"`
	StockStatus  payload.Text   `json:"stock_status"`
}

type variation struct {
	ID         payload.ID   `json:"id"`
	Status     payload.Text `json:"status"`
	Attributes payload.List[struct {
		Name   payload.Text `json:"name"`
		Slug   payload.Text `json:"slug"`
		Option payload.Text `json:"option"`
	}] `json:"attributes"`
	offer
}

type term struct {
	ID     payload.ID   `json:"id"`
	Name   payload.Text `json:"name"`
	Slug   payload.Text `json:"slug"`
	Parent payload.ID   `json:"parent"`
}

type image struct {
	Src payload.Text `json:"src"`
	Alt payload.Text `json:"alt"`
}

// read decodes a category or an order and sets its document.
func read(f *provider.Fetched, raw []byte, language string) {
	if f.Entity == catalog.Category {
		var c term
		if err := payload.Decode(raw, &c); err != nil {
			f.ExternalID, f.Malformed = payload.FindID(raw), &provider.Malformed{Reason: err.Error()}
			return
		}
		f.ExternalID = string(c.ID)
		d := &catalog.TaxonomyNodeDocument{Name: payload.Localized(language, string(c.Name)),
			Handles: payload.Localized(language, string(c.Slug))}
		if c.Parent.IsSet() {
			d.ParentExternalID = string(c.Parent)
		}
		f.SetDocument(d)
		return
	}
	var o order
	if err := payload.Decode(raw, &o); err != nil {
		f.ExternalID, f.Malformed = payload.FindID(raw), &provider.Malformed{Reason: err.Error()}
		return
	}
	f.ExternalID, f.SourceUpdatedAt = string(o.ID), o.Modified.Time
	f.SetDocument(o.document())
}

// variable reports whether the product is sold only by its variations.
func (p *product) variable() bool {
	return p.Type == "variable" || p.Type == "variable-subscription" || len(p.Variations) > 0
}

func (p *product) status() catalog.Status {
	switch {
	case p.Status == "":
		return ""
	case p.Status == "draft", p.Status == "pending", p.Status == "auto-draft", p.Status == "future":
		return catalog.Draft
	case p.Status == "publish" && p.Visibility != "hidden":
		return catalog.Active
	default:
		return catalog.Hidden // private, deleted, or a status of a plugin
	}
}

func (p *product) document(variations []variation, language, currency string) *catalog.CatalogAggregate {
	a := &catalog.CatalogAggregate{Variants: []catalog.Variant{}, Availability: []catalog.Availability{}}
	a.Item = catalog.Item{
		Status:        p.status(),
		Description:   payload.Localized(language, string(p.Description)),
		Handles:       payload.Localized(language, string(p.Slug)),
		URLs:          payload.Localized(language, payload.Link(string(p.Permalink))),
		SourceVersion: p.Modified.Version(),
	}
	if p.Name != nil { // it may be empty in a draft
		a.Item.Title = catalog.LocalizedText{payload.Language(language): *p.Name}
	}
	if p.Tags != nil {
		a.Item.Tags = make([]string, 0, len(p.Tags))
		for _, t := range p.Tags {
			a.Item.Tags = append(a.Item.Tags, string(t.Name))
		}
	}
	if p.Categories != nil {
		a.Item.Taxonomy = make([]catalog.TaxonomyRef, 0, len(p.Categories))
		for _, c := range p.Categories {
			a.Item.Taxonomy = append(a.Item.Taxonomy, catalog.TaxonomyRef{ExternalID: string(c.ID),
				Name:    payload.Localized(language, string(c.Name)),
				Handles: payload.Localized(language, string(c.Slug))})
		}
	}
	a.Item.Media, a.Item.PrimaryMedia = payload.Media(pictures(p.Images, language))
	if len(variations) == 0 { // a simple product: an item has a variant
		p.add(a, string(p.ID), "", nil, currency)
	}
	for _, v := range variations {
		v.add(a, string(v.ID), v.status(), v.attributes(language), currency)
	}
	return a
}

func pictures(images []image, language string) []payload.Picture {
	if images == nil {
		return nil
	}
	out := make([]payload.Picture, 0, len(images))
	for _, i := range images {
		out = append(out, payload.Picture{URL: string(i.Src),
			Alt: payload.Localized(language, string(i.Alt))})
	}
	return out
}

// add appends a variant and its availability.
func (o *offer) add(a *catalog.CatalogAggregate, id string, status catalog.Status,
	attributes []catalog.Attribute, currency string) {
	v := catalog.Variant{ExternalID: id, Status: status, SKU: string(o.SKU), Attributes: attributes}
	regular := o.RegularPrice
	if regular == "" {
		regular = o.Price
	}
	v.Price = regular.Money(currency)
	if o.OnSale.True {
		v.PromotionalPrice = o.SalePrice.Money(currency)
	}
	available := catalog.Availability{VariantExternalID: id, Sellable: string(o.StockStatus)}
	if o.ManageStock.True {
		available.Quantity = o.Quantity.Quantity()
	}
	a.Variants = append(a.Variants, v)
	a.Availability = append(a.Availability, available)
}

func (v *variation) status() catalog.Status {
	switch v.Status {
	case "":
		return ""
	case "publish":
		return catalog.Active
	default:
		return catalog.Hidden
	}
}

func (v *variation) attributes(language string) []catalog.Attribute {
	var out []catalog.Attribute
	for _, at := range v.Attributes {
		name := at.Name
		if name == "" {
			name = at.Slug
		}
		if name != "" && at.Option != "" { // an empty option is "any"
			out = append(out, catalog.Attribute{Name: payload.Localized(language, string(name)),
				Value: payload.Localized(language, string(at.Option))})
		}
	}
	return out
}
