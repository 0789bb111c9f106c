package tiendanube

import (
	"strconv"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/stores"
)

type object = map[string]any

// orderJSON writes quantities and variants as strings in every second order, and completed_at as an object,
// as the provider does.
func orderJSON(s *catalogue.Source, id int64) []byte {
	o := s.Order(id)
	lines := []object{}
	for _, l := range o.Lines {
		line := object{
			"id": l.ID, "product_id": l.Product.ID, "variant_id": l.Variant.ID, "name": l.Product.Title.ES,
			"price": catalogue.Money(l.Cents), "quantity": l.Quantity, "sku": l.Variant.SKU,
		}
		if id%2 == 0 {
			line["quantity"] = strconv.Itoa(l.Quantity)
			line["variant_id"] = strconv.FormatInt(l.Variant.ID, 10)
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
	name := b.First + " " + b.Last
	address := object{
		"first_name": b.First, "last_name": b.Last, "address": b.Address, "city": b.City, "zipcode": b.Zip,
		"phone": b.Phone,
	}
	completed := o.Created.UTC().Format("2006-01-02 15:04:05.000000")
	return stores.JSON(object{
		"id": id, "token": "tok" + strconv.FormatInt(id, 16), "number": o.Number, "currency": Currency,
		"status": status, "payment_status": payment, "total": catalogue.Money(o.Cents()), "products": lines,
		"created_at": mixedTime(id, o.Created), "updated_at": mixedTime(id, o.Updated),
		"completed_at":  object{"date": completed, "timezone_type": 3, "timezone": "UTC"},
		"contact_email": b.Email, "contact_name": name, "contact_phone": b.Phone,
		"contact_identification": b.Identity,
		"billing_name":           b.First, "billing_phone": b.Phone, "billing_address": b.Address,
		"shipping_address": address,
		"client_details":   object{"browser_ip": b.IP, "user_agent": "Mozilla/5.0 (demo)"},
		"customer": object{
			"id": b.ID, "name": name, "email": b.Email, "phone": b.Phone, "identification": b.Identity,
			"default_address": address,
		},
	})
}
