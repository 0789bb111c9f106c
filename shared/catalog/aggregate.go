package catalog

import (
	"time"

	"storefront.internal/shared/ident"
)

// LocalizedText maps language keys (BCP 47) to strings. It has at least one key where it is present; no
// language is guaranteed.
type LocalizedText map[string]string

// Money is an amount as a decimal string, exactly as delivered, and its ISO 4217 currency.
type Money struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// Media is a picture or film of an item.
type Media struct {
	URL string        `json:"url"`
	Alt LocalizedText `json:"alt,omitempty"`
}

// TaxonomyRef links an item to a node of the shop's taxonomy.
type TaxonomyRef struct {
	TaxonomyID TaxonomyID    `json:"taxonomy_id"`
	ExternalID string        `json:"external_id"`
	Name       LocalizedText `json:"name,omitempty"`
	Handles    LocalizedText `json:"handles,omitempty"`
	ParentID   TaxonomyID    `json:"parent_id,omitempty"`

	// ParentExternalID, when set, is what Complete derives ParentID from. Only adapters that build an
	// aggregate set it.
	ParentExternalID string `json:"-"`
}

// Item is a product of the shop. Empty strings, nil maps, nil slices and nil pointers are absent; an empty
// slice that is not nil means "none" and is written.
type Item struct {
	ItemID        ident.ItemID       `json:"item_id"`
	StoreID       ident.StoreID      `json:"store_id"`
	ConnectionID  ident.ConnectionID `json:"connection_id"`
	ExternalID    string             `json:"external_id"`
	Title         LocalizedText      `json:"title"`
	Status        Status             `json:"status"`
	SourceVersion string             `json:"source_version,omitempty"`
	PrimaryMedia  *Media             `json:"primary_media,omitempty"`
	Description   LocalizedText      `json:"description,omitempty"`
	Handles       LocalizedText      `json:"handles,omitempty"`
	URLs          LocalizedText      `json:"urls,omitempty"`
	Media         []Media            `json:"media,omitzero"`
	Brand         string             `json:"brand,omitempty"`
	Tags          []string           `json:"tags,omitzero"`
	FreeShipping  *bool              `json:"free_shipping,omitempty"`
	Taxonomy      []TaxonomyRef      `json:"taxonomy,omitzero"`
}

// Attribute distinguishes variants of one item: colour, size.
type Attribute struct {
	Name  LocalizedText `json:"name"`
	Value LocalizedText `json:"value"`
}

// Variant is one form of an item that can be bought.
type Variant struct {
	VariantID        ident.VariantID `json:"variant_id"`
	ItemID           ident.ItemID    `json:"item_id"`
	ExternalID       string          `json:"external_id"`
	Status           Status          `json:"status,omitempty"`
	SKU              string          `json:"sku,omitempty"`
	Title            LocalizedText   `json:"title,omitempty"`
	Price            *Money          `json:"price,omitempty"`
	PromotionalPrice *Money          `json:"promotional_price,omitempty"`
	Attributes       []Attribute     `json:"attributes,omitzero"`
}

// Availability is what the platform reported about a variant.
type Availability struct {
	VariantID ident.VariantID `json:"variant_id"`
	Sellable  string          `json:"sellable,omitempty"` // opaque; never read as a boolean
	AsOf      time.Time       `json:"as_of,omitzero"`     // UTC, microseconds; zero when absent
	Quantity  *int64          `json:"quantity,omitempty"` // nil is unknown, not 0; may be negative

	// VariantExternalID, when set, is what Complete derives VariantID from.
	VariantExternalID string `json:"-"`
}

// CatalogAggregate is the normalized product: the document of entity product, and the answer of
// getCatalogItem.
type CatalogAggregate struct {
	Item            Item           `json:"item"`
	Variants        []Variant      `json:"variants"`
	Availability    []Availability `json:"availability"`
	RefreshRevision int64          `json:"refresh_revision"` // at least 1
}
