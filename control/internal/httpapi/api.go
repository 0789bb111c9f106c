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
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// Keys issues, lists and revokes storefront keys.
type Keys interface {
	Issue(ctx context.Context, c ident.ConnectionID, scopes []string) (storekeys.Key, error)
	List(ctx context.Context, c ident.ConnectionID) ([]storekeys.Key, error)
	Revoke(ctx context.Context, c ident.ConnectionID, k ident.KeyID) error
}

// Connections creates custom connections and identifies their connectors.
type Connections interface {
	Enabled() error
	Identify(ctx context.Context, c ident.ConnectionID, token string) (connection.Custom, error)
	Create(ctx context.Context, externalStoreID string, p *connection.Profile) (connection.Created, error)
	Rotate(ctx context.Context, c ident.ConnectionID) (token string, err error)
}

// Installations opens installations and shows connections.
type Installations interface {
	Open(ctx context.Context, caller string, r installation.Request) (installation.Installed, error)
	Connection(ctx context.Context, c ident.ConnectionID) (installation.View, error)
	Connections(ctx context.Context, q installation.Query) ([]installation.View, error)
}

// Bootstraps opens and shows bootstrap runs.
type Bootstraps interface {
	OpenRun(ctx context.Context, c ident.ConnectionID, resources []string) (bootstrap.Run, error)
	Run(ctx context.Context, c ident.ConnectionID, id ident.RunID) (bootstrap.Run, error)
}

// Webhooks takes webhooks of providers.
type Webhooks interface {
	Receive(ctx context.Context, r *webhook.Request) (ping bool, err error)
}

// Erasures requests the erasure of personal data.
type Erasures interface {
	EraseVisitor(ctx context.Context, c ident.ConnectionID, v ident.VisitorID) error
}

// Observations takes observations of custom connectors and reads them for the engine and operators.
type Observations interface {
	Deliver(ctx context.Context, from observation.Source, body []byte) ([]observation.Result, error)
	Snapshot(ctx context.Context, id ident.ObservationID) (observation.Snapshot, error)
	Raw(ctx context.Context, id ident.ObservationID) ([]byte, error)
	Quarantine(ctx context.Context, c ident.ConnectionID, cursor string) (observation.Page, error)
	Replay(ctx context.Context, c ident.ConnectionID, id ident.ObservationID) (observation.Result, error)
}

// Queue is the delivery queue as operators see and control it.
type Queue interface {
	View(ctx context.Context) (deliveries.View, error)
	Resume(ctx context.Context) error
	Dead(ctx context.Context, q deliveries.DeadQuery) (deliveries.DeadPage, error)
	Replay(ctx context.Context, q deliveries.ReplayQuery) (int, error)
}

// Store is the database that all operations need.
type Store interface {
	// WhileUp returns a context that ends when the store stops to answer, and at once while it does not.
	WhileUp(ctx context.Context) (context.Context, context.CancelFunc)
}

// Config is what an API is made of.
type Config struct {
	Store         Store // nil: requests wait for their deadline while it does not answer
	Principals    *principal.Keyring
	Keys          Keys
	Connections   Connections
	Installations Installations
	Bootstraps    Bootstraps
	Webhooks      Webhooks
	Observations  Observations
	Erasures      Erasures
	Queue         Queue
	Parked        Parked
	Problems      *problem.Builder
	Metrics       *Metrics
	Logger        *slog.Logger
	Tracing       *tracing.Tracing // nil: requests are not traced
	Now           func() time.Time
	BodyBudget    int64 // bytes of bodies of deliver_observations that the process holds at a time
	WebhookBudget int64 // the same for deliver_webhook
}

// API is the handler of the internal surface.
type API struct {
	cfg      Config
	routes   []route
	uploads  *bodyBuffers
	webhooks *bodyBuffers
	entries  map[fault.Code]problem.Entry
	failures *telemetry.Throttle[outcome] // lines of 5xx
	requests *telemetry.Throttle[outcome] // lines of other requests
}

// New returns the handler with the routes whose role has a token.
func New(cfg Config) *API {
	a := &API{cfg: cfg,
		uploads: newBodyBuffers(cfg.BodyBudget, max(maxObservationsBody, cfg.BodyBudget/4),
			cfg.Metrics.uploads),
		webhooks: newBodyBuffers(cfg.WebhookBudget, cfg.WebhookBudget, cfg.Metrics.webhooks),
		entries:  make(map[fault.Code]problem.Entry),
		failures: telemetry.NewThrottle[outcome](time.Second, failureLines),
		requests: telemetry.NewThrottle[outcome](time.Second, requestLines)}
	for _, e := range problem.Entries() {
		a.entries[e.Code] = e
	}
	for _, r := range a.table() {
		if a.mounted(r.role) {
			a.routes = append(a.routes, r)
		}
	}
	return a
}

// mounted reports whether a role can have tokens. Those of custom connectors are in PostgreSQL, under a
// pepper that the configuration may lack.
func (a *API) mounted(d principal.Role) bool {
	if d == principal.Custom {
		return a.cfg.Connections.Enabled() == nil
	}
	return a.cfg.Principals.Mounted(d)
}

// Limits of the listener and of a request.
const (
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 1 << 20
	requestTimeout = 20 * time.Second
)

// NewServer returns the HTTP server of the internal surface.
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
