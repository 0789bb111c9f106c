package shopify

import (
	"encoding/json"
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

// connection is a list of nodes in either form of GraphQL lists.
type connection[T any] struct {
	Nodes payload.List[T] `json:"nodes"`
	Edges payload.List[struct {
		Node T `json:"node"`
	}] `json:"edges"`
	PageInfo pagePosition `json:"pageInfo"`
}

type pagePosition struct {
	HasNextPage bool   `json:"hasNextPage"`
	EndCursor   string `json:"endCursor"`
}

func (c *connection[T]) items() []T {
	out := c.Nodes
	for _, e := range c.Edges {
		out = append(out, e.Node)
	}
	return out
}

type product struct {
	ID              string                 `json:"id"`
	Title           *string                `json:"title"`
	DescriptionHTML payload.Text           `json:"descriptionHtml"`
	Handle          payload.Text           `json:"handle"`
	Vendor          payload.Text           `json:"vendor"`
	Status          payload.Text           `json:"status"`
	Tags            tags                   `json:"tags"`
	UpdatedAt       payload.Time           `json:"updatedAt"`
	OnlineStoreURL  payload.Text           `json:"onlineStoreUrl"`
	Variants        connection[variant]    `json:"variants"`
	Media           connection[media]      `json:"media"`
	Collections     connection[collection] `json:"collections"`
}

// tags are an array, or in older documents a text joined by commas.
type tags []string

// UnmarshalJSON takes both forms.
func (t *tags) UnmarshalJSON(b []byte) error {
	var joined payload.Text
	if b[0] == '"' {
		err := joined.UnmarshalJSON(b)
		*t = payload.Tags(string(joined))
		return err
	}
	return json.Unmarshal(b, (*[]string)(t))
}

type variant struct {
	ID             string         `json:"id"`
	SKU            payload.Text   `json:"sku"`
	Price          payload.Amount `json:"price"`
	CompareAtPrice payload.Amount `json:"compareAtPrice"`
	Policy         payload.Text   `json:"inventoryPolicy"`
	Quantity       payload.Count  `json:"inventoryQuantity"`
	ForSale        payload.Flag   `json:"availableForSale"`
	Item           struct {
		Tracked payload.Flag `json:"tracked"`
	} `json:"inventoryItem"`
	Options payload.List[struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}] `json:"selectedOptions"`
}

type media struct {
	ID    string       `json:"id"`
	Alt   payload.Text `json:"alt"`
	Image *struct {
		URL payload.Text `json:"url"`
		Alt payload.Text `json:"altText"`
	} `json:"image"`
}

type collection struct {
	ID        string       `json:"id"`
	Title     *string      `json:"title"`
	Handle    payload.Text `json:"handle"`
	UpdatedAt payload.Time `json:"updatedAt"`
}

// setDocument sets the document of a product.
func (p *product) setDocument(f *provider.Fetched, profile provider.Profile) {
	f.ExternalID, _ = parseGID(p.ID)
	f.SourceUpdatedAt = p.UpdatedAt.Time
	f.SetDocument(p.document(profile.Language, profile.Currency))
}

func (p *product) document(language, currency string) *catalog.CatalogAggregate {
	a := &catalog.CatalogAggregate{Variants: []catalog.Variant{}, Availability: []catalog.Availability{}}
	a.Item = catalog.Item{
		Status:        status(string(p.Status)),
		Title:         title(p.Title, language),
		Description:   payload.Localized(language, string(p.DescriptionHTML)),
		Handles:       payload.Localized(language, string(p.Handle)),
		URLs:          payload.Localized(language, payload.Link(string(p.OnlineStoreURL))),
		SourceVersion: p.UpdatedAt.Version(),
		Brand:         string(p.Vendor),
		Tags:          p.Tags,
		Taxonomy:      []catalog.TaxonomyRef{},
	}
	pictures := []payload.Picture{}
	for _, m := range p.Media.items() {
		if m.Image == nil {
			continue // a video
		}
		alt := m.Alt
		if alt == "" {
			alt = m.Image.Alt
		}
		pictures = append(pictures,
			payload.Picture{URL: string(m.Image.URL), Alt: payload.Localized(language, string(alt))})
	}
	a.Item.Media, a.Item.PrimaryMedia = payload.Media(pictures)
	for _, c := range p.Collections.items() {
		id, _ := parseGID(c.ID)
		a.Item.Taxonomy = append(a.Item.Taxonomy,
			catalog.TaxonomyRef{ExternalID: id, Name: title(c.Title, language),
				Handles: payload.Localized(language, string(c.Handle))})
	}
	for _, v := range p.Variants.items() {
		v.add(a, language, currency)
	}
	return a
}

func title(text *string, language string) catalog.LocalizedText {
	if text == nil {
		return nil
	}
	return catalog.LocalizedText{payload.Language(language): *text}
}

func status(word string) catalog.Status {
	switch strings.ToLower(word) {
	case "":
		return ""
	case "active":
		return catalog.Active
	case "draft":
		return catalog.Draft
	default:
		return catalog.Hidden // archived, unlisted
	}
}

// add appends a variant and its availability. A greater price to compare with is the regular price, and the
// price that is paid is then the promotional one.
func (v *variant) add(a *catalog.CatalogAggregate, language, currency string) {
	id, _ := parseGID(v.ID)
	out := catalog.Variant{ExternalID: id, SKU: string(v.SKU), Price: v.Price.Money(currency)}
	if v.CompareAtPrice.Exceeds(v.Price) {
		out.Price, out.PromotionalPrice = v.CompareAtPrice.Money(currency), v.Price.Money(currency)
	}
	for _, o := range v.Options {
		if o.Name == "" || o.Name == "Title" && o.Value == "Default Title" {
			continue // the placeholder of a product without options
		}
		out.Attributes = append(out.Attributes, catalog.Attribute{
			Name:  title(&o.Name, language),
			Value: title(&o.Value, language),
		})
	}
	available := catalog.Availability{VariantExternalID: id, Sellable: strings.ToLower(string(v.Policy))}
	if available.Sellable == "" && v.ForSale.Known {
		available.Sellable = map[bool]string{true: "true", false: "false"}[v.ForSale.True]
	}
	if v.Item.Tracked.True {
		available.Quantity = v.Quantity.Quantity()
	}
	a.Variants = append(a.Variants, out)
	a.Availability = append(a.Availability, available)
}

// setDocument sets the document of a collection. Collections have no tree.
func (c *collection) setDocument(f *provider.Fetched, profile provider.Profile) {
	f.ExternalID, _ = parseGID(c.ID)
	f.SourceUpdatedAt = c.UpdatedAt.Time
	f.SetDocument(&catalog.TaxonomyNodeDocument{Name: title(c.Title, profile.Language),
		Handles: payload.Localized(profile.Language, string(c.Handle))})
}
