package shopify

import (
	"encoding/json"
	"strings"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

// view makes the GraphQL objects of one shop from its documents. Members that a test put there and that do
// not fit stay empty.
type view struct{ store *stores.Store }

func (v view) site() string { return "https://" + v.store.ID + ".myshopify.com" }

func (v view) product(d docs.Doc) object {
	var p product
	_ = json.Unmarshal(d.JSON, &p)
	media, variants := []object{}, []object{}
	for _, i := range p.Images {
		media = append(media, object{
			"__typename": "MediaImage", "id": gid("MediaImage", i.ID), "alt": i.Alt,
			"mediaContentType": "IMAGE",
			"image":            object{"url": i.Src, "altText": i.Alt},
		})
	}
	for _, one := range p.Variants {
		variants = append(variants, p.variant(one))
	}
	out := object{
		"id": gid("Product", d.ID), "title": p.Title, "descriptionHtml": p.BodyHTML, "vendor": p.Vendor,
		"handle": p.Handle, "status": strings.ToUpper(p.Status), "tags": split(p.Tags),
		"updatedAt":      p.UpdatedAt,
		"onlineStoreUrl": nil, "media": fixed(media), "variants": fixed(variants),
		"collections": connection(func(map[string]any) ([]entry, error) {
			return v.entries(stores.Categories, p.Collections, idKey, v.collection), nil
		}),
	}
	if p.PublishedAt != nil {
		out["onlineStoreUrl"] = v.site() + "/products/" + p.Handle
	}
	return out
}

func (p *product) variant(one variant) object {
	selected := []object{}
	for i, value := range []*string{one.Option1, one.Option2, one.Option3} {
		if value != nil && i < len(p.Options) {
			selected = append(selected, object{"name": p.Options[i].Name, "value": *value})
		}
	}
	tracked := one.InventoryManagement != nil
	return object{
		"id": gid(
			"ProductVariant",
			one.ID,
		), "sku": one.SKU, "price": one.Price, "compareAtPrice": one.CompareAtPrice,
		"inventoryPolicy": strings.ToUpper(one.InventoryPolicy), "inventoryQuantity": one.InventoryQuantity,
		"availableForSale": !tracked || one.InventoryQuantity > 0 || one.InventoryPolicy == "continue",
		"inventoryItem":    object{"tracked": tracked}, "selectedOptions": selected,
	}
}

func (v view) collection(d docs.Doc) object {
	var c collection
	_ = json.Unmarshal(d.JSON, &c)
	return object{
		"id":        gid("Collection", d.ID),
		"title":     c.Title,
		"handle":    c.Handle,
		"updatedAt": c.UpdatedAt,
	}
}

func (v view) order(d docs.Doc) object {
	var o order
	_ = json.Unmarshal(d.JSON, &o)
	lines := []object{}
	for _, l := range o.LineItems {
		line := object{
			"id": gid("LineItem", l.ID), "quantity": l.Quantity, "originalUnitPriceSet": moneyBag(l.Price),
			"product": nil, "variant": nil,
		}
		if l.ProductID != nil { // of a deleted product the provider does not say which it was
			if _, ok := v.store.Tables[stores.Products].Get(*l.ProductID); ok {
				line["product"] = object{"id": gid("Product", *l.ProductID)}
				if l.VariantID != nil {
					line["variant"] = object{"id": gid("ProductVariant", *l.VariantID)}
				}
			}
		}
		lines = append(lines, line)
	}
	out := object{
		"id": gid("Order", d.ID), "name": o.Name, "createdAt": o.CreatedAt, "updatedAt": o.UpdatedAt,
		"cancelledAt": o.CancelledAt, "closed": o.ClosedAt != nil, "currencyCode": o.Currency,
		"displayFinancialStatus": strings.ToUpper(o.FinancialStatus), "totalPriceSet": moneyBag(o.TotalPrice),
		"email": o.Email, "phone": o.Phone, "customer": nil, "lineItems": fixed(lines),
	}
	if c := o.Customer; c != nil {
		out["customer"] = object{
			"id": gid(
				"Customer",
				c.ID,
			), "displayName": c.FirstName + " " + c.LastName, "email": c.Email, "phone": c.Phone,
		}
	}
	return out
}

func moneyBag(amount string) object {
	return object{"shopMoney": object{"amount": amount, "currencyCode": Currency}}
}

func split(tags string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(tags, ", ", ","), func(r rune) bool { return r == ',' })
}
