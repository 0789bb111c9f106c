package localstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	catalogue "storefront.internal/deploy/democonnector/demo"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
)

// The shop of the fake provider, and our app at the provider.
const (
	shopProvider = client.ConnectorProvider
	shopID       = "1001001"
	shopProducts = 2000
	firstProduct = 1001
	appID        = "4242"
	loadedWithin = 50 * time.Second
)

// fill makes the two connections with their catalogs, and proves on the public surface that they work. It
// returns what demo.env holds, and the Decision of the banner's second command.
func (s *Stack) fill(ctx context.Context) (d demo, decisionID string, err error) {
	api := client.Internal{BaseURL: s.ports.url(controlPort), ConnectorToken: s.state.ConnectorToken,
		BackendToken: s.state.BackendToken}
	for _, step := range []func(context.Context, client.Internal) error{s.connect, s.install,
		s.deliverCatalog, s.engineKnows} {
		if err := step(ctx, api); err != nil {
			return nil, "", err
		}
		if err := s.state.save(s.path("state.json")); err != nil {
			return nil, "", err
		}
	}
	externalID, err := s.firstPublished(ctx)
	if err != nil {
		return nil, "", err
	}
	d = s.demo(externalID)
	shop := client.Storefront{BaseURL: d.get("BASE_URL"), ConnectionID: d.get("CONNECTION_ID"),
		Key: d.get("STOREFRONT_KEY")}
	if err := shop.GetItem(ctx, d.get("ITEM_ID"), "").Decode(nil); err != nil {
		return nil, "", fmt.Errorf("read a product of the fake shop: %w", err)
	}
	decision, err := shop.Recommend(ctx, nil)
	if err != nil {
		return nil, "", fmt.Errorf("ask for a first recommendation: %w", err)
	}
	return d, decision.ID, nil
}

// connect makes the custom connection and its storefront key, unless an earlier run made them. A shop id
// whose connection belongs to another state (its token was shown only once) is replaced by another id.
func (s *Stack) connect(ctx context.Context, api client.Internal) error {
	c, err := api.CreateConnection(ctx, s.state.ExternalStoreID)
	if exists(err) && s.state.Connection.ConnectionID == "" {
		s.state.ExternalStoreID = "demo-store-" + secret()[:8]
		c, err = api.CreateConnection(ctx, s.state.ExternalStoreID)
	}
	switch {
	case err == nil:
		s.state.Connection, s.state.Key = c, ""
	case !exists(err):
		return fmt.Errorf("create the custom connection: %w", err)
	}
	return ensureKey(ctx, api, s.state.Connection.ConnectionID, &s.state.Key)
}

func exists(err error) bool {
	var status *client.StatusError
	return errors.As(err, &status) && status.Status == http.StatusConflict
}

// ensureKey keeps the remembered storefront key of a connection if it is still valid, and issues a new one
// otherwise.
func ensureKey(ctx context.Context, api client.Internal, connectionID string, remembered *string) error {
	keys, err := api.ListKeys(ctx, connectionID)
	if err != nil {
		return fmt.Errorf("list the storefront keys: %w", err)
	}
	for _, key := range keys {
		if key.Secret != "" && key.Secret == *remembered {
			return nil
		}
	}
	key, err := api.IssueKey(ctx, connectionID)
	if err != nil {
		return fmt.Errorf("issue a storefront key: %w", err)
	}
	*remembered = key.Secret
	return nil
}

// install installs the fake provider's shop as a platform connector does at the end of OAuth, waits until its
// catalog is loaded, and makes a storefront key. The fake provider forgets its subscriptions and changes when
// it ends; installing the shop again restores the subscriptions and the catalog.
func (s *Stack) install(ctx context.Context, api client.Internal) error {
	ctx, cancel := context.WithTimeout(ctx, loadedWithin)
	defer cancel()
	began := time.Now()
	got, err := api.OpenInstallation(ctx, client.Installation{
		Provider: shopProvider, AppID: appID, ExternalStoreID: shopID, AccessToken: s.state.AccessToken,
		Scope: "read_products,read_orders",
		Profile: map[string]string{
			"name": "Tienda " + shopID, "domain": "store" + shopID + ".shop.example", "country": "AR",
			"language": "es", "currency": "ARS",
		},
	})
	if err != nil {
		return fmt.Errorf("install the fake shop: %w", err)
	}
	if got.ConnectionID != s.state.Shop.ConnectionID {
		s.state.ShopKey = ""
	}
	s.state.Shop = got
	run, err := api.AwaitCatalog(ctx, got.ConnectionID)
	if err != nil {
		return fmt.Errorf("load the fake shop: %w", err)
	}
	s.say("fake shop: %d products and %d categories loaded in %s", run.Resources["product"].Read,
		run.Resources["category"].Read,
		time.Since(began).Round(100*time.Millisecond))
	return ensureKey(ctx, api, got.ConnectionID, &s.state.ShopKey)
}

// deliverCatalog lets the demo connector deliver its catalog to the custom connection. What an earlier run
// delivered is a duplicate.
func (s *Stack) deliverCatalog(ctx context.Context, api client.Internal) error {
	c := s.state.Connection
	report, err := catalogue.Run(ctx, connector.Config{
		BaseURL: api.BaseURL, ConnectionID: c.ConnectionID, Token: c.Token, Log: s.say,
	}, s.path("democonnector-"+c.ConnectionID+".json"))
	if err != nil {
		return fmt.Errorf("deliver the demo catalog: %w", err)
	}
	s.say("demo catalog: %s", report)
	return nil
}

// engineKnows waits until the engine knows the fake shop's products, so that the first recommendation is the
// engine's. When that takes too long the stack starts all the same: recommendations then come from the
// catalog.
func (s *Stack) engineKnows(ctx context.Context, _ client.Internal) error {
	err := poll.Within(ctx, 20*time.Second, "the engine knows the catalog", func() error {
		return client.Call(ctx, nil, client.Request{
			Method: http.MethodPost, URL: s.Settings.EngineURL + "/v1/recommendations",
			Token: s.Settings.EngineSecret,
			Body: map[string]string{"connection_id": s.state.Shop.ConnectionID, "decision_id": "dec_start",
				"placement": "home"},
		}, nil)
	})
	if err != nil {
		s.say("the demo engine has not read the catalog yet (%v): recommendations come from the catalog "+
			"until it has", err)
	}
	return ctx.Err()
}

// firstPublished is the provider's id of the first product that shoppers may see.
func (s *Stack) firstPublished(ctx context.Context) (string, error) {
	for n := firstProduct; n < firstProduct+shopProducts; n++ {
		id := strconv.Itoa(n)
		var product struct {
			Published bool `json:"published"`
		}
		request := client.Request{Method: http.MethodGet, URL: s.Settings.ProviderURL + "/debug/products/" +
			id}
		if err := client.Call(ctx, nil, request, &product); err != nil || product.Published {
			return id, err
		}
	}
	return "", fmt.Errorf("shop %s has no published product", shopID)
}
