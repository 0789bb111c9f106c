package woocommerce

import (
	"strings"

	"storefront.internal/control/internal/provider/payload"
	"storefront.internal/shared/catalog"
)

type order struct {
	ID       payload.ID     `json:"id"`
	Number   payload.Text   `json:"number"`
	Status   payload.Text   `json:"status"`
	Currency payload.Text   `json:"currency"`
	Total    payload.Amount `json:"total"`
	Created  payload.Time   `json:"date_created_gmt"`
	Modified payload.Time   `json:"date_modified_gmt"`
	Customer payload.ID     `json:"customer_id"`
	Billing  billing        `json:"billing"`
	Lines    payload.List[struct {
		Product   payload.ID     `json:"product_id"`
		Variation payload.ID     `json:"variation_id"`
		Quantity  payload.Count  `json:"quantity"`
		Price     payload.Amount `json:"price"`
	}] `json:"line_items"`
}

// billing is personal data and goes into the order's document only.
type billing struct {
	FirstName payload.Text `json:"first_name"`
	LastName  payload.Text `json:"last_name"`
	Email     payload.Text `json:"email"`
	Phone     payload.Text `json:"phone"`
}

func (o *order) document() *catalog.OrderDocument {
	currency := payload.Currency(string(o.Currency))
	buyer := map[string]string{"email": string(o.Billing.Email), "phone": string(o.Billing.Phone),
		"name": strings.TrimSpace(string(o.Billing.FirstName) + " " + string(o.Billing.LastName))}
	if o.Customer.IsSet() {
		buyer["id"] = string(o.Customer)
	}
	d := &catalog.OrderDocument{
		Number:   string(o.Number),
		Status:   string(o.Status),
		Currency: currency,
		Total:    catalog.Money{Amount: string(o.Total), Currency: currency},
		Lines:    []catalog.OrderLine{},
		PlacedAt: o.Created.Time,
		Buyer:    payload.Buyer(buyer),
	}
	for _, l := range o.Lines {
		if !l.Product.IsSet() {
			continue // a line without a product of the catalog
		}
		line := catalog.OrderLine{ItemExternalID: string(l.Product), VariantExternalID: string(l.Product),
			Quantity:  l.Quantity.N,
			UnitPrice: catalog.Money{Amount: string(l.Price.Rounded()), Currency: currency}}
		if l.Variation.IsSet() {
			line.VariantExternalID = string(l.Variation)
		}
		if !l.Quantity.Known {
			line.Quantity = -1 // which the catalog rejects: an unknown quantity is not 0
		}
		d.Lines = append(d.Lines, line)
	}
	return d
}
