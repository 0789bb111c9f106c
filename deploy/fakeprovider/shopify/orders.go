package shopify

import (
	"fmt"

	"storefront.internal/deploy/fakeprovider/catalogue"
)

type order struct {
	ID                int64       `json:"id"`
	GID               string      `json:"admin_graphql_api_id"`
	Name              string      `json:"name"`
	OrderNumber       int         `json:"order_number"`
	CreatedAt         string      `json:"created_at"`
	UpdatedAt         string      `json:"updated_at"`
	ProcessedAt       string      `json:"processed_at"`
	CancelledAt       *string     `json:"cancelled_at"`
	ClosedAt          *string     `json:"closed_at"`
	Currency          string      `json:"currency"`
	TotalPrice        string      `json:"total_price"`
	SubtotalPrice     string      `json:"subtotal_price"`
	FinancialStatus   string      `json:"financial_status"`
	FulfillmentStatus *string     `json:"fulfillment_status"`
	Email             string      `json:"email"`
	Phone             string      `json:"phone"`
	BrowserIP         string      `json:"browser_ip"`
	LandingSite       string      `json:"landing_site"`
	CartToken         string      `json:"cart_token"`
	CheckoutToken     string      `json:"checkout_token"`
	Note              *string     `json:"note"`
	Tags              string      `json:"tags"`
	NoteAttributes    []attribute `json:"note_attributes"`
	Customer          *customer   `json:"customer"`
	BillingAddress    *address    `json:"billing_address"`
	ShippingAddress   *address    `json:"shipping_address"`
	LineItems         []lineItem  `json:"line_items"`
}

type attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type customer struct {
	ID        int64  `json:"id"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Email     string `json:"email"`
	Phone     string `json:"phone"`
}

type address struct {
	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name"`
	Address1    string `json:"address1"`
	City        string `json:"city"`
	Zip         string `json:"zip"`
	CountryCode string `json:"country_code"`
	Phone       string `json:"phone"`
}

type lineItem struct {
	ID         int64       `json:"id"`
	ProductID  *int64      `json:"product_id"`
	VariantID  *int64      `json:"variant_id"`
	SKU        string      `json:"sku"`
	Title      string      `json:"title"`
	Quantity   int         `json:"quantity"`
	Price      string      `json:"price"`
	Properties []attribute `json:"properties"`
}

func orderJSON(s *catalogue.Source, id int64) []byte {
	o := s.Order(id)
	b := o.Buyer
	created := stamp(o.Created)
	total := catalogue.Money(o.Cents())
	home := &address{b.First, b.Last, b.Address, b.City, b.Zip, "AR", b.Phone}
	out := order{
		ID: id, GID: gid("Order", id), Name: fmt.Sprintf("#%d", o.Number), OrderNumber: o.Number, CreatedAt: created, UpdatedAt: stamp(o.Updated),
		ProcessedAt: created, Currency: Currency, TotalPrice: total, SubtotalPrice: total, FinancialStatus: "pending", Email: b.Email, Phone: b.Phone,
		BrowserIP: b.IP, LandingSite: "/", CartToken: fmt.Sprintf("cart%x", id), CheckoutToken: fmt.Sprintf("checkout%x", id),
		NoteAttributes: []attribute{}, Customer: &customer{b.ID, b.First, b.Last, b.Email, b.Phone}, BillingAddress: home, ShippingAddress: home,
		LineItems: []lineItem{},
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
			ID: l.ID, ProductID: &product, VariantID: &variant, SKU: l.Variant.SKU, Title: l.Product.Title.EN, Quantity: l.Quantity,
			Price: catalogue.Money(l.Cents), Properties: []attribute{},
		})
	}
	return marshal(out)
}
