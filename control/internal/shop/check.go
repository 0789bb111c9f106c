package shop

import (
	"context"
	"errors"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/ident"
)

// States is where the state of a connection is moved.
type States interface {
	// SetState moves a connection unless its credential is not the one that was stored at that time any more. An
	// uninstalled one loses its credential, one that becomes active again is loaded anew; all in one transaction.
	SetState(ctx context.Context, c ident.ConnectionID, credentialAt time.Time, to State) error
}

// Checker confirms what was told of a shop.
type Checker struct {
	shops  *Shops
	states States
}

// NewChecker returns a Checker.
func NewChecker(shops *Shops, states States) *Checker { return &Checker{shops: shops, states: states} }

// Check asks the provider whether the shop may be called. A refused credential ends the connection only when the provider
// also told of an uninstallation: a refusal alone may be a fault of the provider, or a scope that is missing. again is
// how soon to ask once more, 0 when the answer is known.
func (k *Checker) Check(ctx context.Context, c ident.ConnectionID, uninstalled bool) (again time.Duration, err error) {
	opened, err := k.shops.OpenAny(ctx, c)
	if err != nil {
		return 0, err
	}
	_, err = opened.Adapter.Profile(ctx, opened.Store)
	var refused *provider.Refused
	var paused *provider.Paused
	to := Active
	switch {
	case errors.As(err, &refused) && uninstalled:
		to = Uninstalled
	case errors.As(err, &refused):
		return 0, nil
	case errors.As(err, &paused):
		to = Suspended
	case err != nil:
		after, _ := provider.Retry(err)
		if after > 0 {
			return after, nil
		}
		return 0, err
	}
	return 0, k.states.SetState(ctx, c, opened.CredentialAt, to)
}
