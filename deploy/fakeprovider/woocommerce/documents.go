package woocommerce

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
)

type object = map[string]any

// wall is how the provider writes times: without a zone. The members that end in _gmt are UTC, the others the shop's own clock.
const wall = "2006-01-02T15:04:05"

func gmt(at time.Time) string   { return at.UTC().Format(wall) }
func local(at time.Time) string { return at.UTC().Add(-3 * time.Hour).Format(wall) }

func parseStamp(text string) (time.Time, error) {
	at, err := time.Parse(wall, text)
	if err != nil {
		return time.Parse(time.RFC3339, text)
	}
	return at, nil
}

func dated(o object, created, updated time.Time) object {
	o["date_created"], o["date_created_gmt"] = local(created), gmt(created)
	o["date_modified"], o["date_modified_gmt"] = local(updated), gmt(updated)
	return o
}

func (f *Fake) productJSON(store string, s *catalogue.Source, id int64) []byte {
	p := s.Product(id)
	simple := len(p.Options) == 0
	o := dated(object{
		"id": id, "name": p.Title.ES, "slug": p.Handle.ES, "permalink": site(store) + "/p/" + p.Handle.ES + "/", "type": "variable",
		"status": status(p), "featured": false, "catalog_visibility": "visible", "description": p.Description.ES, "short_description": "",
		"sku": "SKU-" + strconv.FormatInt(id, 10), "on_sale": p.Variants[0].PromoCents > 0, "purchasable": p.Variants[0].Cents > 0,
		"virtual": false, "downloadable": false, "tax_status": "taxable", "backorders": "no", "weight": "0.5", "reviews_allowed": true,
		"categories": refs(s, p.Categories), "tags": tags(p.Tags), "images": images(p), "attributes": attributes(p), "variations": []int64{},
		"default_attributes": []any{}, "grouped_products": []any{}, "menu_order": 0, "meta_data": []any{}, "parent_id": 0,
	}, p.Created, p.Updated)
	if id%41 == 0 {
		o["catalog_visibility"] = "hidden"
	}
	if simple {
		o["type"] = "simple"
		priced(o, p.Variants[0])
		stocked(o, p.Variants[0])
		return marshal(o)
	}
	ids := make([]int64, len(p.Variants))
	for i, v := range p.Variants {
		ids[i] = v.ID
	}
	o["variations"] = ids
	// The parent of variations has no price of its own but the least of them in `price`, which the documentation leaves out.
	o["price"], o["regular_price"], o["sale_price"] = "", "", ""
	o["manage_stock"], o["stock_quantity"], o["stock_status"] = false, nil, "instock"
	return marshal(o)
}

func variationJSON(s *catalogue.Source, id int64) []byte {
	p := s.Product(id / 100)
	at := int(id%100) - 1
	if at < 0 || at >= len(p.Variants) {
		at = 0 // a test's own variation starts from the first one
	}
	v := p.Variants[at]
	o := dated(object{
		"id": id, "name": p.Title.ES, "description": "", "permalink": "", "sku": v.SKU, "status": "publish", "on_sale": v.PromoCents > 0,
		"purchasable": v.Cents > 0, "backorders": "no", "weight": "0.5", "attributes": options(p, v), "parent_id": p.ID, "menu_order": v.Position,
		"image": object{"id": p.Images[0].ID, "src": p.Images[0].URL, "name": "", "alt": ""}, "meta_data": []any{},
	}, p.Created, p.Updated)
	priced(o, v)
	stocked(o, v)
	return marshal(o)
}

func priced(o object, v catalogue.Variant) {
	o["price"], o["regular_price"], o["sale_price"] = money(v.Cents), money(v.Cents), money(v.PromoCents)
	if v.PromoCents > 0 {
		o["price"] = money(v.PromoCents)
	}
}

func stocked(o object, v catalogue.Variant) {
	o["manage_stock"], o["stock_quantity"], o["stock_status"] = v.Tracked, nil, "instock"
	if v.Tracked {
		o["stock_quantity"] = v.Stock
		if v.Stock <= 0 {
			o["stock_status"] = "outofstock"
		}
	}
}

// money is empty for a price that nobody set.
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

func refs(s *catalogue.Source, ids []int64) []object {
	out := []object{}
	for _, id := range ids {
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
		seen, values := map[string]bool{}, []string{}
		for _, v := range p.Variants {
			if value := v.Values[i].ES; !seen[value] {
				seen[value] = true
				values = append(values, value)
			}
		}
		out = append(out, object{"id": 0, "name": name.ES, "position": i, "visible": true, "variation": true, "options": values})
	}
	return out
}

func options(p catalogue.Product, v catalogue.Variant) []object {
	out := []object{}
	for i, value := range v.Values {
		out = append(out, object{"id": 0, "name": p.Options[i].ES, "option": value.ES})
	}
	return out
}

func categoryJSON(s *catalogue.Source, id int64) []byte {
	c := s.Category(id)
	return marshal(object{
		"id": id, "name": c.Name.ES, "slug": c.Handle.ES, "parent": c.Parent, "description": "", "display": "default", "image": nil,
		"menu_order": 0, "count": 0,
	})
}

func orderJSON(s *catalogue.Source, id int64) []byte {
	o := s.Order(id)
	lines := []object{}
	for _, l := range o.Lines {
		line := object{
			"id": l.ID, "name": l.Product.Title.ES, "product_id": l.Product.ID, "variation_id": 0, "quantity": l.Quantity,
			"subtotal": catalogue.Money(l.Cents * l.Quantity), "total": catalogue.Money(l.Cents * l.Quantity), "sku": l.Variant.SKU,
			"price": json.RawMessage(catalogue.Money(l.Cents)), "meta_data": []any{},
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
	billing := object{
		"first_name": b.First, "last_name": b.Last, "company": "", "address_1": b.Address, "city": b.City, "postcode": b.Zip, "country": "AR",
		"email": b.Email, "phone": b.Phone,
	}
	return marshal(dated(object{
		"id": id, "parent_id": 0, "number": fmt.Sprint(o.Number), "order_key": fmt.Sprintf("wc_order_%x", id), "status": state, "currency": Currency,
		"total": catalogue.Money(o.Cents()), "discount_total": "0.00", "shipping_total": "0.00", "customer_id": b.ID, "customer_note": "",
		"customer_ip_address": b.IP, "customer_user_agent": "Mozilla/5.0 (demo)", "billing": billing, "shipping": billing, "line_items": lines,
		"payment_method": "bacs", "transaction_id": "", "meta_data": []any{}, "refunds": []any{}, "date_paid": nil, "date_paid_gmt": nil,
		"date_completed": nil, "date_completed_gmt": nil,
	}, o.Created, o.Updated))
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return text
}
