package shop

import "time"

// Text is a text in several languages.
type Text map[string]string

// Money is an amount and its currency; amounts are decimal strings, never floating-point numbers.
type Money struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// Media is a picture.
type Media struct {
	URL string `json:"url"`
	Alt Text   `json:"alt,omitempty"`
}

// Node names a category that a product hangs from.
type Node struct {
	ExternalID string `json:"external_id"`
}

// Item is the product itself.
type Item struct {
	Title        Text     `json:"title"`
	Status       string   `json:"status"`
	Description  Text     `json:"description"`
	Handles      Text     `json:"handles"`
	URLs         Text     `json:"urls"`
	PrimaryMedia Media    `json:"primary_media"`
	Media        []Media  `json:"media"`
	Brand        string   `json:"brand"`
	Tags         []string `json:"tags"`
	FreeShipping bool     `json:"free_shipping"`
	Taxonomy     []Node   `json:"taxonomy"`
}

// Attribute tells a product's variants apart.
type Attribute struct {
	Name  Text `json:"name"`
	Value Text `json:"value"`
}

// Variant is one form of a product that can be bought.
type Variant struct {
	ExternalID       string      `json:"external_id"`
	Status           string      `json:"status"`
	SKU              string      `json:"sku"`
	Title            Text        `json:"title"`
	Price            Money       `json:"price"`
	PromotionalPrice *Money      `json:"promotional_price,omitempty"`
	Attributes       []Attribute `json:"attributes"`
}

// Availability is what the shop says of a variant's stock. A nil quantity is unknown, which is not 0.
type Availability struct {
	VariantExternalID string    `json:"variant_external_id"`
	Sellable          string    `json:"sellable"`
	AsOf              time.Time `json:"as_of"`
	Quantity          *int      `json:"quantity,omitempty"`
}

// Product is a document of entity product.
type Product struct {
	Item         Item           `json:"item"`
	Variants     []Variant      `json:"variants"`
	Availability []Availability `json:"availability"`
}

// Category is a document of entity category.
type Category struct {
	Name             Text   `json:"name"`
	Handles          Text   `json:"handles"`
	ParentExternalID string `json:"parent_external_id,omitempty"`
	Status           string `json:"status"`
}
