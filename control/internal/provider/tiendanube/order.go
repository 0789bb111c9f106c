package tiendanube

import (
	"encoding/json"

	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

type order struct {
	ID            payload.ID         `json:"id"`
	Number        payload.Text       `json:"number"`
	Status        payload.Text       `json:"status"`
	PaymentStatus payload.Text       `json:"payment_status"`
	Currency      payload.Text       `json:"currency"`
	Total         payload.Amount     `json:"total"`
	Products      payload.List[line] `json:"products"`
	CreatedAt     payload.Time       `json:"created_at"`
	UpdatedAt     payload.Time       `json:"updated_at"`
	Customer      buyer              `json:"customer"`
}

type line struct {
	Product  payload.ID     `json:"product_id"`
	Variant  payload.ID     `json:"variant_id"`
	Price    payload.Amount `json:"price"`
	Quantity payload.Count  `json:"quantity"`
}

// buyer is personal data and goes into the order's document only.
type buyer struct {
	ID             payload.ID   `json:"id"`
	Name           payload.Text `json:"name"`
	Email          payload.Text `json:"email"`
	Phone          payload.Text `json:"phone"`
	Identification payload.Text `json:"identification"`
}

// UnmarshalJSON takes a customer. Any other value, such as an empty array, is no buyer.
func (b *buyer) UnmarshalJSON(text []byte) error {
	*b = buyer{}
	if text[0] != '{' {
		return nil
	}
	type plain buyer
	return json.Unmarshal(text, (*plain)(b))
}

func (o *order) document() *catalog.OrderDocument {
	currency := payload.Currency(string(o.Currency))
	d := &catalog.OrderDocument{
		Number:        string(o.Number),
		Status:        string(o.Status),
		PaymentStatus: string(o.PaymentStatus),
		Currency:      currency,
		Total:         catalog.Money{Amount: string(o.Total), Currency: currency},
		Lines:         []catalog.OrderLine{},
		PlacedAt:      o.CreatedAt.Time,
		Buyer: payload.Buyer(map[string]string{"id": string(o.Customer.ID), "name": string(o.Customer.Name),
			"email": string(o.Customer.Email),
			"phone": string(o.Customer.Phone), "identification": string(o.Customer.Identification)}),
	}
	for _, l := range o.Products {
		if !l.Product.IsSet() {
			continue // a line without a product of the catalog
		}
		line := catalog.OrderLine{ItemExternalID: string(l.Product), Quantity: l.Quantity.N,
			UnitPrice: catalog.Money{Amount: string(l.Price), Currency: currency}}
		if l.Variant.IsSet() {
			line.VariantExternalID = string(l.Variant)
		}
		if !l.Quantity.Known {
			line.Quantity = -1 // which the catalog rejects: an unknown quantity is not 0
		}
		d.Lines = append(d.Lines, line)
	}
	return d
}
