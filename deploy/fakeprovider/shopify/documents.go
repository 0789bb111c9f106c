package shopify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
)

// The documents are kept in the form that webhooks carry; what GraphQL answers is made from them.

type product struct {
	ID          int64     `json:"id"`
	GID         string    `json:"admin_graphql_api_id"`
	Title       string    `json:"title"`
	BodyHTML    string    `json:"body_html"`
	Vendor      string    `json:"vendor"`
	ProductType string    `json:"product_type"`
	Handle      string    `json:"handle"`
	Status      string    `json:"status"`
	Tags        string    `json:"tags"`
	CreatedAt   string    `json:"created_at"`
	UpdatedAt   string    `json:"updated_at"`
	PublishedAt *string   `json:"published_at"`
	Options     []option  `json:"options"`
	Images      []image   `json:"images"`
	Image       *image    `json:"image"`
	Variants    []variant `json:"variants"`
	Collections []int64   `json:"_collections,omitempty"` // of the debug route; no webhook carries it
}

type option struct {
	ID        int64    `json:"id"`
	ProductID int64    `json:"product_id"`
	Name      string   `json:"name"`
	Position  int      `json:"position"`
	Values    []string `json:"values"`
}

type image struct {
	ID         int64   `json:"id"`
	ProductID  int64   `json:"product_id"`
	Position   int     `json:"position"`
	Alt        *string `json:"alt"`
	Src        string  `json:"src"`
	VariantIDs []int64 `json:"variant_ids"`
}

type variant struct {
	ID                  int64   `json:"id"`
	GID                 string  `json:"admin_graphql_api_id"`
	ProductID           int64   `json:"product_id"`
	Title               string  `json:"title"`
	SKU                 string  `json:"sku"`
	Price               string  `json:"price"`
	CompareAtPrice      *string `json:"compare_at_price"`
	Position            int     `json:"position"`
	Option1             *string `json:"option1"`
	Option2             *string `json:"option2"`
	Option3             *string `json:"option3"`
	InventoryPolicy     string  `json:"inventory_policy"`
	InventoryManagement *string `json:"inventory_management"`
	InventoryItemID     int64   `json:"inventory_item_id"`
	InventoryQuantity   int     `json:"inventory_quantity"`
	Barcode             string  `json:"barcode"`
	Taxable             bool    `json:"taxable"`
	Weight              float64 `json:"weight"`
	WeightUnit          string  `json:"weight_unit"`
	ImageID             *int64  `json:"image_id"`
	CreatedAt           string  `json:"created_at"`
	UpdatedAt           string  `json:"updated_at"`
}

type collection struct {
	ID        int64  `json:"id"`
	GID       string `json:"admin_graphql_api_id"`
	Handle    string `json:"handle"`
	Title     string `json:"title"`
	BodyHTML  string `json:"body_html"`
	SortOrder string `json:"sort_order"`
	UpdatedAt string `json:"updated_at"`
}

func gid(kind string, id int64) string { return fmt.Sprintf("gid://shopify/%s/%d", kind, id) }

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func parseStamp(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }

func productJSON(s *catalogue.Source, id int64) []byte {
	p := s.Product(id)
	created, updated := stamp(p.Created), stamp(p.Updated)
	out := product{
		ID: id, GID: gid("Product", id), Title: p.Title.EN, BodyHTML: p.Description.EN, Vendor: p.Brand, ProductType: "Demo", Handle: p.Handle.EN,
		Status: "active", Tags: strings.Join(p.Tags, ", "), CreatedAt: created, UpdatedAt: updated, PublishedAt: &created,
		Options: []option{}, Images: []image{}, Collections: p.Categories,
	}
	if !p.Published {
		out.Status, out.PublishedAt = "draft", nil
		if id%100 == 0 {
			out.Status = "archived"
		}
	}
	for i, name := range p.Options {
		out.Options = append(out.Options, option{id*10 + int64(i), id, name.EN, i + 1, values(p.Variants, i)})
	}
	if len(p.Options) == 0 { // a product without options has one of the provider's own
		out.Options = append(out.Options, option{id * 10, id, "Title", 1, []string{"Default Title"}})
	}
	for _, i := range p.Images {
		out.Images = append(out.Images, image{i.ID, id, i.Position, nil, i.URL, []int64{}})
	}
	out.Image = &out.Images[0]
	for _, v := range p.Variants {
		out.Variants = append(out.Variants, newVariant(p, v, created, updated))
	}
	return marshal(out)
}

func values(variants []catalogue.Variant, at int) []string {
	seen, out := map[string]bool{}, []string{}
	for _, v := range variants {
		if value := v.Values[at].EN; !seen[value] {
			seen[value] = true
			out = append(out, value)
		}
	}
	return out
}

// newVariant has the provider's turn of prices: what is paid is `price`, and what was asked before is `compare_at_price`.
func newVariant(p catalogue.Product, v catalogue.Variant, created, updated string) variant {
	out := variant{
		ID: v.ID, GID: gid("ProductVariant", v.ID), ProductID: p.ID, SKU: v.SKU, Price: catalogue.Money(v.Cents), Position: v.Position,
		InventoryPolicy: "deny", InventoryItemID: v.ID * 10, InventoryQuantity: v.Stock, Barcode: v.Barcode, Taxable: true, Weight: 0.5, WeightUnit: "kg",
		CreatedAt: created, UpdatedAt: updated,
	}
	if v.PromoCents > 0 {
		before := catalogue.Money(v.Cents)
		out.CompareAtPrice, out.Price = &before, catalogue.Money(v.PromoCents)
	}
	if p.ID%5 == 0 {
		out.InventoryPolicy = "continue"
	}
	if v.Tracked {
		shopify := "shopify"
		out.InventoryManagement = &shopify
	}
	chosen := []string{"Default Title"}
	if len(v.Values) > 0 {
		chosen = nil
		for _, value := range v.Values {
			chosen = append(chosen, value.EN)
		}
	}
	out.Title = strings.Join(chosen, " / ")
	for i, into := range []**string{&out.Option1, &out.Option2, &out.Option3} {
		if i < len(chosen) {
			*into = &chosen[i]
		}
	}
	return out
}

func collectionJSON(s *catalogue.Source, id int64) []byte {
	c := s.Category(id)
	return marshal(collection{id, gid("Collection", id), c.Handle.EN, c.Name.EN, "", "best-selling", stamp(s.Updated(id))})
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs and maps of strings and numbers
	}
	return text
}
