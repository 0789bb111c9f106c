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
type fakeShop struct{ *providertest.Truth }

func (s fakeShop) PutProduct(p providertest.Product) {
	owner, _ := strconv.ParseInt(p.ID, 10, 64)
	variant := map[string]any{
		"id": owner*100 + 1, "product_id": owner, "title": "Default Title", "option1": "Default Title", "sku": "", "price": p.Price, "compare_at_price": nil,
		"inventory_policy": "deny", "inventory_management": nil, "inventory_quantity": 0,
	}
	if p.Sale != "" {
		variant["price"], variant["compare_at_price"] = p.Sale, p.Price
	}
	if p.Stock != nil {
		variant["inventory_management"], variant["inventory_quantity"] = "shopify", *p.Stock
	}
	s.Put("products", p.ID, map[string]any{
		"title": p.Title, "status": "active", "updated_at": p.UpdatedAt.Format(time.RFC3339), "images": []any{}, "image": nil, "_collections": []any{},
		"options":  []any{map[string]any{"id": 1, "product_id": owner, "name": "Title", "position": 1, "values": []string{"Default Title"}}},
		"variants": []any{variant},
	})
}

func (s fakeShop) DeleteProduct(id string) { s.Delete("products", id) }

func (s fakeShop) PutCategory(id, name, _ string) {
	s.Put("categories", id, map[string]any{"title": name})
}

// PutOrder sells a product that the shop has: of one that is gone the provider does not say which it was.
func (s fakeShop) PutOrder(id, product, total, email string) {
	s.PutProduct(providertest.Product{ID: product, Title: "Sold", UpdatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	owner, _ := strconv.ParseInt(product, 10, 64)
	s.Put("orders", id, map[string]any{
		"total_price": total, "email": email, "financial_status": "paid", "cancelled_at": nil,
		"line_items": []any{map[string]any{"id": 1, "product_id": owner, "variant_id": owner*100 + 1, "quantity": 2, "price": "1.00", "properties": []any{}}},
	})
}

// TestConformanceOfTheFake is the suite against the provider that the local stack and the system tests have.
func TestConformanceOfTheFake(t *testing.T) {
	t.Parallel()
	fakes := providertest.StartFakes(t)
	t.Run("", func(t *testing.T) { // the fakes end behind its parallel parts
		providertest.Conformance(t, func(t *testing.T, client *outbound.Client) *providertest.Subject {
			t.Helper()
			subject, _ := openServer(t, client)
			front, id := fakes.Front(t), fmt.Sprintf("s%d.myshopify.com", fakes.Number())
			adapter, err := New(Config{HTTP: client, BaseURL: front.URL + "/shopify/{store}"})
			if err != nil {
				t.Fatal(err)
			}
			adapter.piece = 40_000 // several pieces
			subject.Adapter, subject.Trouble, subject.Shop = adapter, front.Trouble, fakeShop{fakes.Truth(t, Name, id)}
			subject.Store = provider.Store{ConnectionID: "con_1", ExternalStoreID: id, Credential: providertest.Token, Profile: provider.Profile{Language: "en", Currency: "USD"}}
			subject.Other.ExternalStoreID = fmt.Sprintf("s%d.myshopify.com", fakes.Number())
			return subject
		})
	})
}
