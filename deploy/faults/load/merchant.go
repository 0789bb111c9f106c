package load

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/faults/history"
	"storefront.internal/deploy/local/services"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// merchant changes products of the provider's store and lets the provider's notification arrive until it is taken.
type merchant struct {
	*shop
	changes int
}

// install installs the store by operation 5 and waits for its load.
func (l *Load) install(ctx context.Context) (*merchant, error) {
	api := services.Internal{BaseURL: l.Control.URL, ConnectorToken: l.ConnectorToken, BackendToken: l.BackendToken}
	got, err := api.Install(ctx, services.Installation{
		Provider: services.ConnectorProvider, AppID: l.AppID, ExternalStoreID: l.Store, AccessToken: "demo-token",
		Scope: "read_products,read_orders", Profile: map[string]string{"name": "Tienda", "country": "AR", "language": "es", "currency": "ARS"},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := api.Loaded(ctx, got.ConnectionID); err != nil {
		return nil, err
	}
	m := &merchant{shop: &shop{connection: got.ConnectionID, endpoint: got.EndpointID}}
	for n := range l.Products {
		m.items = append(m.items, string(catalog.NewItemID(ident.ConnectionID(got.ConnectionID), strconv.Itoa(catalogue.FirstProduct+n))))
	}
	return m, nil
}

// changes is the merchant at work: a new title or price, a product hidden, deleted or back again, and the notification of it.
func (l *Load) changes(ctx context.Context, client int, random *rand.Rand) {
	for l.rest(ctx, around(random, 700*time.Millisecond)) {
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
			patch = map[string]any{"name": map[string]string{"es": text, "pt": text, "en": text}, "published": true}
		}
		a := l.wire.do(ctx, request{method: method, url: l.Provider + "/debug/products/" + id, body: patch, within: 10 * time.Second})
		if !a.answered() { // deleted already, or the provider stands still
			continue
		}
		l.notify(ctx, client, topic, id, random)
	}
}

// notify is the provider's delivery to operation 12, until it is taken.
func (l *Load) notify(ctx context.Context, client int, topic, id string, random *rand.Rand) {
	store, _ := strconv.Atoi(l.Store)
	number, _ := strconv.Atoi(id)
	body, err := json.Marshal(map[string]any{"store_id": store, "event": topic, "id": number})
	if err != nil {
		panic(err) // of our own making
	}
	mac := hmac.New(sha256.New, []byte(l.AppSecret))
	mac.Write(body)
	url := fmt.Sprintf("%s/internal/v1/webhooks/%s/%s", l.Control.URL, services.ConnectorProvider, l.merchant.endpoint)
	for attempt := 1; ; attempt++ {
		call := l.Recorder.Invoke(history.Event{Op: history.Webhook, Client: client, Edge: l.Control.Name, Connection: l.merchant.connection, External: id})
		a := l.wire.do(ctx, request{method: http.MethodPost, url: url, token: l.ConnectorToken, body: body, within: 10 * time.Second,
			header: http.Header{"X-Provider-Signature": {hex.EncodeToString(mac.Sum(nil))}, "Content-Type": {"application/octet-stream"}}})
		e := a.end(history.Webhook)
		e.External = id
		l.Recorder.End(call, e)
		if a.final() || !wait(ctx, around(random, min(time.Duration(attempt)*300*time.Millisecond, 3*time.Second))) {
			return
		}
	}
}
