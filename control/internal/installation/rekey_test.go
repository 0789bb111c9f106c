package installation_test

import (
	"context"
	"errors"
	"testing"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/settings"
)

// keyed is the stub as a provider whose subscriptions have a secret each.
type keyed struct{ *stub }

func (k keyed) RotateSecret(_ context.Context, store provider.Shop, id string, secret settings.Secret) error {
	return k.call(store, func() {
		for i := range k.held {
			if k.held[i].ID == id {
				k.held[i].Secret = secret
			}
		}
	})
}

// TestSubscriptionsGetTheSecretThatTheAppHasNow: the first sweep after a change replaces the secrets, later
// ones do not; after an interruption the next sweep does the rest.
func TestSubscriptionsGetTheSecretThatTheAppHasNow(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	got := b.install("app")
	if _, err := b.run(got, 1); err != nil {
		t.Fatal(err)
	}
	opened, err := b.shops.Open(t.Context(), got.ConnectionID)
	if err != nil {
		t.Fatal(err)
	}
	opened.Adapter = keyed{b.stub}
	hooks := func(secret string) *installation.Subscriptions {
		book, err := appsecret.Parse("stub/app:" + secret)
		if err != nil {
			t.Fatal(err)
		}
		return installation.NewSubscriptions(b.store, book, "https://hooks.test/in/")
	}
	reconcile := func(of *installation.Subscriptions, want installation.Repairs, fails bool) {
		t.Helper()
		done, err := of.Reconcile(t.Context(), opened, "app", func(context.Context) error { return nil })
		if done != want || (err != nil) != fails {
			t.Fatalf("%+v, %v, want %+v", done, err, want)
		}
	}
	before := b.stub.held[0].Secret
	old, next := hooks("canary-secret"), hooks("canary-next-secret")
	// what they have was not noted by an older release
	reconcile(old, installation.Repairs{Rotated: 3}, false)
	reconcile(old, installation.Repairs{}, false)
	if b.stub.held[0].Secret != before {
		t.Error("the secret of the same app changed")
	}
	calls := b.stub.calls
	b.stub.fail = func(call int) error {
		if call == calls+3 {
			return errors.New("died")
		}
		return nil
	}
	reconcile(next, installation.Repairs{Rotated: 1}, true)
	b.stub.fail = nil
	b.stub.held = b.stub.held[:2]
	reconcile(next, installation.Repairs{Created: 1, Rotated: 2}, false)
	reconcile(next, installation.Repairs{}, false)
	b.whole()
	seen := map[settings.Secret]bool{before: true}
	for _, sub := range b.stub.held {
		if seen[sub.Secret] {
			t.Errorf("%s has a secret that is not its own, or the old one", sub.Topic)
		}
		seen[sub.Secret] = true
	}
	opened.Adapter = b.stub // a provider without them is not asked about secrets
	reconcile(old, installation.Repairs{}, false)
}
