package shopify

import (
	"encoding/json"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

func (v view) order(d docs.Doc) object {
	var o order
	_ = json.Unmarshal(d.JSON, &o) // what a test put there and does not fit stays empty
	lines := []object{}
	for _, l := range o.LineItems {
		lines = append(lines, v.line(l))
	}
	status := "UNFULFILLED"
	if o.FulfillmentStatus != nil {
		status = strings.ToUpper(*o.FulfillmentStatus)
	}
	return object{
		"__typename": "Order", "id": gid("Order", d.ID), "legacyResourceId": number(d.ID), "name": o.Name, "number": o.OrderNumber, "confirmationNumber": nil,
		"createdAt": o.CreatedAt, "updatedAt": o.UpdatedAt, "processedAt": o.ProcessedAt, "cancelledAt": o.CancelledAt, "closedAt": o.ClosedAt,
		"closed": o.ClosedAt != nil, "confirmed": true, "test": false, "currencyCode": o.Currency, "presentmentCurrencyCode": o.Currency,
		"displayFinancialStatus": strings.ToUpper(o.FinancialStatus), "displayFulfillmentStatus": status, "totalPriceSet": bag(o.TotalPrice),
		"subtotalPriceSet": bag(o.SubtotalPrice), "totalDiscountsSet": bag("0.00"), "currentTotalPriceSet": bag(o.TotalPrice), "email": o.Email,
		"phone": o.Phone, "note": o.Note, "tags": split(o.Tags), "clientIp": o.BrowserIP, "customer": o.Customer.view(),
		"billingAddress": o.BillingAddress.view(), "shippingAddress": o.ShippingAddress.view(), "customAttributes": pairs(o.NoteAttributes),
		"statusPageUrl": v.site() + "/orders/status", "sourceName": "web", "customerLocale": Language, "lineItems": fixed("LineItem", lines).field(),
	}
}

func (v view) line(l lineItem) object {
	each, all := bag(l.Price), bag(strconv.FormatFloat(amount(l.Price)*float64(l.Quantity), 'f', 2, 64))
	out := object{
		"__typename": "LineItem", "id": gid("LineItem", l.ID), "title": l.Title, "name": l.Title, "sku": l.SKU, "quantity": l.Quantity,
		"currentQuantity": l.Quantity, "variantTitle": nil, "vendor": nil, "product": nil, "variant": nil, "originalUnitPriceSet": each,
		"discountedUnitPriceSet": each, "originalTotalSet": all, "discountedTotalSet": all, "customAttributes": pairs(l.Properties), "requiresShipping": true,
	}
	if l.ProductID == nil {
		return out
	}
	if d, ok := v.store.Tables[stores.Products].Get(*l.ProductID); ok { // of a deleted product there is nothing to ask
		out["product"] = lazy(func() object { return v.product(d) })
		if l.VariantID != nil {
			out["variant"] = lazy(func() object { return v.variantOf(d, *l.VariantID) })
		}
	}
	return out
}

// variantOf finds a variant in its product.
func (v view) variantOf(d docs.Doc, id int64) object {
	var p product
	_ = json.Unmarshal(d.JSON, &p) // see product
	for _, one := range p.Variants {
		if one.ID == id {
			return v.variant(&p, one, v.product(d))
		}
	}
	return nil
}

func (c *customer) view() object {
	if c == nil {
		return nil
	}
	return object{
		"__typename": "Customer", "id": gid("Customer", c.ID), "legacyResourceId": number(c.ID), "firstName": c.FirstName, "lastName": c.LastName,
		"displayName": c.FirstName + " " + c.LastName, "email": c.Email, "phone": c.Phone, "locale": Language,
		"defaultEmailAddress": object{"__typename": "CustomerEmailAddress", "emailAddress": c.Email},
		"defaultPhoneNumber":  object{"__typename": "CustomerPhoneNumber", "phoneNumber": c.Phone},
	}
}

func (a *address) view() object {
	if a == nil {
		return nil
	}
	return object{
		"__typename": "MailingAddress", "firstName": a.FirstName, "lastName": a.LastName, "name": a.FirstName + " " + a.LastName, "address1": a.Address1,
		"address2": nil, "city": a.City, "zip": a.Zip, "country": a.CountryCode, "countryCodeV2": a.CountryCode, "phone": a.Phone, "company": nil, "province": nil,
	}
}

func pairs(all []attribute) []object {
	out := []object{}
	for _, a := range all {
		out = append(out, object{"__typename": "Attribute", "key": a.Name, "value": a.Value})
	}
	return out
}
