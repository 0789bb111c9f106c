package systemtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// provider is what the shops of one platform have of their own.
type provider struct {
	name, language, currency  string
	suffix                    string // of a store's external id
	credential                string // of an access token, behind what the fake knows it by
	subscriptions             int    // how many are wanted
	created, updated, deleted string // topics of products
	ordered                   string // topic of orders
	patch                     func(id int64, title, price string) map[string]any
	facts                     func(doc []byte) (facts, error)
	order                     func(buyer, email string) map[string]any
	broken                    map[string]any // makes an order unreadable
}

// storeID is the id of a new shop: a number without a leading 0, which one of the platforms would drop.
func (b provider) storeID() string {
	return "1" + strconv.FormatInt(time.Now().UnixNano(), 10)[6:] + b.suffix
}

func (b provider) token() string { return "demo-" + canary + randomHex(8) + b.credential }

func providers() []provider {
	return []provider{
		{
			name: "tiendanube", language: "es", currency: "ARS", subscriptions: 13,
			created: "product/created", updated: "product/updated", deleted: "product/deleted",
			patch: func(id int64, title, price string) map[string]any {
				return map[string]any{"name": map[string]string{"es": title},
					"variants": []any{map[string]any{"id": id*100 + 1, "price": price,
						"promotional_price": nil}}}
			},
			facts: tiendanubeFacts, ordered: "order/updated",
			broken: map[string]any{"total": canary + "amount"},
			order: func(buyer, email string) map[string]any {
				return map[string]any{"customer": map[string]any{"id": 9, "name": buyer, "email": email},
					"contact_name": buyer, "contact_email": email}
			},
		}, {
			name: "shopify", language: "en", currency: "USD", subscriptions: 11, suffix: ".myshopify.com",
			created: "products/create", updated: "products/update", deleted: "products/delete",
			patch: func(id int64, title, price string) map[string]any {
				return map[string]any{"title": title,
					"variants": []any{map[string]any{"id": id*100 + 1, "price": price,
						"compare_at_price": nil}}}
			},
			facts: shopifyFacts, ordered: "orders/updated",
			broken: map[string]any{"total_price": canary + "amount"},
			order: func(buyer, email string) map[string]any {
				return map[string]any{"email": email,
					"customer": map[string]any{"id": 9, "first_name": buyer, "email": email}}
			},
		}, {
			name: "woocommerce", language: "es", currency: "ARS", subscriptions: 6, suffix: ".shop.example",
			credential: ":" + canary + "secret",
			created:    "product.created", updated: "product.updated", deleted: "product.deleted",
			patch: func(id int64, title, price string) map[string]any {
				offer := map[string]any{"id": id*100 + 1, "regular_price": price, "price": price,
					"sale_price": "", "on_sale": false}
				if id%3 != 0 { // it has variations
					return map[string]any{"name": title, "variations": []any{offer}}
				}
				offer["name"] = title
				delete(offer, "id")
				return offer
			},
			facts: woocommerceFacts, ordered: "order.updated",
			broken: map[string]any{"total": canary + "amount"},
			order: func(buyer, email string) map[string]any {
				return map[string]any{"billing": map[string]any{"first_name": buyer, "email": email}}
			},
		},
	}
}

// facts are what a shopper sees of a product and what the provider and the aggregate must agree on; they are
// read from either form.
type facts struct {
	Title, Status string
	Offers        map[string]offer // by the variant's external id
}

// offer is of one variant; an empty member is not known.
type offer struct{ Price, Promotion, Quantity string }

// aggregateFacts reads the response to getCatalogItem.
func aggregateFacts(language string, body []byte) (externalID string, f facts, err error) {
	type money struct{ Amount string }
	var a struct {
		Item struct {
			ExternalID string `json:"external_id"`
			Title      map[string]string
			Status     string
		}
		Variants []struct {
			ID         string `json:"variant_id"`
			ExternalID string `json:"external_id"`
			Price      money
			Promotion  money `json:"promotional_price"`
		}
		Availability []struct {
			ID       string `json:"variant_id"`
			Quantity *json.Number
		}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return "", f, err
	}
	quantities := map[string]string{}
	for _, one := range a.Availability {
		if one.Quantity != nil {
			quantities[one.ID] = one.Quantity.String()
		}
	}
	f = facts{a.Item.Title[language], a.Item.Status, map[string]offer{}}
	for _, v := range a.Variants {
		f.Offers[v.ExternalID] = offer{v.Price.Amount, v.Promotion.Amount, quantities[v.ID]}
	}
	return a.Item.ExternalID, f, nil
}

func tiendanubeFacts(doc []byte) (facts, error) {
	var p struct {
		Name      map[string]string
		Published bool
		Variants  []struct {
			ID        json.Number
			Price     string
			Promotion string `json:"promotional_price"`
			Tracked   bool   `json:"stock_management"`
			Stock     any
		}
	}
	err := json.Unmarshal(doc, &p)
	f := facts{p.Name["es"], "hidden", map[string]offer{}}
	if p.Published {
		f.Status = "active"
	}
	for _, v := range p.Variants {
		o := offer{Price: v.Price, Promotion: v.Promotion}
		if v.Tracked {
			o.Quantity = fmt.Sprint(v.Stock)
		}
		f.Offers[v.ID.String()] = o
	}
	return f, err
}

func shopifyFacts(doc []byte) (facts, error) {
	var p struct {
		Title, Status string
		Variants      []struct {
			ID       json.Number
			Price    string
			Before   string      `json:"compare_at_price"`
			Managed  string      `json:"inventory_management"`
			Quantity json.Number `json:"inventory_quantity"`
		}
	}
	err := json.Unmarshal(doc, &p)
	f := facts{p.Title, p.Status, map[string]offer{}}
	if f.Status == "archived" {
		f.Status = "hidden"
	}
	for _, v := range p.Variants {
		o := offer{Price: v.Price}
		if amount(v.Before) > amount(v.Price) {
			o.Price, o.Promotion = v.Before, v.Price
		}
		if v.Managed != "" {
			o.Quantity = v.Quantity.String()
		}
		f.Offers[v.ID.String()] = o
	}
	return f, err
}

func amount(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // none is 0
	return n
}

func woocommerceFacts(doc []byte) (facts, error) {
	type sold struct {
		ID       json.Number
		Price    string
		Regular  string      `json:"regular_price"`
		Sale     string      `json:"sale_price"`
		OnSale   bool        `json:"on_sale"`
		Managed  bool        `json:"manage_stock"`
		Quantity json.Number `json:"stock_quantity"`
	}
	var p struct {
		sold
		Name, Status string
		Visibility   string `json:"catalog_visibility"`
		Variations   []sold
	}
	err := json.Unmarshal(doc, &p)
	f := facts{p.Name, "hidden", map[string]offer{}}
	switch {
	case strings.Contains("draft pending", p.Status):
		f.Status = "draft"
	case p.Status == "publish" && p.Visibility != "hidden":
		f.Status = "active"
	}
	if len(p.Variations) == 0 {
		p.Variations = []sold{p.sold}
	}
	for _, v := range p.Variations {
		o := offer{Price: v.Regular}
		if o.Price == "" {
			o.Price = v.Price
		}
		if v.OnSale {
			o.Promotion = v.Sale
		}
		if v.Managed {
			o.Quantity = v.Quantity.String()
		}
		f.Offers[v.ID.String()] = o
	}
	return f, err
}
