package tiendanube

import (
	"strconv"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/providertest"
)

// fakeShop is a store of the local stack's fake.
type fakeShop struct{ *providertest.DebugAPI }

// optional is null for an unknown text.
func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (s fakeShop) PutProduct(p providertest.Product) {
	s.Put("products", p.ID, map[string]any{
		"name": map[string]string{"es": p.Title}, "published": true, "categories": []any{}, "images": []any{},
		"tags": "", "attributes": []any{},
		"updated_at": p.UpdatedAt.Format(time.RFC3339), "variants": []any{map[string]any{
			"id": 5, "price": optional(p.Price), "promotional_price": optional(p.Sale),
			"stock_management": p.Stock != nil, "stock": p.Stock, "values": []any{},
		}},
	})
}

func (s fakeShop) DeleteProduct(id string) { s.Delete("products", id) }

func (s fakeShop) PutCategory(id, name, parent string) {
	doc := map[string]any{"name": map[string]string{"es": name}, "parent": nil}
	if n, err := strconv.Atoi(parent); err == nil {
		doc["parent"] = n
	}
	s.Put("categories", id, doc)
}

func (s fakeShop) PutOrder(id, product, total, email string) {
	s.Put("orders", id, map[string]any{
		"total": total, "status": "open", "payment_status": "paid",
		"customer": map[string]any{"id": 9, "name": "B", "email": email},
		"products": []any{map[string]any{"product_id": product, "variant_id": "5", "price": total,
			"quantity": "2"}},
	})
}

// TestConformanceOfTheFake runs the suite against the fake of the local stack and the system tests.
func TestConformanceOfTheFake(t *testing.T) {
	t.Parallel()
	fakes := providertest.StartFakeProvider(t)
	t.Run("", func(t *testing.T) { // the fakes end behind its parallel parts
		providertest.Conformance(t, func(t *testing.T, client *outbound.Client) *providertest.Subject {
			t.Helper()
			subject, _ := openServer(t, client)
			proxy, id := fakes.FaultProxy(t), strconv.FormatInt(fakes.NewShopNumber(), 10)
			adapter, err := New(Config{HTTP: client, BaseURL: proxy.URL + "/tiendanube/2025-03/{store}",
				UserAgent: "storefront (dev@shop-example.com)"})
			if err != nil {
				t.Fatal(err)
			}
			subject.Adapter, subject.SetFault, subject.Data = adapter, proxy.SetFault,
				fakeShop{fakes.DebugAPI(t, Name, id)}
			subject.Shop = provider.Shop{ConnectionID: "con_1", ExternalStoreID: id,
				Credential: providertest.Token, Profile: provider.Profile{Language: "es", Currency: "ARS"}}
			subject.OtherShop.ExternalStoreID = strconv.FormatInt(fakes.NewShopNumber(), 10)
			return subject
		})
	})
}
