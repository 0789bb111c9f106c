package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/control/internal/appsecret"
	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/shop"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// connectors are the parts that serve shops of providers.
type connectors struct {
	installations *installation.Service
	bootstraps    *bootstrap.Service
	webhooks      *webhook.Service
	installWork   *jobs.InstallWork
	shopWork      *jobs.ShopWork
}

// connectorConfig is what connectors are made of.
type connectorConfig struct {
	cfg       *Config
	pool      *pgxpool.Pool
	jobs      *jobs.Inserter
	catalog   *postgres.Catalog
	secrets   *appsecret.Keyring
	providers *provider.Registry
	sealer    *seal.Sealer
	metrics   metrics
	logger    *slog.Logger
}

// newConnectors wires the connectors.
func newConnectors(c connectorConfig) connectors {
	installations, shopStore := postgres.NewInstallations(c.pool, c.jobs), postgres.NewShops(c.pool, c.jobs)
	runs := postgres.NewBootstraps(c.catalog)
	shops, bootstraps := shop.New(shopStore, c.providers, c.sealer), bootstrap.New(runs, time.Now)
	subscriptions := installation.NewSubscriptions(installations, c.secrets, c.cfg.WebhookURL)
	return connectors{
		installations: installation.NewService(installation.Config{
			Store: installations, Sealer: c.sealer, Providers: c.providers, Secrets: c.secrets, Now: time.Now,
		}),
		bootstraps: bootstraps,
		webhooks: webhook.New(postgres.NewWebhooks(c.pool, c.jobs), c.providers, c.secrets,
			c.metrics.webhooks, time.Now,
			webhook.Quota{Deliveries: c.cfg.WebhookDeliveries, Bytes: c.cfg.WebhookBytes}),
		installWork: &jobs.InstallWork{
			Runner: installation.NewRunner(installation.RunnerConfig{
				Store: installations, Shops: shops, Bootstraps: firstRuns{bootstraps},
				Subscriptions: subscriptions,
				Metrics:       c.metrics.installations, Logger: c.logger,
			}),
			Scheduler: installations,
			Sweeper: installation.NewSweeper(installations, shops, subscriptions,
				c.metrics.installations, c.logger),
			Seals: seal.NewResealer(postgres.NewSeals(c.pool), c.sealer, c.metrics.seals, c.logger),
		},
		shopWork: &jobs.ShopWork{
			Refresher:    ingest.New(c.catalog, shops, c.metrics.ingest, time.Now),
			Checker:      shop.NewChecker(shops, shopStore),
			Bootstraps:   bootstrap.NewRunner(runs, shops, c.metrics.ingest, time.Now),
			Scheduler:    runs,
			Marked:       c.catalog,
			Privacy:      privacy.New(postgres.NewPrivacy(c.pool), c.providers, c.logger),
			CatchUpEvery: c.cfg.CatchUpEvery,
			ReloadEvery:  c.cfg.ReloadEvery,
		},
	}
}

// firstRuns opens the first bootstrap run of an installation.
type firstRuns struct{ runs *bootstrap.Service }

// Start implements installation.Bootstraps.
func (f firstRuns) Start(ctx context.Context, c ident.ConnectionID) error {
	_, err := f.runs.OpenRun(ctx, c, nil)
	if fault.Is(err, fault.BootstrapRunning) {
		return nil
	}
	return err
}
