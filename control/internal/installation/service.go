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

// Request asks for the installation of a store. Scope, Profile, BrowserProof and Attribution are nil when
// absent.
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

// Installed is an opened installation.
type Installed struct {
	InstallationID ident.InstallationID
	ConnectionID   ident.ConnectionID
	EndpointID     ident.EndpointID // the one that takes every topic
	Created        bool             // false: the store had a connection
}

// Endpoint receives the webhooks of one topic; "" stands for every topic.
type Endpoint struct {
	ID    ident.EndpointID
	Topic string
}

// NewInstallation is an installation to be stored. Its ids are used when the store has no connection yet.
type NewInstallation struct {
	Request
	InstallationID ident.InstallationID
	ConnectionID   ident.ConnectionID
	StoreID        ident.StoreID
	Endpoints      []Endpoint

	// Seal seals the credential for the connection that it will be stored with.
	Seal func(ident.ConnectionID) ([]byte, error)
}

// View is a connection as operators see it. Installation is nil for a custom connection.
type View struct {
	ConnectionID    ident.ConnectionID
	StoreID         ident.StoreID
	Provider        string
	ExternalStoreID string
	State           string
	Installation    *Status
	Disabled        *Disabled
	// CredentialRefusedAt is since when the provider refuses the credential, nil when it does not.
	CredentialRefusedAt *time.Time
}

// Disabled says since when a connection is disabled, who did it, and why.
type Disabled struct {
	At     time.Time
	By     shop.DisabledBy
	Reason string
}

// Status is the state of an installation. Reason is of the last failure, "" without one.
type Status struct {
	ID     ident.InstallationID
	State  State
	Reason string
}

// Store is where installations are stored.
type Store interface {
	// Install stores everything and enqueues the saga's job, in one transaction.
	Install(ctx context.Context, n NewInstallation) (Installed, error)
	// Connection returns not_found for a connection that does not exist.
	Connection(ctx context.Context, c ident.ConnectionID) (View, error)
	// Connections returns the connections of a query, oldest first.
	Connections(ctx context.Context, q Query) ([]View, error)
}

// MaxPage is the most connections of one page.
const MaxPage = 200

// Query selects connections. Empty members select all.
type Query struct {
	Providers       []string
	State           string
	ExternalStoreID string
	After           ident.ConnectionID // the last one of the page before
	Limit           int
}

// Config is what a Service is made of.
type Config struct {
	Store     Store
	Sealer    *seal.Sealer
	Providers *provider.Registry
	Secrets   *appsecret.Keyring
	Now       func() time.Time
}

// Service opens installations.
type Service struct{ cfg Config }

// NewService returns a Service.
func NewService(cfg Config) *Service { return &Service{cfg: cfg} }

// Open opens the installation of a store for the connector of a provider. It does not call the provider.
// unknown_provider: the provider is not mounted or not the caller's, or the app has no secret.
func (s *Service) Open(ctx context.Context, caller string, r Request) (Installed, error) {
	adapter, mounted := s.cfg.Providers.Adapter(r.Provider)
	if !mounted || r.Provider != caller || !s.cfg.Secrets.Has(appsecret.App{Provider: r.Provider,
		ID: r.AppID}) {
		return Installed{}, fault.New(fault.UnknownProvider,
			"The provider is not served for this principal, or the app has no secret.")
	}
	now := s.cfg.Now()
	return s.cfg.Store.Install(ctx, NewInstallation{
		Request:        r,
		InstallationID: ident.InstallationID(ident.Mint(ident.Installation, now)),
		ConnectionID:   ident.ConnectionID(ident.Mint(ident.Connection, now)),
		StoreID:        ident.StoreID(ident.Mint(ident.Store, now)),
		Endpoints:      endpoints(adapter),
		Seal: func(c ident.ConnectionID) ([]byte, error) {
			return s.cfg.Sealer.Seal([]byte(r.AccessToken.Reveal()), shop.CredentialBinding(c))
		},
	})
}

// Connection returns a connection.
func (s *Service) Connection(ctx context.Context, c ident.ConnectionID) (View, error) {
	return s.cfg.Store.Connection(ctx, c)
}

// Connections returns the connections of a query, oldest first. A connection that is made meanwhile is on the
// last page.
func (s *Service) Connections(ctx context.Context, q Query) ([]View, error) {
	return s.cfg.Store.Connections(ctx, q)
}

// endpoints returns one endpoint for every topic and one for each: two platforms name the topic only in an
// unsigned header. The ids are random, since a known id allows attempts to guess signatures.
func endpoints(a provider.Adapter) []Endpoint {
	out := []Endpoint{{ID: newEndpointID()}}
	for _, topic := range a.WebhookTopics() {
		out = append(out, Endpoint{ID: newEndpointID(), Topic: topic})
	}
	return out
}

func newEndpointID() ident.EndpointID { return ident.EndpointID(ident.Random(ident.Endpoint)) }
