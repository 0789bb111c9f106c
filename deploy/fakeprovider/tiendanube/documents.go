package tiendanube

import (
	"encoding/json"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
)

type product struct {
	ID               int64             `json:"id"`
	Name             catalogue.Words   `json:"name"`
	Description      catalogue.Words   `json:"description"`
	Handle           catalogue.Words   `json:"handle"`
	Attributes       []catalogue.Words `json:"attributes"`
	Published        bool              `json:"published"`
	FreeShipping     bool              `json:"free_shipping"`
	RequiresShipping bool              `json:"requires_shipping"`
	CanonicalURL     string            `json:"canonical_url"`
	VideoURL         *string           `json:"video_url"`
	SEOTitle         catalogue.Words   `json:"seo_title"`
	SEODescription   catalogue.Words   `json:"seo_description"`
	Brand            *string           `json:"brand"`
	CreatedAt        string            `json:"created_at"`
	UpdatedAt        string            `json:"updated_at"`
	Variants         []variant         `json:"variants"`
	Tags             string            `json:"tags"`
	Images           []image           `json:"images"`
	Categories       []category        `json:"categories"`
}

type variant struct {
	ID               int64             `json:"id"`
	ImageID          *int64            `json:"image_id"`
	ProductID        int64             `json:"product_id"`
	Position         int               `json:"position"`
	Price            *string           `json:"price"`
	PromotionalPrice *string           `json:"promotional_price"`
	StockManagement  bool              `json:"stock_management"`
	Stock            *int              `json:"stock"`
	Weight           string            `json:"weight"`
	Width            string            `json:"width"`
	Height           string            `json:"height"`
	Depth            string            `json:"depth"`
	SKU              string            `json:"sku"`
	Values           []catalogue.Words `json:"values"`
	Barcode          string            `json:"barcode"`
	MPN              *string           `json:"mpn"`
	AgeGroup         *string           `json:"age_group"`
	Gender           *string           `json:"gender"`
	Cost             *string           `json:"cost"`
	CreatedAt        string            `json:"created_at"`
	UpdatedAt        string            `json:"updated_at"`
	InventoryLevels  []level           `json:"inventory_levels,omitempty"`
}

type level struct {
	ID         int64  `json:"id"`
	VariantID  int64  `json:"variant_id"`
	LocationID string `json:"location_id"`
	Stock      int    `json:"stock"`
}

type image struct {
	ID        int64    `json:"id"`
	ProductID int64    `json:"product_id"`
	Src       string   `json:"src"`
	Position  int      `json:"position"`
	Alt       []string `json:"alt"`
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
}

type category struct {
	ID                     int64           `json:"id"`
	Name                   catalogue.Words `json:"name"`
	Description            catalogue.Words `json:"description"`
	Handle                 catalogue.Words `json:"handle"`
	Parent                 *int64          `json:"parent"`
	Subcategories          []int64         `json:"subcategories"`
	GoogleShoppingCategory *string         `json:"google_shopping_category"`
	CreatedAt              string          `json:"created_at"`
	UpdatedAt              string          `json:"updated_at"`
}

// Both forms of a time occur at the provider; which one an entity has depends on its id.
const (
	noColon = "2006-01-02T15:04:05-0700"
	colon   = time.RFC3339
)

func stamp(id int64, at time.Time) string {
	if id%2 == 0 {
		return at.In(time.FixedZone("", -3*3600)).Format(colon)
	}
	return at.UTC().Format(noColon)
}

func parseStamp(text string) (time.Time, error) {
	at, err := time.Parse(noColon, text)
	if err != nil {
		return time.Parse(colon, text)
	}
	return at, nil
}

func formatStamp(at time.Time) string { return at.UTC().Format(noColon) }

func productJSON(s *catalogue.Source, id int64) []byte {
	p := s.Product(id)
	created, updated := stamp(id, p.Created), stamp(id, p.Updated)
	out := product{
		ID: id, Name: p.Title, Description: p.Description, Handle: p.Handle, Attributes: words(p.Options), Published: p.Published,
		FreeShipping: p.FreeShipping, RequiresShipping: true, CanonicalURL: "https://shop.example/productos/" + p.Handle.ES + "/",
		SEOTitle: p.Title, SEODescription: p.Title, Brand: some(p.Brand), CreatedAt: created, UpdatedAt: updated, Tags: strings.Join(p.Tags, ", "),
		Images: []image{}, Categories: []category{},
	}
	for _, c := range p.Categories {
		out.Categories = append(out.Categories, newCategory(s, c))
	}
	for _, i := range p.Images {
		out.Images = append(out.Images, image{i.ID, id, i.URL, i.Position, []string{}, created, updated})
	}
	for _, v := range p.Variants {
		out.Variants = append(out.Variants, newVariant(p, v, created, updated))
	}
	return marshal(out)
}

func newVariant(p catalogue.Product, v catalogue.Variant, created, updated string) variant {
	out := variant{
		ID: v.ID, ProductID: p.ID, Position: v.Position, Price: money(v.Cents), PromotionalPrice: money(v.PromoCents), StockManagement: v.Tracked,
		Weight: "0.500", Width: "10.00", Height: "5.00", Depth: "20.00", SKU: v.SKU, Values: words(v.Values), Barcode: v.Barcode,
		CreatedAt: created, UpdatedAt: updated,
	}
	if v.Tracked {
		out.Stock = &v.Stock
	}
	if v.Tracked && p.ID%11 == 0 { // several places: `stock` is their sum
		out.InventoryLevels = []level{{v.ID * 10, v.ID, "01GQ2ZHK064BQRHGDB7CCV0Y6N", v.Stock - 1}, {v.ID*10 + 1, v.ID, "01HB3ZHK064BQRHGDB7CCV0Y6P", 1}}
	}
	return out
}

func newCategory(s *catalogue.Source, id int64) category {
	c := s.Category(id)
	out := category{
		ID: id, Name: c.Name, Description: catalogue.Words{}, Handle: c.Handle, Subcategories: s.Children(id),
		CreatedAt: stamp(id, s.Created(id)), UpdatedAt: stamp(id, s.Updated(id)),
	}
	if c.Parent != 0 {
		out.Parent = &c.Parent
	}
	return out
}

func categoryJSON(s *catalogue.Source, id int64) []byte { return marshal(newCategory(s, id)) }

func words(w []catalogue.Words) []catalogue.Words { return append([]catalogue.Words{}, w...) }

func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// money is null for "no price is told", which is not free.
func money(cents int) *string {
	if cents == 0 {
		return nil
	}
	text := catalogue.Money(cents)
	return &text
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings and numbers
	}
	return text
}
