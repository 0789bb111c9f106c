// Package app wires control. It is the only package that knows every concrete type, and it owns the order in
// which parts start and stop. It has no rules of its own.
package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/httpapi"
	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/outbound"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/redis"
	"storefront.internal/control/internal/seal"
	"storefront.internal/control/internal/stats"
	"storefront.internal/control/internal/storekeys"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/poolmetrics"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/service"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// App is a control process that is wired and does not run yet.
type App struct {
	logger  *slog.Logger
	pool    *pgxpool.Pool
	monitor *postgres.Monitor
	pinger  *pgxpool.Pool // of the monitor
	redis   goredis.UniversalClient
	admin   *telemetry.Admin
	server  *listener
	keys    *storekeys.Publisher
	stats   *stats.Collector
	runner  *jobs.Runner
	seals   *sealCheck
	tracing *tracing.Tracing
}

// New wires control. It opens no connection and no port before Run.
func New(ctx context.Context, cfg Config, logger *slog.Logger) (*App, error) {
	principals, err := cfg.principals()
	if err != nil {
		return nil, err
	}
	sealer, err := cfg.sealer()
	if err != nil {
		return nil, err
	}
	secrets, err := cfg.secrets()
	if err != nil {
		return nil, err
	}
	registry := telemetry.NewRegistry("control")
	metrics := newMetrics(registry)
	certificate, err := loadCertificate(Prefix, cfg.ServerTLS, registry, logger)
	if err != nil {
		return nil, err
	}
	providers, err := cfg.registry(metrics.outbound)
	if err != nil {
		return nil, err
	}
	pool, monitorPool, answers, err := openPools(ctx, cfg.Postgres, logger)
	if err != nil {
		return nil, err
	}
	inserter, err := jobs.NewInserter(pool, logger)
	if err != nil {
		pool.Close()
		monitorPool.Close()
		return nil, err
	}
	tracer := cfg.tracer(logger)
	client := redis.Open(cfg.Redis)
	watchPools(registry, pool, client)
	store, monitor := postgres.New(pool, inserter), postgres.NewMonitor(monitorPool, answers, logger)
	catalog := postgres.NewCatalog(pool, inserter, metrics.catalog)
	archive, queue := postgres.NewArchive(pool), deliveries.NewStore(pool)
	connectors := newConnectors(connectorConfig{
		cfg: &cfg, pool: pool, jobs: inserter, catalog: catalog, secrets: secrets, providers: providers,
		sealer: sealer, metrics: metrics, logger: logger,
	})
	items := observation.NewPublisher(catalog, redis.NewItems(client, cfg.RedisPrefix), metrics.observations)
	publisher := storekeys.NewPublisher(store, redis.NewKeys(client, cfg.RedisPrefix), metrics.keys, logger)
	handler := httpapi.New(httpapi.Config{
		Store:      monitor,
		Principals: principals,
		Keys: storekeys.New(storekeys.Config{Store: store, Sealer: sealer, Publisher: publisher,
			Logger: logger, Now: time.Now}),
		Connections:   connection.New(store, []byte(cfg.ConnectorPepper.Reveal()), time.Now),
		Installations: connectors.installations,
		Bootstraps:    connectors.bootstraps,
		Webhooks:      connectors.webhooks,
		Observations: observation.New(catalog, archive, metrics.observations, time.Now,
			cfg.BodyBudget),
		Erasures: postgres.NewPrivacy(pool),
		Queue:    postgres.NewQueue(queue),
		Parked:   postgres.NewParked(pool),
		Problems: problem.New(cfg.ErrorsBase), Metrics: metrics.http,
		Tracing: tracer, Logger: logger, Now: time.Now,
		BodyBudget: cfg.BodyBudget, WebhookBudget: cfg.WebhookBudget,
	})
	a := &App{
		logger: logger, pool: pool, pinger: monitorPool, monitor: monitor, redis: client, keys: publisher,
		stats: stats.New(stats.Config{Store: store, Providers: providers.Names(), Limits: cfg.limits(),
			Logger: logger}, registry),
		runner: jobs.NewRunner(jobs.Config{
			Pool: pool, Keys: publisher, Items: items, Recomposer: catalog, Archive: archive,
			Retention: cfg.Retention.jobs(), PurgeDead: queue.PurgeDead,
			PurgeRuns: postgres.NewBootstraps(catalog).PurgeRuns, Logger: logger,
			Holder:   postgres.NewSwitch(pool, inserter),
			Installs: connectors.installWork, Shops: connectors.shopWork, Metrics: metrics.jobs,
			Workers: cfg.Workers.jobs(),
		}),
		tracing: tracer, seals: &sealCheck{store: store, sealer: sealer},
		server: newListener(cfg.Listen, certificate, httpapi.NewServer(handler, logger)),
		admin:  cfg.admin(registry, logger),
	}
	a.readiness()
	return a, nil
}

