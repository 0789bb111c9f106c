// Package shop opens shops for calls: a connection, the adapter of its provider and its credential, for one
// piece of work. A connection that is not active, or has no credential, is closed: work for it ends, and what
// is missing is found when the shop comes back. What a webhook tells of a shop's end, suspension or return
// counts only when a call confirms it (Checker).
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

// ErrClosed means that the shop may not be called now.
var ErrClosed = errors.New("shop: closed")

// ErrDisabled means that the connection is disabled: work for it stays as it is until it is enabled.
var ErrDisabled = errors.New("shop: disabled")

// DisabledBy is who disabled a connection.
type DisabledBy string

// The closed set of those who disable connections.
const (
	DisabledByOperator DisabledBy = "operator"
	DisabledByCrashes  DisabledBy = "crashes" // its jobs ended the process again and again
)

// Record is the stored state of a provider's connection.
type Record struct {
	Source          observation.Source
	ExternalStoreID string
	State           State
	Disabled        bool
	Profile         provider.Profile
	Sealed          []byte    // the credential; nil when it was deleted
	CredentialAt    time.Time // when the credential was stored
}

// Store reads connections. It returns not_found for one that does not exist or is custom.
type Store interface {
	Shop(ctx context.Context, c ident.ConnectionID) (Record, error)
}

// Opened is a shop that can be called.
type Opened struct {
	Source       observation.Source
	State        State
	Adapter      provider.Adapter
	Store        provider.Shop
	CredentialAt time.Time // identifies the credential
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

// CredentialBinding is the binding of a connection's sealed credential.
func CredentialBinding(c ident.ConnectionID) seal.Binding {
	return seal.Binding{Table: "credentials", Column: "sealed", Row: string(c), Connection: string(c)}
}

// Open returns an active shop, ErrClosed or ErrDisabled.
func (s *Shops) Open(ctx context.Context, c ident.ConnectionID) (Opened, error) {
	o, err := s.OpenAny(ctx, c)
	if err == nil && o.State != Active {
		return Opened{}, ErrClosed
	}
	return o, err
}

// OpenAny returns a shop that has a credential, in any state, or else ErrClosed or ErrDisabled.
func (s *Shops) OpenAny(ctx context.Context, c ident.ConnectionID) (Opened, error) {
	r, err := s.store.Shop(ctx, c)
	if err != nil {
		return Opened{}, err
	}
	if r.Disabled {
		return Opened{}, ErrDisabled
	}
	adapter, mounted := s.registry.Adapter(r.Source.Provider)
	if !mounted || r.Sealed == nil {
		return Opened{}, ErrClosed
	}
	credential, err := s.sealer.Open(r.Sealed, CredentialBinding(c))
	if err != nil {
		return Opened{}, fmt.Errorf("credential of %s: %w", c, err)
	}
	return Opened{
		Source: r.Source, State: r.State, Adapter: adapter, CredentialAt: r.CredentialAt,
		Store: provider.Shop{
			ConnectionID: c, ExternalStoreID: r.ExternalStoreID, Credential: settings.Secret(credential),
			Profile: r.Profile,
		},
	}, nil
}
