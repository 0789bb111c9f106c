package app

import (
	"time"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/privacy"
	"storefront.internal/control/internal/shop"
	"storefront.internal/control/internal/webhook"
)

// shopWork wires what is done for shops behind their notifications and loads.
func (c *connectors) shopWork(p connectorParts) *jobs.ShopWork {
	return &jobs.ShopWork{
		Refresher: ingest.New(p.archive, c.shops, p.metrics.ingest, time.Now),
		Checker:   shop.NewChecker(c.shops, postgres.NewShops(p.pool, p.inserter)),
		Loader:    bootstrap.NewLoader(p.archive, c.shops, p.metrics.ingest, time.Now),
		Sweeper:   p.archive,
		Privacy:   privacy.New(postgres.NewPrivacy(p.pool), c.providers, p.logger),

		CatchUpEvery: p.cfg.CatchUpEvery, ReloadEvery: p.cfg.ReloadEvery,
	}
}

// silence wires the watch over shops that do not notify.
func (c *connectors) silence(p connectorParts) *webhook.SilenceWatch {
	return webhook.NewSilenceWatch(postgres.NewWebhooks(p.pool, p.inserter), c.providers, p.cfg.SilentAfter, p.metrics.webhooks, p.logger)
}

// receiver wires operation 12.
func (c *connectors) receiver(p connectorParts) *webhook.Service {
	return webhook.New(postgres.NewWebhooks(p.pool, p.inserter), c.providers, c.secrets, p.metrics.webhooks, time.Now)
}
