package shopify

import (
	"encoding/json"
	"strings"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

type moneyBag struct {
	Shop struct {
		Amount   payload.Amount `json:"amount"`
		Currency payload.Text   `json:"currencyCode"`
	} `json:"shopMoney"`
}

func (b moneyBag) money() catalog.Money {
	return catalog.Money{Amount: string(b.Shop.Amount.Rounded()),
		Currency: payload.Currency(string(b.Shop.Currency))}
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
	Total         moneyBag         `json:"totalPriceSet"`
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
	Price    moneyBag      `json:"originalUnitPriceSet"`
}

// reference is another entity, which may be deleted.
type reference struct {
	ID string `json:"id"`
}

// customer is personal data and goes into the order's document only.
type customer struct {
	ID    payload.Text `json:"id"`
	Name  payload.Text `json:"displayName"`
	Email payload.Text `json:"email"`
	Phone payload.Text `json:"phone"`
}

// UnmarshalJSON takes a customer, or null.
func (c *customer) UnmarshalJSON(text []byte) error {
	*c = customer{}
	if text[0] != '{' {
		return nil
	}
	type plain customer
	return json.Unmarshal(text, (*plain)(c))
}

// setDocument sets the document of an order.
func (o *order) setDocument(f *provider.Fetched, _ provider.Profile) {
	f.ExternalID, _ = parseGID(o.ID)
	f.SourceUpdatedAt = o.UpdatedAt.Time
	f.SetDocument(o.document())
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
	id, _ := parseGID(string(o.Customer.ID))
	d := &catalog.OrderDocument{
		Number:        string(o.Name),
		Status:        o.status(),
		PaymentStatus: strings.ToLower(string(o.PaymentStatus)),
		Currency:      payload.Currency(string(o.Currency)),
		Total:         o.Total.money(),
		Lines:         []catalog.OrderLine{},
		PlacedAt:      o.CreatedAt.Time,
		Buyer: payload.Buyer(map[string]string{"id": id, "name": string(o.Customer.Name),
			"email": string(firstNonEmpty(o.Email, o.Customer.Email)),
			"phone": string(firstNonEmpty(o.Phone, o.Customer.Phone))}),
	}
	for _, l := range o.Lines.items() {
		product, _ := parseGID(l.Product.ID)
		if product == "" {
			continue // a line without a product, or of a deleted one
		}
		variant, _ := parseGID(l.Variant.ID)
		quantity := l.Quantity.N
		if !l.Quantity.Known {
			quantity = -1 // which the catalog rejects: an unknown quantity is not 0
		}
		d.Lines = append(d.Lines,
			catalog.OrderLine{ItemExternalID: product, VariantExternalID: variant, Quantity: quantity,
				UnitPrice: l.Price.money()})
	}
	return d
}

func firstNonEmpty(texts ...payload.Text) payload.Text {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
