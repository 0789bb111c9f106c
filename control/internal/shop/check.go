package shop

import (
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/ident"
)

// States stores the states of connections.
type States interface {
	// SetState sets the state of a connection if its credential is still the one that was stored at that
	// time. An uninstalled connection loses its credential, and one that becomes active gets a bootstrap run,
	// in the same transaction.
	SetState(ctx context.Context, c ident.ConnectionID, credentialAt time.Time, to State) error
	// RecordRefusal notes that the provider refuses the credential that was stored at that time.
	RecordRefusal(ctx context.Context, c ident.ConnectionID, credentialAt time.Time) error
}

// Checker confirms by a call what a webhook told of a shop.
type Checker struct {
	shops  *Shops
	states States
}

// NewChecker returns a Checker.
func NewChecker(shops *Shops, states States) *Checker { return &Checker{shops: shops, states: states} }

// disabledCheckDelay is how long a check of a disabled connection waits until it looks again.
const disabledCheckDelay = 10 * time.Minute

// Check asks the provider whether the shop may be called. A refused credential ends the connection only when
// the provider also told of an uninstallation: a refusal alone may be an error of the provider or a missing
// scope, so it is only shown. snooze is the time until another attempt, 0 when the answer is known.
func (k *Checker) Check(ctx context.Context, c ident.ConnectionID,
	uninstalled bool) (snooze time.Duration, err error) {
	opened, err := k.shops.OpenAny(ctx, c)
	if errors.Is(err, ErrDisabled) { // what the webhook told must not be lost
		return disabledCheckDelay, nil
	}
	if err != nil {
		return 0, err
	}
	_, err = opened.Adapter.Profile(ctx, opened.Store)
	var refused *provider.CredentialRefused
	var paused *provider.ShopSuspended
	to := Active
	switch {
	case errors.As(err, &refused) && uninstalled:
		to = Uninstalled
	case errors.As(err, &refused):
		return 0, k.states.RecordRefusal(ctx, c, opened.CredentialAt)
	case errors.As(err, &paused):
		to = Suspended
	case err != nil:
		after, _ := provider.RetryAfter(err)
		if after > 0 {
			return after, nil
		}
		return 0, err
	}
	return 0, k.states.SetState(ctx, c, opened.CredentialAt, to)
}
