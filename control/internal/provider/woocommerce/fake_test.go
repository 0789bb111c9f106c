package woocommerce

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/provider/providertest"
	"storefront.internal/shared/settings"
)

// fakeShop is a store of the local stack's fake.
type fakeShop struct{ *providertest.DebugAPI }

func (s fakeShop) PutProduct(p providertest.Product) {
	s.Put("products", p.ID, map[string]any{
		"name": p.Title, "type": "simple", "status": "publish", "catalog_visibility": "visible",
		"price": p.Price, "regular_price": p.Price,
		"sale_price": p.Sale, "on_sale": p.Sale != "", "manage_stock": p.Stock != nil,
		"stock_quantity": p.Stock, "stock_status": "instock",
		"categories": []any{}, "tags": []any{}, "images": []any{}, "attributes": []any{},
		"variations":        []any{},
		"date_modified_gmt": p.UpdatedAt.Format("2006-01-02T15:04:05"),
	})
}

func (s fakeShop) DeleteProduct(id string) { s.Delete("products", id) }

func (s fakeShop) PutCategory(id, name, parent string) {
	n, _ := strconv.Atoi(parent) // 0 is none
	s.Put("categories", id, map[string]any{"name": name, "parent": n})
}

func (s fakeShop) PutOrder(id, product, total, email string) {
	n, _ := strconv.Atoi(product)
	s.Put("orders", id, map[string]any{
		"total": total, "status": "processing", "billing": map[string]any{"first_name": "B", "email": email},
		"line_items": []any{map[string]any{"product_id": n, "variation_id": 0, "quantity": 3,
			"price": 16.666666666666668}},
	})
}

// openFake opens a store of the fakes.
func openFake(t *testing.T, fakes *providertest.FakeProvider, client *outbound.Client) *providertest.Subject {
	t.Helper()
	subject, _, _ := openServer(t, client)
	proxy, id := fakes.FaultProxy(t), fmt.Sprintf("s%d.shop.example", fakes.NewShopNumber())
	adapter, err := New(Config{HTTP: client, BaseURL: proxy.URL + "/woocommerce/{store}/wp-json/wc/v3"})
	if err != nil {
		t.Fatal(err)
	}
	subject.Adapter, subject.SetFault, subject.Data = adapter, proxy.SetFault,
		fakeShop{fakes.DebugAPI(t, Name, id)}
	subject.Shop = provider.Shop{ConnectionID: "con_1", ExternalStoreID: id, Credential: providertest.Token,
		Profile: provider.Profile{Language: "es-AR", Currency: "ARS"}}
	subject.OtherShop.ExternalStoreID = fmt.Sprintf("s%d.shop.example", fakes.NewShopNumber())
	return subject
}

// TestConformanceOfTheFake runs the suite against the fake of the local stack and the system tests.
func TestConformanceOfTheFake(t *testing.T) {
	t.Parallel()
	fakes := providertest.StartFakeProvider(t)
	t.Run("", func(t *testing.T) { // the fakes end behind its parallel parts
		providertest.Conformance(t, func(t *testing.T, client *outbound.Client) *providertest.Subject {
			t.Helper()
			return openFake(t, fakes, client)
		})
		t.Run("another secret", func(t *testing.T) {
			t.Parallel()
			testRotateSecret(t, openFake(t, fakes, providertest.Client(t, 30*time.Second)))
		})
	})
}

// testRotateSecret rotates the secret of a subscription, and fails for one that does not exist.
func testRotateSecret(t *testing.T, s *providertest.Subject) {
	t.Helper()
	adapter, ok := s.Adapter.(provider.SecretRotator)
	if !ok {
		t.Fatal("its subscriptions have no secret")
	}
	const address = "https://hooks.shop-example.com/x"
	made, err := s.Adapter.Subscribe(t.Context(), s.Shop,
		provider.Subscription{Topic: "product.updated", URL: address, Secret: providertest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	if err := adapter.RotateSecret(t.Context(), s.Shop, made.ID, "another-secret"); err != nil {
		t.Fatal(err)
	}
	all, err := s.Adapter.Subscriptions(t.Context(), s.Shop)
	if err != nil || len(all) != 1 || all[0].ID != made.ID || all[0].URL != address || all[0].Disabled {
		t.Errorf("afterwards: %+v, %v", all, err)
	}
	for _, c := range []struct {
		id     string
		secret settings.Secret
	}{{"999", "another-secret"}, {"x", "another-secret"}, {made.ID, ""}} {
		if err := adapter.RotateSecret(t.Context(), s.Shop, c.id, c.secret); err == nil {
			t.Errorf("%q was given a secret of %d characters", c.id, len(c.secret))
		}
	}
}
