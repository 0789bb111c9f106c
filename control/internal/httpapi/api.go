package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/storekeys"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/tracing"
)

// Keys is the life of storefront keys.
type Keys interface {
	Issue(ctx context.Context, c ident.ConnectionID, scopes []string) (storekeys.Key, error)
	List(ctx context.Context, c ident.ConnectionID) ([]storekeys.Key, error)
	Revoke(ctx context.Context, c ident.ConnectionID, k ident.KeyID) error
}

// Connections is what an operator does with custom connections, and who holds the token of one.
type Connections interface {
	Enabled() error
	Identify(ctx context.Context, c ident.ConnectionID, token string) (connection.Custom, error)
	Create(ctx context.Context, externalStoreID string, profile *connection.Profile) (connection.Created, error)
	Rotate(ctx context.Context, c ident.ConnectionID) (token string, err error)
}

// Installations is how shops of providers become connections, and how far each is.
type Installations interface {
	Open(ctx context.Context, caller string, r installation.Request) (installation.Installed, error)
	Connection(ctx context.Context, c ident.ConnectionID) (installation.View, error)
}

// Loads is the initial loads of connections.
type Loads interface {
	Open(ctx context.Context, c ident.ConnectionID, resources []string) (bootstrap.Run, error)
	Run(ctx context.Context, c ident.ConnectionID, id ident.RunID) (bootstrap.Run, error)
}

// Webhooks is where providers' notifications arrive.
type Webhooks interface {
	Receive(ctx context.Context, r *webhook.Request) (ping bool, err error)
}

// Erasures is how shoppers are forgotten.
type Erasures interface {
	Visitor(ctx context.Context, c ident.ConnectionID, v ident.VisitorID) error
}

// Observations is what connectors deliver and what the engine and operators read of it.
type Observations interface {
	Deliver(ctx context.Context, from observation.Source, body []byte) ([]observation.Result, error)
	Snapshot(ctx context.Context, id ident.ObservationID) (observation.Snapshot, error)
	Raw(ctx context.Context, id ident.ObservationID) ([]byte, error)
	Quarantine(ctx context.Context, c ident.ConnectionID, cursor string) (observation.Page, error)
	Replay(ctx context.Context, c ident.ConnectionID, id ident.ObservationID) (observation.Result, error)
}

// Queue is the delivery queue of interactions as people see and steer it.
type Queue interface {
	View(ctx context.Context) (deliveries.View, error)
	Resume(ctx context.Context) error
	Dead(ctx context.Context, q deliveries.DeadQuery) (deliveries.DeadPage, error)
	Replay(ctx context.Context, q deliveries.ReplayQuery) (int, error)
}

// Config is what an API is made of.
type Config struct {
	Principals    *principal.Keyring
	Keys          Keys
	Connections   Connections
	Installations Installations
	Loads         Loads
	Webhooks      Webhooks
	Observations  Observations
	Erasures      Erasures
	Queue         Queue
	Problems      *problem.Builder
	Metrics       *Metrics
	Logger        *slog.Logger
	Tracing       *tracing.Tracing // nil: requests are not traced
	Now           func() time.Time
	BodyBudget    int64 // bytes of the bodies of operations 4 and 12 that the process buffers at a time
}

// API is the handler of the internal surface.
type API struct {
	cfg     Config
	routes  []route
	bodies  *bodies
	entries map[fault.Code]problem.Entry
}

// New returns the handler with the routes whose principal is mounted.
func New(cfg Config) *API {
	a := &API{cfg: cfg, bodies: newBodies(cfg.BodyBudget, cfg.Metrics), entries: make(map[fault.Code]problem.Entry)}
	for _, e := range problem.Entries() {
		a.entries[e.Code] = e
	}
	for _, r := range a.table() {
		if a.mounted(r.door) {
			a.routes = append(a.routes, r)
		}
	}
	return a
}

// mounted reports whether a door is there. The custom connectors' tokens are in the store, under a pepper that the
// configuration may lack.
func (a *API) mounted(d principal.Door) bool {
	if d == principal.Custom {
		return a.cfg.Connections.Enabled() == nil
	}
	return a.cfg.Principals.Mounted(d)
}

// Limits of the listener and of a request (contract, section 1 "Body limits").
const (
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 1 << 20
	requestTimeout = 20 * time.Second
)

// NewServer returns the HTTP server of the internal surface. It serves nothing but handler.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:                      handler,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  30 * time.Second,
		WriteTimeout:                 60 * time.Second,
		IdleTimeout:                  90 * time.Second,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}
