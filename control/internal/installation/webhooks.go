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
	"storefront.internal/shared/settings"
)

// EndpointStore knows what of a connection is wanted at its provider.
type EndpointStore interface {
	// Endpoints gives a connection the endpoints that it lacks, and returns all of them.
	Endpoints(ctx context.Context, c ident.ConnectionID, wanted []Endpoint) ([]Endpoint, error)
	// Keyed returns the mark of the secret that all subscriptions of the connection have, "" when that is not known.
	Keyed(ctx context.Context, c ident.ConnectionID) (mark string, err error)
	SetKeyed(ctx context.Context, c ident.ConnectionID, mark string) error
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
type Mended struct{ Made, Removed, Rekeyed int }

// Reconcile lists what the provider has, removes what is doubled, disabled or of no topic that is wanted, makes what is
// missing, and gives what was made with another secret the present one. Subscriptions to URLs that are not ours are left alone. before is called ahead of each call and may end
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
	missing, excess, kept := w.plan(s.Adapter.Name(), wanted, present)
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
	done.Rekeyed, err = w.rekey(ctx, s, appsecret.App{Provider: s.Adapter.Name(), ID: appID}, kept, before)
	return done, err
}

// rekey gives subscriptions that were there the app's present secret, where they may have another.
func (w *Webhooks) rekey(ctx context.Context, s shop.Opened, app appsecret.App, kept []provider.Subscription, before func(context.Context) error) (n int, err error) {
	rekeyer, keyed := s.Adapter.(provider.Rekeyer)
	if !keyed {
		return 0, nil
	}
	c, mark := s.Store.ConnectionID, w.secrets.Mark(app)
	if has, err := w.store.Keyed(ctx, c); err != nil || has == mark {
		return 0, err
	}
	for _, sub := range kept {
		err := call(ctx, before, func(ctx context.Context) error { return rekeyer.Rekey(ctx, s.Store, sub.ID, sub.Secret) })
		if err != nil {
			return n, err
		}
		n++
	}
	return n, w.store.SetKeyed(ctx, c, mark)
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

// plan compares what is wanted with what is present. kept are those that are, with the secret that is wanted.
func (w *Webhooks) plan(name string, wanted, present []provider.Subscription) (missing, excess, kept []provider.Subscription) {
	type target struct{ topic, url string }
	open := make(map[target]bool, len(wanted))
	secrets := make(map[target]settings.Secret, len(wanted))
	for _, sub := range wanted {
		t := target{sub.Topic, sub.URL}
		open[t], secrets[t] = true, sub.Secret
	}
	for _, sub := range present {
		t := target{sub.Topic, sub.URL}
		switch {
		case open[t] && !sub.Disabled:
			open[t] = false
			sub.Secret = secrets[t]
			kept = append(kept, sub)
		case strings.HasPrefix(sub.URL, w.prefix(name)):
			excess = append(excess, sub)
		}
	}
	for _, sub := range wanted {
		if open[target{sub.Topic, sub.URL}] {
			missing = append(missing, sub)
		}
	}
	return missing, excess, kept
}
