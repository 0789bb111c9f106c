package tiendanube

import (
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/stores"
)

type product struct {
	ID           int64             `json:"id"`
	Name         catalogue.Words   `json:"name"`
	Description  catalogue.Words   `json:"description"`
	Handle       catalogue.Words   `json:"handle"`
	Attributes   []catalogue.Words `json:"attributes"`
	Published    bool              `json:"published"`
	FreeShipping bool              `json:"free_shipping"`
	CanonicalURL string            `json:"canonical_url"`
	Brand        *string           `json:"brand"`
	CreatedAt    string            `json:"created_at"`
	UpdatedAt    string            `json:"updated_at"`
	Variants     []variant         `json:"variants"`
	Tags         string            `json:"tags"`
	Images       []image           `json:"images"`
	Categories   []category        `json:"categories"`
}

type variant struct {
	ID               int64             `json:"id"`
	ProductID        int64             `json:"product_id"`
	Position         int               `json:"position"`
	Price            *string           `json:"price"`
	PromotionalPrice *string           `json:"promotional_price"`
	StockManagement  bool              `json:"stock_management"`
	Stock            *int              `json:"stock"`
	SKU              string            `json:"sku"`
	Values           []catalogue.Words `json:"values"`
	Barcode          string            `json:"barcode"`
	InventoryLevels  []level           `json:"inventory_levels,omitempty"`
}

type level struct {
	LocationID string `json:"location_id"`
	Stock      int    `json:"stock"`
}

type image struct {
	ID       int64    `json:"id"`
	Src      string   `json:"src"`
	Position int      `json:"position"`
	Alt      []string `json:"alt"` // empty: the provider writes no text as an empty array
}

type category struct {
	ID            int64           `json:"id"`
	Name          catalogue.Words `json:"name"`
	Handle        catalogue.Words `json:"handle"`
	Parent        *int64          `json:"parent"`
	Subcategories []int64         `json:"subcategories"`
	CreatedAt     string          `json:"created_at"`
	UpdatedAt     string          `json:"updated_at"`
}

const offsetWithoutColon = "2006-01-02T15:04:05-0700"

// mixedTime writes one of the two forms of the provider's times, depending on the id.
func mixedTime(id int64, at time.Time) string {
	if id%2 == 0 {
		return at.In(time.FixedZone("", -3*3600)).Format(time.RFC3339)
	}
	return formatTime(at)
}

func formatTime(at time.Time) string { return at.UTC().Format(offsetWithoutColon) }

func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(offsetWithoutColon, text)
	if err != nil {
		return time.Parse(time.RFC3339, text)
	}
	return at, nil
}

func productJSON(s *catalogue.Source, id int64) []byte {
	p := s.Product(id)
	out := product{
		ID: id, Name: p.Title, Description: p.Description, Handle: p.Handle, Attributes: list(p.Options),
		Published: p.Published, FreeShipping: p.FreeShipping,
		CanonicalURL: "https://shop.example/productos/" + p.Handle.ES + "/",
		CreatedAt:    mixedTime(id, p.Created),
		UpdatedAt: mixedTime(
			id,
			p.Updated,
		), Tags: strings.Join(p.Tags, ", "), Images: []image{}, Categories: []category{},
	}
	if p.Brand != "" {
		out.Brand = &p.Brand
	}
	for _, c := range p.Categories {
		out.Categories = append(out.Categories, newCategory(s, c))
	}
	for _, i := range p.Images {
		out.Images = append(out.Images, image{i.ID, i.URL, i.Position, []string{}})
	}
	for _, v := range p.Variants {
		out.Variants = append(out.Variants, newVariant(p, v))
	}
	return stores.JSON(out)
}

func newVariant(p catalogue.Product, v catalogue.Variant) variant {
	out := variant{
		ID: v.ID, ProductID: p.ID, Position: v.Position, Price: money(v.Cents),
		PromotionalPrice: money(v.PromoCents),
		StockManagement:  v.Tracked, SKU: v.SKU, Values: list(v.Values), Barcode: v.Barcode,
	}
	if v.Tracked {
		out.Stock = &v.Stock
	}
	if v.Tracked && p.ID%11 == 0 { // several locations: `stock` is their sum
		out.InventoryLevels = []level{
			{"01GQ2ZHK064BQRHGDB7CCV0Y6N", v.Stock - 1},
			{"01HB3ZHK064BQRHGDB7CCV0Y6P", 1},
		}
	}
	return out
}

func newCategory(s *catalogue.Source, id int64) category {
	c := s.Category(id)
	out := category{
		ID: id, Name: c.Name, Handle: c.Handle, Subcategories: s.Children(id),
		CreatedAt: mixedTime(id, s.Created(id)), UpdatedAt: mixedTime(id, s.Updated(id)),
	}
	if c.Parent != 0 {
		out.Parent = &c.Parent
	}
	return out
}

func categoryJSON(s *catalogue.Source, id int64) []byte { return stores.JSON(newCategory(s, id)) }

// list is never null.
func list(w []catalogue.Words) []catalogue.Words { return append([]catalogue.Words{}, w...) }

// money is null for an unknown price.
func money(cents int) *string {
	if cents == 0 {
		return nil
	}
	text := catalogue.Money(cents)
	return &text
}
