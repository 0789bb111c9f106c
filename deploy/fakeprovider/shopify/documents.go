package shopify

import (
	"fmt"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/stores"
)

// Documents are kept in the form that webhooks carry. graph.go makes the GraphQL objects from them.

type product struct {
	ID          int64     `json:"id"`
	GID         string    `json:"admin_graphql_api_id"`
	Title       string    `json:"title"`
	BodyHTML    string    `json:"body_html"`
	Vendor      string    `json:"vendor"`
	Handle      string    `json:"handle"`
	Status      string    `json:"status"`
	Tags        string    `json:"tags"`
	UpdatedAt   string    `json:"updated_at"`
	PublishedAt *string   `json:"published_at"`
	Options     []option  `json:"options"`
	Images      []image   `json:"images"`
	Variants    []variant `json:"variants"`
	Collections []int64   `json:"_collections,omitempty"` // of the debug route; no webhook carries it
}

type option struct {
	Name string `json:"name"`
}

type image struct {
	ID  int64   `json:"id"`
	Alt *string `json:"alt"`
	Src string  `json:"src"`
}

type variant struct {
	ID                  int64   `json:"id"`
	SKU                 string  `json:"sku"`
	Price               string  `json:"price"`
	CompareAtPrice      *string `json:"compare_at_price"`
	Option1             *string `json:"option1"`
	Option2             *string `json:"option2"`
	Option3             *string `json:"option3"`
	InventoryPolicy     string  `json:"inventory_policy"`
	InventoryManagement *string `json:"inventory_management"`
	InventoryQuantity   int     `json:"inventory_quantity"`
}

type collection struct {
	ID        int64  `json:"id"`
	GID       string `json:"admin_graphql_api_id"`
	Handle    string `json:"handle"`
	Title     string `json:"title"`
	UpdatedAt string `json:"updated_at"`
}

type order struct {
	ID              int64      `json:"id"`
	GID             string     `json:"admin_graphql_api_id"`
	Name            string     `json:"name"`
	CreatedAt       string     `json:"created_at"`
	UpdatedAt       string     `json:"updated_at"`
	CancelledAt     *string    `json:"cancelled_at"`
	ClosedAt        *string    `json:"closed_at"`
	Currency        string     `json:"currency"`
	TotalPrice      string     `json:"total_price"`
	FinancialStatus string     `json:"financial_status"`
	Email           string     `json:"email"`
	Phone           string     `json:"phone"`
	BrowserIP       string     `json:"browser_ip"`
	Customer        *customer  `json:"customer"`
	LineItems       []lineItem `json:"line_items"`
}

type customer struct {
	ID        int64  `json:"id"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Email     string `json:"email"`
	Phone     string `json:"phone"`
}

type lineItem struct {
	ID        int64  `json:"id"`
	ProductID *int64 `json:"product_id"`
	VariantID *int64 `json:"variant_id"`
	Quantity  int    `json:"quantity"`
	Price     string `json:"price"`
}

func gid(kind string, id int64) string { return fmt.Sprintf("gid://shopify/%s/%d", kind, id) }

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func parseTime(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }

func productJSON(s *catalogue.Source, id int64) []byte {
	p := s.Product(id)
	created := formatTime(p.Created)
	out := product{
		ID: id, GID: gid("Product", id), Title: p.Title.EN, BodyHTML: p.Description.EN, Vendor: p.Brand,
		Handle: p.Handle.EN, Status: "active", Tags: strings.Join(p.Tags, ", "),
		UpdatedAt:   formatTime(p.Updated),
		PublishedAt: &created, Options: []option{}, Images: []image{}, Collections: p.Categories,
	}
	if !p.Published {
		out.Status, out.PublishedAt = "draft", nil
		if id%100 == 0 {
			out.Status = "archived"
		}
	}
	for _, name := range p.Options {
		out.Options = append(out.Options, option{name.EN})
	}
	if len(p.Options) == 0 { // the provider gives a product without options this one
		out.Options = append(out.Options, option{"Title"})
	}
	for _, i := range p.Images {
		out.Images = append(out.Images, image{ID: i.ID, Src: i.URL})
	}
	for _, v := range p.Variants {
		out.Variants = append(out.Variants, newVariant(p, v))
	}
	return stores.JSON(out)
}

// newVariant writes what is paid as `price`, and the regular price of a promotion as `compare_at_price`.
func newVariant(p catalogue.Product, v catalogue.Variant) variant {
	out := variant{
		ID: v.ID, SKU: v.SKU, Price: catalogue.Money(v.Cents), InventoryPolicy: "deny",
		InventoryQuantity: v.Stock,
	}
	if v.PromoCents > 0 {
		regular := catalogue.Money(v.Cents)
		out.CompareAtPrice, out.Price = &regular, catalogue.Money(v.PromoCents)
	}
	if p.ID%5 == 0 {
		out.InventoryPolicy = "continue"
	}
	if v.Tracked {
		shopify := "shopify"
		out.InventoryManagement = &shopify
	}
	selected := []string{"Default Title"}
	if len(v.Values) > 0 {
		selected = nil
		for _, value := range v.Values {
			selected = append(selected, value.EN)
		}
	}
	for i, into := range []**string{&out.Option1, &out.Option2, &out.Option3} {
		if i < len(selected) {
			*into = &selected[i]
		}
	}
	return out
}

func collectionJSON(s *catalogue.Source, id int64) []byte {
	c := s.Category(id)
	return stores.JSON(
		collection{id, gid("Collection", id), c.Handle.EN, c.Name.EN, formatTime(s.Updated(id))},
	)
}

func orderJSON(s *catalogue.Source, id int64) []byte {
	o := s.Order(id)
	b := o.Buyer
	out := order{
		ID: id, GID: gid("Order", id), Name: fmt.Sprintf("#%d", o.Number), CreatedAt: formatTime(o.Created),
		UpdatedAt: formatTime(o.Updated), Currency: Currency, TotalPrice: catalogue.Money(o.Cents()),
		FinancialStatus: "pending", Email: b.Email, Phone: b.Phone, BrowserIP: b.IP,
		Customer: &customer{b.ID, b.First, b.Last, b.Email, b.Phone}, LineItems: []lineItem{},
	}
	if o.Paid {
		out.FinancialStatus = "paid"
	}
	if o.Cancelled {
		out.FinancialStatus, out.CancelledAt = "voided", &out.UpdatedAt
	}
	for _, l := range o.Lines {
		product, variant := l.Product.ID, l.Variant.ID
		out.LineItems = append(out.LineItems, lineItem{
			ID: l.ID, ProductID: &product, VariantID: &variant, Quantity: l.Quantity,
			Price: catalogue.Money(l.Cents),
		})
	}
	return stores.JSON(out)
}
