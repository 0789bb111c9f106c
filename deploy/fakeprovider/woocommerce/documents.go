package woocommerce

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/fakeprovider/stores"
)

type object = map[string]any

// withoutZone is how the provider writes times. Members that end in _gmt are UTC, the others the shop's local
// time.
const withoutZone = "2006-01-02T15:04:05"

// behindUTC is how far the shop's clock is behind UTC.
const behindUTC = 3 * time.Hour

func formatGMT(at time.Time) string { return at.UTC().Format(withoutZone) }

func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(withoutZone, text)
	if err != nil {
		return time.Parse(time.RFC3339, text)
	}
	return at, nil
}

func withDates(o object, created, updated time.Time) object {
	o["date_created"], o["date_created_gmt"] = formatGMT(created.Add(-behindUTC)), formatGMT(created)
	o["date_modified"], o["date_modified_gmt"] = formatGMT(updated.Add(-behindUTC)), formatGMT(updated)
	return o
}

func productJSON(store string, s *catalogue.Source, id int64) []byte {
	p := s.Product(id)
	ids := []int64{}
	o := withDates(object{
		"id": id, "name": p.Title.ES, "slug": p.Handle.ES,
		"permalink": site(store) + "/p/" + p.Handle.ES + "/",
		"type":      "variable", "status": status(p), "catalog_visibility": "visible",
		"description": p.Description.ES,
		"sku":         "SKU-" + strconv.FormatInt(id, 10),
		"on_sale":     p.Variants[0].PromoCents > 0, "parent_id": 0,
		"categories": categories(
			s,
			p,
		), "tags": tags(p.Tags), "images": images(p), "attributes": attributes(p),
		// The provider gives a variable product the least price of its variations, which its documentation
		// omits.
		"price": "", "regular_price": "", "sale_price": "",
		"manage_stock": false, "stock_quantity": nil, "stock_status": "instock",
	}, p.Created, p.Updated)
	if id%41 == 0 {
		o["catalog_visibility"] = "hidden"
	}
	if len(p.Options) == 0 {
		o["type"] = "simple"
		addOffer(o, p.Variants[0])
	} else {
		for _, v := range p.Variants {
			ids = append(ids, v.ID)
		}
	}
	o["variations"] = ids
	return stores.JSON(o)
}

func variationJSON(s *catalogue.Source, id int64) []byte {
	p := s.Product(id / 100)
	at := int(id%100) - 1
	if at < 0 || at >= len(p.Variants) {
		at = 0 // a variation that a test adds starts as a copy of the first one
	}
	v := p.Variants[at]
	options := []object{}
	for i, value := range v.Values {
		options = append(options, object{"id": 0, "name": p.Options[i].ES, "option": value.ES})
	}
	o := withDates(object{
		"id": id, "name": p.Title.ES, "sku": v.SKU, "status": "publish", "on_sale": v.PromoCents > 0,
		"attributes": options, "parent_id": p.ID, "menu_order": v.Position,
	}, p.Created, p.Updated)
	addOffer(o, v)
	return stores.JSON(o)
}

// addOffer sets price and stock.
func addOffer(o object, v catalogue.Variant) {
	o["price"], o["regular_price"], o["sale_price"] = money(v.Cents), money(v.Cents), money(v.PromoCents)
	if v.PromoCents > 0 {
		o["price"] = money(v.PromoCents)
	}
	o["manage_stock"], o["stock_quantity"], o["stock_status"] = v.Tracked, nil, "instock"
	if v.Tracked {
		o["stock_quantity"] = v.Stock
		if v.Stock <= 0 {
			o["stock_status"] = "outofstock"
		}
	}
}

// money is empty for an unknown price.
func money(cents int) string {
	if cents == 0 {
		return ""
	}
	return catalogue.Money(cents)
}

func status(p catalogue.Product) string {
	switch {
	case p.Published:
		return "publish"
	case p.ID%100 == 0:
		return "draft"
	}
	return "private"
}

func categories(s *catalogue.Source, p catalogue.Product) []object {
	out := []object{}
	for _, id := range p.Categories {
		c := s.Category(id)
		out = append(out, object{"id": id, "name": c.Name.ES, "slug": c.Handle.ES})
	}
	return out
}

func tags(names []string) []object {
	out := []object{}
	for i, name := range names {
		out = append(out, object{"id": 300 + i, "name": name, "slug": name})
	}
	return out
}

func images(p catalogue.Product) []object {
	out := []object{}
	for _, i := range p.Images {
		out = append(out, object{"id": i.ID, "src": i.URL, "name": "", "alt": p.Title.ES})
	}
	return out
}

func attributes(p catalogue.Product) []object {
	out := []object{}
	for i, name := range p.Options {
		out = append(out, object{"id": 0, "name": name.ES, "position": i, "variation": true})
	}
	return out
}

func categoryJSON(s *catalogue.Source, id int64) []byte {
	c := s.Category(id)
	return stores.JSON(
		object{"id": id, "name": c.Name.ES, "slug": c.Handle.ES, "parent": c.Parent, "description": ""},
	)
}

func orderJSON(s *catalogue.Source, id int64) []byte {
	o := s.Order(id)
	lines := []object{}
	for _, l := range o.Lines {
		line := object{
			"id": l.ID, "name": l.Product.Title.ES, "product_id": l.Product.ID, "variation_id": 0,
			"quantity": l.Quantity,
			"total": catalogue.Money(
				l.Cents * l.Quantity,
			), "price": json.RawMessage(catalogue.Money(l.Cents)),
		}
		if len(l.Product.Options) > 0 {
			line["variation_id"] = l.Variant.ID
		}
		lines = append(lines, line)
	}
	state := "pending"
	if o.Paid {
		state = "processing"
	}
	if o.Cancelled {
		state = "cancelled"
	}
	b := o.Buyer
	address := object{
		"first_name": b.First, "last_name": b.Last, "address_1": b.Address, "city": b.City, "postcode": b.Zip,
		"email": b.Email, "phone": b.Phone,
	}
	return stores.JSON(withDates(object{
		"id": id, "number": fmt.Sprint(o.Number), "order_key": fmt.Sprintf("wc_order_%x", id),
		"status":   state,
		"currency": Currency, "total": catalogue.Money(o.Cents()), "customer_id": b.ID,
		"customer_ip_address": b.IP,
		"billing":             address, "shipping": address, "line_items": lines, "date_paid": nil,
	}, o.Created, o.Updated))
}
