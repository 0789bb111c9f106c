package tiendanube

import (
	"strconv"

	"storefront.internal/deploy/fakeprovider/catalogue"
)

// orderJSON has the provider's oddities: quantities and variants are strings in every second order, completed_at is an object.
func orderJSON(s *catalogue.Source, id int64) []byte {
	o := s.Order(id)
	created, updated := stamp(id, o.Created), stamp(id, o.Updated)
	lines := []map[string]any{}
	for _, l := range o.Lines {
		line := map[string]any{
			"id": l.ID, "product_id": l.Product.ID, "variant_id": l.Variant.ID, "name": l.Product.Title.ES, "price": catalogue.Money(l.Cents),
			"quantity": l.Quantity, "sku": l.Variant.SKU, "barcode": l.Variant.Barcode, "weight": "0.500", "free_shipping": l.Product.FreeShipping,
			"variant_values": spanish(l.Variant.Values), "properties": []string{},
		}
		if id%2 == 0 {
			line["quantity"], line["variant_id"] = strconv.Itoa(l.Quantity), strconv.FormatInt(l.Variant.ID, 10)
		}
		lines = append(lines, line)
	}
	status, payment := "open", "pending"
	if o.Paid {
		payment = "paid"
	}
	if o.Cancelled {
		status, payment = "cancelled", "voided"
	}
	b := o.Buyer
	address := map[string]any{
		"first_name": b.First, "last_name": b.Last, "address": b.Address, "city": b.City, "zipcode": b.Zip, "country": "AR", "phone": b.Phone,
	}
	return marshal(map[string]any{
		"id": id, "token": "tok" + strconv.FormatInt(id, 16), "store_id": nil, "number": o.Number, "currency": Currency, "language": Language,
		"status": status, "payment_status": payment, "shipping_status": "unpacked", "subtotal": catalogue.Money(o.Cents()), "discount": "0.00",
		"total": catalogue.Money(o.Cents()), "gateway": "offline", "products": lines, "created_at": created, "updated_at": updated,
		"completed_at":  map[string]any{"date": o.Created.UTC().Format("2006-01-02 15:04:05.000000"), "timezone_type": 3, "timezone": "UTC"},
		"contact_email": b.Email, "contact_name": b.First + " " + b.Last, "contact_phone": b.Phone, "contact_identification": b.Identity,
		"billing_name": b.First, "billing_phone": b.Phone, "billing_address": b.Address, "billing_city": b.City, "billing_zipcode": b.Zip,
		"shipping_address": address, "extra": map[string]string{}, "landing_url": "https://shop.example/", "note": nil,
		"client_details": map[string]any{"browser_ip": b.IP, "user_agent": "Mozilla/5.0 (demo)"},
		"customer": map[string]any{
			"id": b.ID, "name": b.First + " " + b.Last, "email": b.Email, "phone": b.Phone, "identification": b.Identity,
			"default_address": address, "addresses": []any{address}, "created_at": created, "updated_at": updated,
		},
	})
}

func spanish(w []catalogue.Words) []string {
	out := []string{}
	for _, one := range w {
		out = append(out, one.ES)
	}
	return out
}
