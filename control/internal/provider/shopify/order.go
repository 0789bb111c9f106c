package shopify

import (
	"encoding/json"
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

type bag struct {
	Shop struct {
		Amount   payload.Amount `json:"amount"`
		Currency payload.Text   `json:"currencyCode"`
	} `json:"shopMoney"`
}

func (b bag) money() catalog.Money {
	return catalog.Money{Amount: string(b.Shop.Amount.Rounded()), Currency: payload.Currency(string(b.Shop.Currency))}
}

type order struct {
	ID            string           `json:"id"`
	Name          payload.Text     `json:"name"`
	CreatedAt     payload.Time     `json:"createdAt"`
	UpdatedAt     payload.Time     `json:"updatedAt"`
	CancelledAt   payload.Time     `json:"cancelledAt"`
	Closed        payload.Flag     `json:"closed"`
	Currency      payload.Text     `json:"currencyCode"`
	PaymentStatus payload.Text     `json:"displayFinancialStatus"`
	Total         bag              `json:"totalPriceSet"`
	Email         payload.Text     `json:"email"`
	Phone         payload.Text     `json:"phone"`
	Customer      customer         `json:"customer"`
	Lines         connection[line] `json:"lineItems"`
}

type line struct {
	ID       string        `json:"id"`
	Quantity payload.Count `json:"quantity"`
	Product  reference     `json:"product"`
	Variant  reference     `json:"variant"`
	Price    bag           `json:"originalUnitPriceSet"`
}

// reference names another entity, which may be gone.
type reference struct {
	ID string `json:"id"`
}

// customer is personal data: it goes into the order's document and nowhere else.
type customer struct {
	ID    payload.Text `json:"id"`
	Name  payload.Text `json:"displayName"`
	Email payload.Text `json:"email"`
	Phone payload.Text `json:"phone"`
}

// UnmarshalJSON takes a customer; null is none.
func (c *customer) UnmarshalJSON(text []byte) error {
	*c = customer{}
	if text[0] != '{' {
		return nil
	}
	type plain customer
	return json.Unmarshal(text, (*plain)(c))
}

// judge gives an order its document.
func (o *order) judge(f *provider.Fetched, _ provider.Profile) {
	f.ExternalID, _ = number(o.ID)
	f.SourceUpdatedAt = o.UpdatedAt.Time
	provider.Judge(f, o.document())
}

func (o *order) status() string {
	switch {
	case o.CancelledAt.Version() != "":
		return "cancelled"
	case o.Closed.True:
		return "closed"
	default:
		return "open"
	}
}

func (o *order) document() *catalog.OrderDocument {
	id, _ := number(string(o.Customer.ID))
	d := &catalog.OrderDocument{
		Number:        string(o.Name),
		Status:        o.status(),
		PaymentStatus: strings.ToLower(string(o.PaymentStatus)),
		Currency:      payload.Currency(string(o.Currency)),
		Total:         o.Total.money(),
		Lines:         []catalog.OrderLine{},
		PlacedAt:      o.CreatedAt.Time,
		Buyer: payload.Buyer(map[string]string{"id": id, "name": string(o.Customer.Name), "email": string(first(o.Email, o.Customer.Email)),
			"phone": string(first(o.Phone, o.Customer.Phone))}),
	}
	for _, l := range o.Lines.all() {
		product, _ := number(l.Product.ID)
		if product == "" {
			continue // a position of no product, or of one that is gone
		}
		variant, _ := number(l.Variant.ID)
		quantity := l.Quantity.N
		if !l.Quantity.Known {
			quantity = -1 // which the catalog refuses: a count that nobody knows is not 0
		}
		d.Lines = append(d.Lines, catalog.OrderLine{ItemExternalID: product, VariantExternalID: variant, Quantity: quantity, UnitPrice: l.Price.money()})
	}
	return d
}

func first(texts ...payload.Text) payload.Text {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
