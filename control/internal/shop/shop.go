// Package shop owns how control comes to call for a shop: a connection, the adapter of its provider and its credential,
// opened for one piece of work (contract, section 3 "Installation"). A connection that is not active, or whose credential
// was destroyed, is closed: work for it ends, and what was left undone is found when the shop comes back.
//
// What a provider tells of a shop's end, pause or return is believed only when a call confirms it (Checker).
//
// The package refuses to keep a credential.
package shop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// State is the state of a connection.
type State string

// The closed set of states. A custom connection is always active.
const (
	Active      State = "active"
	Suspended   State = "suspended"
	Uninstalled State = "uninstalled"
)

// ErrClosed means that nothing may be called for the shop now.
var ErrClosed = errors.New("shop: closed")

// Record is what the store knows of a provider's connection.
type Record struct {
	Source          observation.Source
	ExternalStoreID string
	State           State
	Profile         provider.Profile
	Sealed          []byte    // the credential; nil when it was destroyed
	CredentialAt    time.Time // when the credential was stored
}

// Store reads connections. One that is not there, or is a custom one, is not_found.
type Store interface {
	Shop(ctx context.Context, c ident.ConnectionID) (Record, error)
}

// Opened is a shop that can be called for.
type Opened struct {
	Source       observation.Source
	State        State
	Adapter      provider.Adapter
	Store        provider.Store
	CredentialAt time.Time // names the credential that was opened
}

// Shops opens shops.
type Shops struct {
	store    Store
	registry *provider.Registry
	sealer   *seal.Sealer
}

// New returns Shops.
func New(store Store, registry *provider.Registry, sealer *seal.Sealer) *Shops {
	return &Shops{store: store, registry: registry, sealer: sealer}
}

// CredentialPlace is where the credential of a connection is sealed for.
func CredentialPlace(c ident.ConnectionID) seal.Place {
	return seal.Place{Table: "credentials", Column: "sealed", Row: string(c), Connection: string(c)}
}

// Open returns an active shop, or ErrClosed.
func (s *Shops) Open(ctx context.Context, c ident.ConnectionID) (Opened, error) {
	o, err := s.OpenAny(ctx, c)
	if err == nil && o.State != Active {
		return Opened{}, ErrClosed
	}
	return o, err
}

// OpenAny returns a shop that has a credential, in whatever state it is, or ErrClosed.
func (s *Shops) OpenAny(ctx context.Context, c ident.ConnectionID) (Opened, error) {
	r, err := s.store.Shop(ctx, c)
	if err != nil {
		return Opened{}, err
	}
	adapter, mounted := s.registry.Adapter(r.Source.Provider)
	if !mounted || r.Sealed == nil {
		return Opened{}, ErrClosed
	}
	credential, err := s.sealer.Open(r.Sealed, CredentialPlace(c))
	if err != nil {
		return Opened{}, fmt.Errorf("credential of %s: %w", c, err)
	}
	return Opened{
		Source: r.Source, State: r.State, Adapter: adapter, CredentialAt: r.CredentialAt,
		Store: provider.Store{
			ConnectionID: c, ExternalStoreID: r.ExternalStoreID, Credential: settings.Secret(credential), Profile: r.Profile,
		},
	}, nil
}
