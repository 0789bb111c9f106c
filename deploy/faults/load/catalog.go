package load

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/faults/recording"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// deliverObservations is the connector of all custom connections. It delivers changes and deletions, and also
// old revisions and invalid documents.
func (l *Load) deliverObservations(ctx context.Context, client recording.Client, random *rand.Rand) {
	for l.pause(ctx, jitter(random, 400*time.Millisecond)) {
		c := l.connections[random.IntN(l.Connections)]
		var batch []recording.Observation
		for range 1 + random.IntN(8) {
			batch = append(batch, c.change(random))
		}
		retry(ctx, random, maxAttempts, func() bool {
			return recording.Final(l.observe(ctx, client, c,
				batch))
		})
	}
}

func (l *Load) observe(ctx context.Context, client recording.Client, c *connection,
	batch []recording.Observation) history.Event {
	e := client.DeliverObservations(ctx, c.id, c.token, batch)
	for i, r := range e.ObservationResults {
		if r.EntityID != "" && i < len(batch) && batch[i].Entity == "product" {
			c.addItem(r.EntityID)
		}
	}
	return e
}

// change returns the next observation of one of the connection's entities.
func (c *connection) change(random *rand.Rand) recording.Observation {
	c.mu.Lock()
	ids := slices.Sorted(maps.Keys(c.entities))
	id := ids[random.IntN(len(ids))]
	kind := c.entities[id].kind
	c.mu.Unlock()
	o := c.nextRevision(kind, id, random)
	switch random.IntN(20) {
	case 0:
		o.Operation, o.Document = "delete", nil
	case 1: // an old revision
		o.Revision = max(1, o.Revision-1-random.Int64N(5))
	case 2: // invalid: it is archived and quarantined
		o.Document = map[string]any{"item": map[string]any{"status": "active"}}
	}
	return o
}

// nextRevision increases the revision of an entity and makes its document.
func (c *connection) nextRevision(kind, id string, random *rand.Rand) recording.Observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entities[id]
	if e == nil {
		e = &entity{kind: kind}
		c.entities[id] = e
	}
	e.revision += 1 + random.Int64N(3)
	title := fmt.Sprintf("%s at %d", id, e.revision)
	o := recording.Observation{Entity: kind, ExternalID: id, Revision: e.revision,
		Raw: json.RawMessage(fmt.Sprintf(`{"as":"sent", "title":%q,"n":%d}`, title, random.Uint32()))}
	if kind == "category" {
		o.Document = map[string]any{"name": map[string]string{"es": title}}
		return o
	}
	o.Document = map[string]any{
		"item": map[string]any{"title": map[string]string{"es": title}, "status": "active",
			"taxonomy": []any{map[string]string{"external_id": fmt.Sprintf("c%d",
				random.IntN(baseCategories))}}},
		"variants": []any{map[string]any{"external_id": "v1",
			"price": map[string]string{"amount": "10.50", "currency": "ARS"}}},
		"availability": []any{map[string]any{"variant_external_id": "v1", "sellable": "yes",
			"quantity": random.IntN(9)}},
	}
	return o
}

// merchant changes products of the shop at the fake provider.
type merchant struct {
	*connection
	endpoint string // of its webhooks
	changes  int
}

// Installation returns how the shop at the fake provider is installed.
func Installation(appID, shopID string) client.Installation {
	return client.Installation{
		Provider: client.ConnectorProvider, AppID: appID, ExternalStoreID: shopID, AccessToken: "demo-token",
		Scope:   "read_products,read_orders",
		Profile: map[string]string{"name": "Tienda", "country": "AR", "language": "es", "currency": "ARS"},
	}
}

// install installs the shop and waits until its catalog is loaded.
func (l *Load) install(ctx context.Context) (*merchant, error) {
	installed, err := l.API.OpenInstallation(ctx, Installation(l.AppID, l.ShopID))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := l.API.AwaitCatalog(ctx, installed.ConnectionID); err != nil {
		return nil, err
	}
	m := &merchant{connection: &connection{id: installed.ConnectionID}, endpoint: installed.EndpointID}
	for n := range l.Products {
		m.items = append(m.items, string(catalog.NewItemID(ident.ConnectionID(m.id),
			strconv.Itoa(catalogue.FirstProduct+n))))
	}
	m.key, err = l.Client.IssueKey(ctx, m.id)
	return m, err
}

// changeProducts changes, hides, deletes and restores products, and delivers the webhook of each change.
func (l *Load) changeProducts(ctx context.Context, c recording.Client, random *rand.Rand) {
	for l.pause(ctx, jitter(random, 700*time.Millisecond)) {
		id := strconv.Itoa(catalogue.FirstProduct + random.IntN(l.Products))
		topic, method := "product/updated", http.MethodPut
		var patch any
		l.merchant.changes++
		switch random.IntN(12) {
		case 0:
			topic, method = "product/deleted", http.MethodDelete
		case 1:
			patch = map[string]any{"published": random.IntN(2) == 0}
		default:
			text := fmt.Sprintf("change %d", l.merchant.changes)
			patch = map[string]any{"name": map[string]string{"es": text, "pt": text, "en": text},
				"published": true}
		}
		url := l.ProviderURL + "/debug/products/" + id
		if !client.Do(ctx, nil, client.Request{Method: method, URL: url, Body: patch,
			Timeout: 10 * time.Second}).OK() {
			continue // the product is deleted already, or the provider is paused
		}
		body := WebhookBody(l.ShopID, topic, id)
		retry(ctx, random, forever, func() bool {
			return recording.Final(c.DeliverWebhook(ctx, l.merchant.id, l.merchant.endpoint, id, body))
		})
	}
}

// WebhookBody returns the body of a webhook about a product.
func WebhookBody(shopID, topic, productID string) []byte {
	return fmt.Appendf(nil, `{"store_id":%s,"event":%q,"id":%s}`, shopID, topic, productID)
}
