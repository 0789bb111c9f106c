package installation

import (
	"context"
	"strings"
	"time"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/ident"
)

// EndpointStore gives a connection the endpoints that it lacks, and returns all of them.
type EndpointStore interface {
	Endpoints(ctx context.Context, c ident.ConnectionID, wanted []Endpoint) ([]Endpoint, error)
}

// Webhooks makes the subscriptions at a provider those that are wanted: for each topic of the adapter one, to the
// endpoint of that topic.
type Webhooks struct {
	store   EndpointStore
	secrets *appsecret.Book
	base    string // of their URLs, without a trailing slash
}

// NewWebhooks returns Webhooks that make subscriptions to URLs under base.
func NewWebhooks(store EndpointStore, secrets *appsecret.Book, base string) *Webhooks {
	return &Webhooks{store: store, secrets: secrets, base: strings.TrimRight(base, "/")}
}

// Mended counts what a reconciliation changed.
type Mended struct{ Made, Removed int }

// Reconcile lists what the provider has, removes what is doubled, disabled or of no topic that is wanted, and makes what
// is missing. Subscriptions to URLs that are not ours are left alone. before is called ahead of each call and may end
// the work. It can be ended anywhere and run again.
func (w *Webhooks) Reconcile(ctx context.Context, s shop.Opened, appID string, before func(context.Context) error) (done Mended, err error) {
	all, err := w.store.Endpoints(ctx, s.Store.ConnectionID, endpoints(s.Adapter))
	if err != nil {
		return done, err
	}
	wanted := w.wanted(s.Adapter, appID, all)
	var present []provider.Subscription
	err = call(ctx, before, func(ctx context.Context) error {
		present, err = s.Adapter.Subscriptions(ctx, s.Store)
		return err
	})
	if err != nil {
		return done, err
	}
	missing, excess := w.plan(s.Adapter.Name(), wanted, present)
	for _, sub := range excess {
		err := call(ctx, before, func(ctx context.Context) error { return s.Adapter.Unsubscribe(ctx, s.Store, sub.ID) })
		if err != nil {
			return done, err
		}
		done.Removed++
	}
	for _, sub := range missing {
		err := call(ctx, before, func(ctx context.Context) error {
			_, err := s.Adapter.Subscribe(ctx, s.Store, sub)
			return err
		})
		if err != nil {
			return done, err
		}
		done.Made++
	}
	return done, nil
}

// callFor bounds a call of the adapter, which may be of several pages: below what a lease lasts.
const callFor = leaseFor - 10*time.Second

// call makes one call behind before.
func call(ctx context.Context, before, do func(context.Context) error) error {
	if err := before(ctx); err != nil {
		return err
	}
	crashpoint.Hit(crashpoint.SagaCalling)
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	err := do(ctx)
	crashpoint.Hit(crashpoint.SagaCalled)
	return err
}

// wanted are the subscriptions of the adapter's topics.
func (w *Webhooks) wanted(a provider.Adapter, appID string, all []Endpoint) []provider.Subscription {
	at := make(map[string]ident.EndpointID, len(all))
	for _, e := range all {
		at[e.Topic] = e.ID
	}
	app := appsecret.App{Provider: a.Name(), ID: appID}
	out := make([]provider.Subscription, 0, len(all))
	for _, topic := range a.Topics() {
		id := at[topic]
		out = append(out, provider.Subscription{
			Topic: topic, URL: w.prefix(a.Name()) + string(id), Secret: w.secrets.Subscribing(app, id),
		})
	}
	return out
}

// prefix is what our URLs at a provider begin with.
func (w *Webhooks) prefix(provider string) string { return w.base + "/" + provider + "/" }

// plan compares what is wanted with what is present.
func (w *Webhooks) plan(name string, wanted, present []provider.Subscription) (missing, excess []provider.Subscription) {
	type target struct{ topic, url string }
	open := make(map[target]bool, len(wanted))
	for _, sub := range wanted {
		open[target{sub.Topic, sub.URL}] = true
	}
	for _, sub := range present {
		t := target{sub.Topic, sub.URL}
		switch {
		case open[t] && !sub.Disabled:
			open[t] = false
		case strings.HasPrefix(sub.URL, w.prefix(name)):
			excess = append(excess, sub)
		}
	}
	for _, sub := range wanted {
		if open[target{sub.Topic, sub.URL}] {
			missing = append(missing, sub)
		}
	}
	return missing, excess
}
