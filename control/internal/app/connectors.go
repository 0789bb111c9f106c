package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/reseal"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// connectors are the parts that serve shops of providers.
type connectors struct {
	secrets       *appsecret.Book
	providers     *provider.Registry
	shops         *shop.Shops
	installations *installation.Service
	loads         *bootstrap.Service
	work          *jobs.InstallWork
}

// connectorParts is what they are made of.
type connectorParts struct {
	cfg      *Config
	pool     *pgxpool.Pool
	inserter *jobs.Inserter
	archive  *postgres.Catalog
	sealer   *seal.Sealer
	metrics  metrics
	logger   *slog.Logger
}

// mount reads the configuration of providers.
func (p *Providers) mount() (*appsecret.Book, *provider.Registry, error) {
	secrets, err := p.secrets()
	if err != nil {
		return nil, nil, err
	}
	registry, err := p.registry()
	return secrets, registry, err
}

// newConnectors wires the connectors.
func newConnectors(p connectorParts, secrets *appsecret.Book, providers *provider.Registry) connectors {
	store, shopStore := postgres.NewInstallations(p.pool, p.inserter), postgres.NewShops(p.pool, p.inserter)
	c := connectors{
		secrets: secrets, providers: providers,
		shops: shop.New(shopStore, providers, p.sealer),
		loads: bootstrap.New(p.archive, time.Now),
		installations: installation.NewService(installation.Config{
			Store: store, Sealer: p.sealer, Providers: providers, Secrets: secrets, Now: time.Now,
		}),
	}
	webhooks := installation.NewWebhooks(store, secrets, p.cfg.WebhookURL)
	c.work = &jobs.InstallWork{
		Runner: installation.NewRunner(installation.RunnerConfig{
			Store: store, Shops: c.shops, Loads: firstLoads{c.loads}, Webhooks: webhooks, Metrics: p.metrics.installations, Logger: p.logger,
		}),
		Waker:   store,
		Sweeper: installation.NewSweeper(store, c.shops, webhooks, p.metrics.installations, p.logger),
		Seals:   reseal.New(postgres.NewSeals(p.pool), p.sealer, p.metrics.seals, p.logger),
	}
	return c
}

// firstLoads opens the load of an installation.
type firstLoads struct{ loads *bootstrap.Service }

// Start implements installation.Loads.
func (f firstLoads) Start(ctx context.Context, c ident.ConnectionID) error {
	_, err := f.loads.Open(ctx, c, nil)
	if fault.Is(err, fault.BootstrapRunning) {
		return nil
	}
	return err
}
