package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"storefront.internal/deploy/local/services"
)

// The fake provider's store, and our app at the provider.
const (
	shopID       = "1001001"
	shopProducts = 2000
	firstProduct = 1001
	appID        = "4242"
	loadedWithin = 50 * time.Second
)

// install installs the store by operation 5, as a platform connector does at the end of OAuth, waits for its load, and makes a
// storefront key. The provider forgets at Ctrl-C who subscribed to its webhooks, and that anything was changed; installing a store
// that is there already mends both.
func (s *Stack) install(ctx context.Context, api services.Internal) error {
	ctx, cancel := context.WithTimeout(ctx, loadedWithin)
	defer cancel()
	begun := time.Now()
	got, err := api.Install(ctx, services.Installation{
		Provider: services.ConnectorProvider, AppID: appID, ExternalStoreID: shopID, AccessToken: s.state.AccessToken,
		Scope: "read_products,read_orders",
		Profile: map[string]string{
			"name": "Tienda " + shopID, "domain": "store" + shopID + ".shop.example", "country": "AR", "language": "es", "currency": "ARS",
		},
	})
	if err != nil {
		return fmt.Errorf("install the fake store: %w", err)
	}
	if got.ConnectionID != s.state.Shop.ConnectionID {
		s.state.ShopKey = ""
	}
	s.state.Shop = got
	run, err := api.Loaded(ctx, got.ConnectionID)
	if err != nil {
		return fmt.Errorf("load the fake store: %w", err)
	}
	s.say("fake store: %d products and %d categories loaded in %s", run.Resources["product"].Read, run.Resources["category"].Read,
		time.Since(begun).Round(100*time.Millisecond))
	if err := ensureKey(ctx, api, got.ConnectionID, &s.state.ShopKey); err != nil {
		return err
	}
	return s.state.save(s.path("state.json"))
}

// firstPublished is the id, at the provider, of the first product that shoppers may see.
func (s *Stack) firstPublished(ctx context.Context) (string, error) {
	for n := firstProduct; n < firstProduct+shopProducts; n++ {
		id := strconv.Itoa(n)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.shared.ProviderURL+"/debug/products/"+id, nil)
		if err != nil {
			return "", err
		}
		text, err := read(r)
		if err != nil {
			return "", fmt.Errorf("look at the fake store: %w", err)
		}
		var product struct {
			Published bool `json:"published"`
		}
		if err := json.Unmarshal(text, &product); err != nil || product.Published {
			return id, err
		}
	}
	return "", fmt.Errorf("store %s has no published product", shopID)
}

// readable makes sure that a storefront can read the product of the banner (operation 2).
func readable(ctx context.Context, d demo) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.get("BASE_URL")+"/v1/catalog/items/"+d.get("ITEM_ID"), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+d.get("STOREFRONT_KEY"))
	if _, err := read(r); err != nil {
		return fmt.Errorf("read a product of the fake store: %w", err)
	}
	return nil
}

// read makes a request that has to be answered by a 200.
func read(r *http.Request) ([]byte, error) {
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = &services.StatusError{Status: res.StatusCode, Body: string(text)}
	}
	return text, err
}
