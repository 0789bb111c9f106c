package installation

import (
	"context"
	"strings"
	"time"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/failpoint"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// EndpointStore stores the endpoints of a connection.
type EndpointStore interface {
	// Endpoints adds the endpoints that a connection lacks, and returns all of them.
	Endpoints(ctx context.Context, c ident.ConnectionID, wanted []Endpoint) ([]Endpoint, error)
	// SecretFingerprint identifies the secret of the connection's subscriptions, "" when it is unknown.
	SecretFingerprint(ctx context.Context, c ident.ConnectionID) (fingerprint string, err error)
	SetSecretFingerprint(ctx context.Context, c ident.ConnectionID, fingerprint string) error
}

// Subscriptions makes the subscriptions at a provider equal to the wanted ones: one for each topic of the
// adapter, to the endpoint of that topic.
type Subscriptions struct {
	store   EndpointStore
	secrets *appsecret.Keyring
	baseURL string // of their URLs, without a trailing slash
}

// NewSubscriptions returns Subscriptions to URLs under base.
func NewSubscriptions(store EndpointStore, secrets *appsecret.Keyring, base string) *Subscriptions {
	return &Subscriptions{store: store, secrets: secrets, baseURL: strings.TrimRight(base, "/")}
}

// Repairs counts what a reconciliation changed.
type Repairs struct{ Created, Removed, Rotated int }

// Reconcile lists the provider's subscriptions, removes those that are doubled, disabled or of an unwanted
// topic, creates the missing ones, and replaces outdated secrets. It ignores subscriptions to foreign URLs.
// It calls before ahead of each call; an error of before ends the work. It can be interrupted anywhere and
// repeated.
func (w *Subscriptions) Reconcile(ctx context.Context, s shop.Opened, appID string,
	before func(context.Context) error) (done Repairs, err error) {
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
		err := call(ctx, before, func(ctx context.Context) error {
			return s.Adapter.Unsubscribe(ctx,
				s.Store, sub.ID)
		})
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
		done.Created++
	}
	done.Rotated, err = w.rotateSecrets(ctx, s, appsecret.App{Provider: s.Adapter.Name(), ID: appID}, kept,
		before)
	return done, err
}

// rotateSecrets gives kept subscriptions the app's present secret, where they may have another.
func (w *Subscriptions) rotateSecrets(ctx context.Context, s shop.Opened, app appsecret.App,
	kept []provider.Subscription, before func(context.Context) error) (n int, err error) {
	rotator, keyed := s.Adapter.(provider.SecretRotator)
	if !keyed {
		return 0, nil
	}
	c, fingerprint := s.Store.ConnectionID, w.secrets.Fingerprint(app)
	if has, err := w.store.SecretFingerprint(ctx, c); err != nil || has == fingerprint {
		return 0, err
	}
	for _, sub := range kept {
		err := call(ctx, before, func(ctx context.Context) error {
			return rotator.RotateSecret(ctx, s.Store,
				sub.ID, sub.Secret)
		})
		if err != nil {
			return n, err
		}
		n++
	}
	return n, w.store.SetSecretFingerprint(ctx, c, fingerprint)
}

// callTimeout bounds one call of the adapter, which may read several pages.
const callTimeout = 30 * time.Second

// call runs do after before, with a timeout.
func call(ctx context.Context, before, do func(context.Context) error) error {
	if err := before(ctx); err != nil {
		return err
	}
	failpoint.Hit(failpoint.SagaCalling)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := do(ctx)
	failpoint.Hit(failpoint.SagaCalled)
	return err
}

// wanted returns the subscriptions of the adapter's topics.
func (w *Subscriptions) wanted(a provider.Adapter, appID string, all []Endpoint) []provider.Subscription {
	at := make(map[string]ident.EndpointID, len(all))
	for _, e := range all {
		at[e.Topic] = e.ID
	}
	app := appsecret.App{Provider: a.Name(), ID: appID}
	out := make([]provider.Subscription, 0, len(all))
	for _, topic := range a.WebhookTopics() {
		id := at[topic]
		out = append(out, provider.Subscription{
			Topic: topic, URL: w.urlPrefix(a.Name()) + string(id),
			Secret: w.secrets.SubscriptionSecret(app, id),
		})
	}
	return out
}

// urlPrefix is the prefix of our URLs at a provider.
func (w *Subscriptions) urlPrefix(provider string) string { return w.baseURL + "/" + provider + "/" }

// plan compares the wanted subscriptions with the present ones. kept are present and wanted, with the wanted
// secret.
func (w *Subscriptions) plan(name string, wanted,
	present []provider.Subscription) (missing, excess, kept []provider.Subscription) {
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
		case strings.HasPrefix(sub.URL, w.urlPrefix(name)):
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
