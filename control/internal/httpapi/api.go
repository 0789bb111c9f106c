package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/principal"
	"storefront.internal/control/internal/storekeys"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/problem"
)

// Keys is the life of storefront keys.
type Keys interface {
	Issue(ctx context.Context, c ident.ConnectionID, scopes []string) (storekeys.Key, error)
	List(ctx context.Context, c ident.ConnectionID) ([]storekeys.Key, error)
	Revoke(ctx context.Context, c ident.ConnectionID, k ident.KeyID) error
}

// Connections is what an operator does with custom connections.
type Connections interface {
	Enabled() error
	Create(ctx context.Context, externalStoreID string, profile *connection.Profile) (connection.Created, error)
	Rotate(ctx context.Context, c ident.ConnectionID) (token string, err error)
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
	Principals  *principal.Keyring
	Keys        Keys
	Connections Connections
	Queue       Queue
	Problems    *problem.Builder
	Metrics     *Metrics
	Logger      *slog.Logger
	Now         func() time.Time
}

// API is the handler of the internal surface.
type API struct {
	cfg    Config
	routes []route
}

// New returns the handler with the routes whose principal is mounted.
func New(cfg Config) *API {
	a := &API{cfg: cfg}
	for _, r := range a.table() {
		if cfg.Principals.Mounted(r.door) {
			a.routes = append(a.routes, r)
		}
	}
	return a
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
