package installation

import (
	"context"
	"time"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/settings"
)

// Request is what operation 5 says of a store. Scope, Profile, BrowserProof and Attribution are nil when absent.
type Request struct {
	Provider        string
	AppID           string
	ExternalStoreID string
	AccessToken     settings.Secret
	Scope           *string
	Profile         *connection.Profile
	BrowserProof    []byte // SHA-256
	Attribution     map[string]string
}

// Installed is what operation 5 answers.
type Installed struct {
	InstallationID ident.InstallationID
	ConnectionID   ident.ConnectionID
	EndpointID     ident.EndpointID // the one that takes every topic
	Created        bool             // false: the store had a connection
}

// Endpoint is where notifications of one topic arrive; "" is every topic.
type Endpoint struct {
	ID    ident.EndpointID
	Topic string
}

// New is an installation to be stored. The ids count where the store has no connection yet.
type New struct {
	Request
	InstallationID ident.InstallationID
	ConnectionID   ident.ConnectionID
	StoreID        ident.StoreID
	Endpoints      []Endpoint

	// Seal seals the credential for the connection that it will be stored with.
	Seal func(ident.ConnectionID) ([]byte, error)
}

// View is a connection as its operator sees it (E7). Installation is nil for a custom one.
type View struct {
	ConnectionID    ident.ConnectionID
	StoreID         ident.StoreID
	Provider        string
	ExternalStoreID string
	State           string
	Installation    *Status
}

// Status is how far an installation is. Reason is of the last failure, "" without one.
type Status struct {
	ID     ident.InstallationID
	State  State
	Reason string
}

// Store is where installations live.
type Store interface {
	// Install stores everything and enqueues the saga's job, in one transaction.
	Install(ctx context.Context, n New) (Installed, error)
	// Connection returns not_found for one that is not there.
	Connection(ctx context.Context, c ident.ConnectionID) (View, error)
}

// Config is what a Service is made of.
type Config struct {
	Store     Store
	Sealer    *seal.Sealer
	Providers *provider.Registry
	Secrets   *appsecret.Book
	Now       func() time.Time
}

// Service opens installations.
type Service struct{ cfg Config }

// NewService returns a Service.
func NewService(cfg Config) *Service { return &Service{cfg: cfg} }

// Open opens the installation of a store for the connector principal of a provider (operation 5). The provider is not
// called. unknown_provider: the provider is not mounted or not the principal's, or the app has no secret.
func (s *Service) Open(ctx context.Context, caller string, r Request) (Installed, error) {
	adapter, mounted := s.cfg.Providers.Adapter(r.Provider)
	if !mounted || r.Provider != caller || !s.cfg.Secrets.Has(appsecret.App{Provider: r.Provider, ID: r.AppID}) {
		return Installed{}, fault.New(fault.UnknownProvider, "The provider is not served for this principal, or the app has no secret.")
	}
	now := s.cfg.Now()
	return s.cfg.Store.Install(ctx, New{
		Request:        r,
		InstallationID: ident.InstallationID(ident.Mint(ident.Installation, now)),
		ConnectionID:   ident.ConnectionID(ident.Mint(ident.Connection, now)),
		StoreID:        ident.StoreID(ident.Mint(ident.Store, now)),
		Endpoints:      endpoints(adapter),
		Seal: func(c ident.ConnectionID) ([]byte, error) {
			return s.cfg.Sealer.Seal([]byte(r.AccessToken.Reveal()), shop.CredentialPlace(c))
		},
	})
}

// Connection returns what E7 shows.
func (s *Service) Connection(ctx context.Context, c ident.ConnectionID) (View, error) {
	return s.cfg.Store.Connection(ctx, c)
}

// endpoints are one for every topic and one for each: two of the platforms name the topic in an unsigned header only.
// Their ids are random, since who knows one may try signatures on it.
func endpoints(a provider.Adapter) []Endpoint {
	out := []Endpoint{{ID: newEndpointID()}}
	for _, topic := range a.Topics() {
		out = append(out, Endpoint{ID: newEndpointID(), Topic: topic})
	}
	return out
}

func newEndpointID() ident.EndpointID { return ident.EndpointID(ident.Random(ident.Endpoint)) }