func (c *Config) admin(registry *prometheus.Registry, logger *slog.Logger) *telemetry.Admin {
	return telemetry.NewAdmin(telemetry.AdminConfig{
		Listen: c.AdminListen, Gatherer: registry, Logger: logger,
		Service: "control", Pprof: c.AdminPprof,
	})
}

func (c *Config) tracer(logger *slog.Logger) *tracing.Tracing {
	return tracing.New(tracing.Config{Endpoint: c.TraceEndpoint, Ratio: c.TraceRatio, Service: "control",
		Version: telemetry.Version(), Logger: logger})
}

// metrics are the metrics of every package.
type metrics struct {
	http          *httpapi.Metrics
	keys          *storekeys.Metrics
	observations  *observation.Metrics
	catalog       *postgres.Metrics
	installations *installation.Metrics
	seals         *seal.Metrics
	ingest        *ingest.Metrics
	webhooks      *webhook.Metrics
	jobs          *jobs.Metrics
	outbound      *outbound.Metrics
}

func newMetrics(r prometheus.Registerer) metrics {
	return metrics{
		http: httpapi.NewMetrics(r), keys: storekeys.NewMetrics(r), observations: observation.NewMetrics(r),
		catalog:       postgres.NewMetrics(r),
		installations: installation.NewMetrics(r), seals: seal.NewMetrics(r),
		ingest: ingest.NewMetrics(r), webhooks: webhook.NewMetrics(r), jobs: jobs.NewMetrics(r),
		outbound: outbound.NewMetrics(r),
	}
}

// openPools opens the main pool, whose answers are noted, and the one connection by which the monitor sees
// whether PostgreSQL answers.
func openPools(ctx context.Context, s settings.Postgres,
	logger *slog.Logger) (pool, monitor *pgxpool.Pool, answers *postgres.Answers, err error) {
	pg.WarnOfTransport(s, logger)
	answers = &postgres.Answers{}
	if pool, err = pg.OpenTraced(ctx, s, "storefront-control", answers); err != nil {
		return nil, nil, nil, err
	}
	s.MaxConns = 1
	if monitor, err = pg.Open(ctx, s, "storefront-control-monitor"); err != nil {
		pool.Close()
		return nil, nil, nil, err
	}
	return pool, monitor, answers, nil
}

// watchPools registers the metrics of the pools; both are nil for the reference.
func watchPools(r prometheus.Registerer, pool *pgxpool.Pool, client goredis.UniversalClient) {
	r.MustRegister(poolmetrics.NewPostgres("control", map[string]*pgxpool.Pool{"control": pool}),
		poolmetrics.NewRedis(client))
}

// Run serves until a signal or the end of the context. Then it drains: no new requests, running requests end,
// running jobs end, the pools close.
func (a *App) Run(ctx context.Context) error {
	g := service.New(service.Config{Logger: a.logger})
	g.Add("stores", nil, func(context.Context) error {
		a.pinger.Close()
		a.pool.Close()
		return a.redis.Close()
	})
	g.Add("operations port", a.admin.Start, a.admin.Stop)
	g.Add("tracing", nil, a.tracing.Stop)
	g.Add("sealed secrets", a.checkSeals, nil)
	g.AddLoop("PostgreSQL monitor", a.monitor.Run)
	g.AddLoop("jobs", a.runner.Run)
	g.AddLoop("key sweep", a.keys.Run)
	g.AddLoop("stats", a.stats.Run)
	g.Add("internal surface", func(ctx context.Context) error { return a.server.start(ctx, g.Fail) },
		a.server.stop)
	g.Add("drain", nil, func(context.Context) error {
		a.admin.SetDraining()
		return nil
	})
	return g.Run(ctx)
}

// checkSeals fails without a key that stored secrets need. While PostgreSQL is down, control starts and is
// not ready before the check has passed.
func (a *App) checkSeals(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := a.seals.check(ctx)
	if errors.Is(err, errSealKeyMissing) {
		return err
	}
	if err != nil {
		a.logger.Warn("sealed secrets cannot be checked yet", "error", err.Error())
	}
	return nil
}

// Addr is the bound address of the internal surface, empty before it listens.
func (a *App) Addr() string { return a.server.bound() }

// AdminAddr is the bound address of the operations port, empty before it listens.
func (a *App) AdminAddr() string { return a.admin.Addr() }
