package shopify

import (
	"encoding/json"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

// view makes the objects of one shop.
type view struct {
	store *stores.Store
}

func (v view) product(d docs.Doc) object {
	var p product
	_ = json.Unmarshal(d.JSON, &p) // what a test put there and does not fit stays empty
	total := 0
	for _, one := range p.Variants {
		total += one.InventoryQuantity
	}
	out := object{
		"__typename": "Product", "id": gid("Product", d.ID), "legacyResourceId": number(d.ID), "title": p.Title, "description": plain(p.BodyHTML),
		"descriptionHtml": p.BodyHTML, "vendor": p.Vendor, "productType": p.ProductType, "handle": p.Handle, "status": strings.ToUpper(p.Status),
		"tags": split(p.Tags), "createdAt": p.CreatedAt, "updatedAt": p.UpdatedAt, "publishedAt": p.PublishedAt, "onlineStoreUrl": nil,
		"onlineStorePreviewUrl": v.site() + "/products/" + p.Handle, "totalInventory": total, "tracksInventory": true, "isGiftCard": false,
		"hasOnlyDefaultVariant": len(p.Variants) == 1 && p.Variants[0].Title == "Default Title", "templateSuffix": nil, "requiresSellingPlan": false,
		"hasOutOfStockVariants": false, "seo": object{"__typename": "SEO", "title": nil, "description": nil},
		"options": p.options(), "featuredImage": p.picture(p.Image), "featuredMedia": p.media(p.Image),
		"variantsCount": count(len(p.Variants)), "mediaCount": count(len(p.Images)), "priceRangeV2": p.priceRange(),
	}
	if p.PublishedAt != nil {
		out["onlineStoreUrl"] = v.site() + "/products/" + p.Handle
	}
	pictures, media, variants := []object{}, []object{}, []object{}
	for i := range p.Images {
		pictures, media = append(pictures, p.picture(&p.Images[i])), append(media, p.media(&p.Images[i]))
	}
	for _, one := range p.Variants {
		variants = append(variants, v.variant(&p, one, out))
	}
	out["images"], out["media"] = fixed("Image", pictures).field(), fixed("Media", media).field()
	out["variants"] = fixed("ProductVariant", variants).field()
	out["collections"] = connection{"Collection", func(map[string]any) ([]entry, error) {
		return v.entries(stores.Categories, p.Collections, v.collection), nil
	}}.field()
	return out
}

func (v view) site() string { return "https://" + v.store.ID + ".myshopify.com" }

func (p *product) options() []object {
	out := []object{}
	for _, o := range p.Options {
		chosen := []object{}
		for i, value := range o.Values {
			chosen = append(chosen, object{"__typename": "ProductOptionValue", "id": gid("ProductOptionValue", o.ID*10+int64(i)), "name": value, "hasVariants": true})
		}
		out = append(out, object{
			"__typename": "ProductOption", "id": gid("ProductOption", o.ID), "name": o.Name, "position": o.Position, "values": o.Values, "optionValues": chosen,
		})
	}
	return out
}

func (p *product) picture(i *image) object {
	if i == nil {
		return nil
	}
	return object{
		"__typename": "Image", "id": gid("ProductImage", i.ID), "url": i.Src, "src": i.Src, "originalSrc": i.Src, "altText": i.Alt, "width": 800, "height": 800,
	}
}

func (p *product) media(i *image) object {
	if i == nil {
		return nil
	}
	return object{
		"__typename": "MediaImage", "id": gid("MediaImage", i.ID), "alt": i.Alt, "mediaContentType": "IMAGE", "status": "READY", "image": p.picture(i),
		"preview":   object{"__typename": "MediaPreviewImage", "image": p.picture(i), "status": "READY"},
		"createdAt": p.CreatedAt, "updatedAt": p.UpdatedAt,
	}
}

func (p *product) priceRange() object {
	least, most := "0.00", "0.00"
	for i, one := range p.Variants {
		if i == 0 || amount(one.Price) < amount(least) {
			least = one.Price
		}
		if i == 0 || amount(one.Price) > amount(most) {
			most = one.Price
		}
	}
	return object{"__typename": "ProductPriceRangeV2", "minVariantPrice": money(least), "maxVariantPrice": money(most)}
}

func amount(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // a price that is none sorts as 0
	return n
}

func (v view) variant(p *product, one variant, owner object) object {
	chosen := []object{}
	for i, value := range []*string{one.Option1, one.Option2, one.Option3} {
		if value != nil && i < len(p.Options) {
			of := object{"__typename": "ProductOptionValue", "id": gid("ProductOptionValue", p.Options[i].ID*10), "name": *value, "hasVariants": true}
			chosen = append(chosen, object{"__typename": "SelectedOption", "name": p.Options[i].Name, "value": *value, "optionValue": of})
		}
	}
	tracked := one.InventoryManagement != nil
	return object{
		"__typename": "ProductVariant", "id": gid("ProductVariant", one.ID), "legacyResourceId": number(one.ID), "title": one.Title,
		"displayName": p.Title + " - " + one.Title, "sku": one.SKU, "price": one.Price, "compareAtPrice": one.CompareAtPrice, "position": one.Position,
		"inventoryPolicy": strings.ToUpper(one.InventoryPolicy), "inventoryQuantity": one.InventoryQuantity, "sellableOnlineQuantity": one.InventoryQuantity,
		"availableForSale": !tracked || one.InventoryQuantity > 0 || one.InventoryPolicy == "continue", "barcode": one.Barcode, "taxable": one.Taxable,
		"selectedOptions": chosen, "image": nil, "product": lazy(func() object { return owner }), "createdAt": one.CreatedAt, "updatedAt": one.UpdatedAt,
		"inventoryItem": object{
			"__typename": "InventoryItem", "id": gid("InventoryItem", one.InventoryItemID), "legacyResourceId": number(one.InventoryItemID),
			"tracked": tracked, "sku": one.SKU, "requiresShipping": true,
		},
	}
}

func (v view) collection(d docs.Doc) object {
	var c collection
	_ = json.Unmarshal(d.JSON, &c) // what a test put there and does not fit stays empty
	return object{
		"__typename": "Collection", "id": gid("Collection", d.ID), "legacyResourceId": number(d.ID), "title": c.Title, "handle": c.Handle,
		"description": plain(c.BodyHTML), "descriptionHtml": c.BodyHTML, "updatedAt": c.UpdatedAt, "templateSuffix": nil, "image": nil,
		"sortOrder": strings.ToUpper(strings.ReplaceAll(c.SortOrder, "-", "_")), "seo": object{"__typename": "SEO", "title": nil, "description": nil},
		"productsCount": count(0),
	}
}

// number is how the provider writes an UnsignedInt64: as text.
func number(id int64) string { return strconv.FormatInt(id, 10) }

func count(n int) object { return object{"__typename": "Count", "count": n, "precision": "EXACT"} }

func money(text string) object {
	return object{"__typename": "MoneyV2", "amount": text, "currencyCode": Currency}
}

func bag(text string) object {
	return object{"__typename": "MoneyBag", "shopMoney": money(text), "presentmentMoney": money(text)}
}

func split(tags string) []string {
	out := []string{}
	for tag := range strings.SplitSeq(tags, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			out = append(out, tag)
		}
	}
	return out
}

// plain is the text of a simple HTML.
func plain(html string) string {
	var out strings.Builder
	inside := false
	for _, r := range html {
		switch {
		case r == '<':
			inside = true
		case r == '>':
			inside = false
		case !inside:
			out.WriteRune(r)
		}
	}
	return out.String()
}
