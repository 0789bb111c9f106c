package shopify

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/providertest"
)

// fakeShop is a shop of the local stack's fake.
type fakeShop struct{ *providertest.DebugAPI }

func (s fakeShop) PutProduct(p providertest.Product) {
	owner, _ := strconv.ParseInt(p.ID, 10, 64)
	variant := map[string]any{
		"id": owner*100 + 1, "product_id": owner, "title": "Default Title", "option1": "Default Title",
		"sku": "", "price": p.Price, "compare_at_price": nil,
		"inventory_policy": "deny", "inventory_management": nil, "inventory_quantity": 0,
	}
	if p.Sale != "" {
		variant["price"], variant["compare_at_price"] = p.Sale, p.Price
	}
	if p.Stock != nil {
		variant["inventory_management"], variant["inventory_quantity"] = "shopify", *p.Stock
	}
	s.Put("products", p.ID, map[string]any{
		"title": p.Title, "status": "active", "updated_at": p.UpdatedAt.Format(time.RFC3339),
		"images": []any{}, "image": nil, "_collections": []any{},
		"options": []any{map[string]any{"id": 1, "product_id": owner, "name": "Title", "position": 1,
			"values": []string{"Default Title"}}},
		"variants": []any{variant},
	})
}

func (s fakeShop) DeleteProduct(id string) { s.Delete("products", id) }

func (s fakeShop) PutCategory(id, name, _ string) {
	s.Put("categories", id, map[string]any{"title": name})
}

// PutOrder sells a product that exists: of a deleted one the provider does not say which it was.
func (s fakeShop) PutOrder(id, product, total, email string) {
	s.PutProduct(providertest.Product{ID: product, Title: "Sold",
		UpdatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	owner, _ := strconv.ParseInt(product, 10, 64)
	s.Put("orders", id, map[string]any{
		"total_price": total, "email": email, "financial_status": "paid", "cancelled_at": nil,
		"line_items": []any{map[string]any{"id": 1, "product_id": owner, "variant_id": owner*100 + 1,
			"quantity": 2, "price": "1.00", "properties": []any{}}},
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
			proxy, id := fakes.FaultProxy(t), fmt.Sprintf("s%d.myshopify.com", fakes.NewShopNumber())
			adapter, err := New(Config{HTTP: client, BaseURL: proxy.URL + "/shopify/{store}"})
			if err != nil {
				t.Fatal(err)
			}
			adapter.chunkSize = 40_000 // several pieces
			subject.Adapter, subject.SetFault, subject.Data = adapter, proxy.SetFault,
				fakeShop{fakes.DebugAPI(t, Name, id)}
			subject.Shop = provider.Shop{ConnectionID: "con_1", ExternalStoreID: id,
				Credential: providertest.Token, Profile: provider.Profile{Language: "en", Currency: "USD"}}
			subject.OtherShop.ExternalStoreID = fmt.Sprintf("s%d.myshopify.com", fakes.NewShopNumber())
			return subject
		})
	})
}
