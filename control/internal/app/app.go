// Package app wires control: it is the only package that knows every concrete type, and it owns the order in which parts
// start and stop. It refuses to hold rules.
package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/census"
	"storefront.internal/control/internal/connection"
	"storefront.internal/control/internal/erasure"
	"storefront.internal/control/internal/httpapi"
	"storefront.internal/control/internal/ingest"
	"storefront.internal/control/internal/installation"
	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/observation"
	"storefront.internal/control/internal/postgres"
	"storefront.internal/control/internal/queueview"
	"storefront.internal/control/internal/redis"
	"storefront.internal/control/internal/reseal"
	"storefront.internal/control/internal/storekeys"
	"storefront.internal/control/internal/webhook"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/pools"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/service"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// App is a control that is wired and not yet running.
type App struct {
	logger  *slog.Logger
	pool    *pgxpool.Pool
	redis   goredis.UniversalClient
	admin   *telemetry.Admin
	server  *listener
	keys    *storekeys.Publisher
	items   *observation.Publisher
	census  *census.Census
	runner  *jobs.Runner
	seals   *sealCheck
	tracing *tracing.Tracing
	silent  *webhook.SilenceWatch
}

// New wires control. Nothing is connected or bound before Run.
func New(ctx context.Context, cfg Config, logger *slog.Logger) (*App, error) {
	principals, err := cfg.principals()
	if err != nil {
		return nil, err
	}
	sealer, err := cfg.sealer()
	if err != nil {
		return nil, err
	}
	secrets, providers, err := cfg.mount()
	if err != nil {
		return nil, err
	}
	pool, err := pg.Open(ctx, cfg.Postgres, "storefront-control")
	if err != nil {
		return nil, err
	}
	inserter, err := jobs.NewInserter(pool, logger)
	if err != nil {
		pool.Close()
		return nil, err
	}
	tracer := tracing.Open(tracing.Config{Endpoint: cfg.TraceEndpoint, Ratio: cfg.TraceRatio, Service: "control", Version: telemetry.Version(), Logger: logger})
	registry := telemetry.NewRegistry("control")
	metrics := newMetrics(registry)
	client := redis.Open(cfg.Redis)
	watchPools(registry, pool, client)
	store := postgres.New(pool, inserter)
	archive := postgres.NewCatalog(pool, inserter, metrics.catalog)
	parts := connectorParts{&cfg, pool, inserter, archive, sealer, metrics, logger}
	connectors := newConnectors(parts, secrets, providers)
	items := observation.NewPublisher(archive, redis.NewItems(client, cfg.RedisPrefix), metrics.observations, logger)
	publisher := storekeys.NewPublisher(store, redis.NewKeys(client, cfg.RedisPrefix), metrics.keys, logger)
	handler := httpapi.New(httpapi.Config{
		Principals:    principals,
		Keys:          storekeys.New(storekeys.Config{Store: store, Sealer: sealer, Publisher: publisher, Logger: logger, Now: time.Now}),
		Connections:   connection.New(store, []byte(cfg.ConnectorPepper.Reveal()), time.Now),
		Installations: connectors.installations,
		Loads:         connectors.loads,
		Webhooks:      connectors.receiver(parts),
		Observations:  observation.New(archive, metrics.observations, time.Now),
		Erasures:      erasure.New(postgres.NewErasures(pool)),
		Queue:         queueview.New(postgres.NewQueue(deliveries.NewStore(pool))),
		Problems:      problem.New(cfg.ErrorsBase),
		Metrics:       metrics.http,
		Tracing:       tracer,
		Logger:        logger,
		Now:           time.Now,
		BodyBudget:    cfg.BodyBudget,
	})
	a := &App{
		logger: logger,
		pool:   pool,
		redis:  client,
		keys:   publisher,
		items:  items,
		census: census.New(store, logger, registry),
		runner: jobs.NewRunner(jobs.Config{
			Pool: pool, Keys: publisher, Items: items, Recomposer: archive, Archive: archive, Retention: cfg.retention(), Logger: logger,
			Installs: connectors.work,
			Shops:    connectors.shopWork(parts),
			Metrics:  metrics.jobs,
		}),
		tracing: tracer,
		seals:   &sealCheck{store: store, sealer: sealer},
		silent:  connectors.silence(parts),
		server:  newListener(cfg.Listen, httpapi.NewServer(handler, logger)),
		admin: telemetry.NewAdmin(telemetry.AdminConfig{
			Listen: cfg.AdminListen, Gatherer: registry, Logger: logger, Service: "control", Pprof: cfg.AdminPprof,
		}),
	}
	a.readiness()
	return a, nil
}

// metrics are those of every package of control.
type metrics struct {
	http          *httpapi.Metrics
	keys          *storekeys.Metrics
	observations  *observation.Metrics
	catalog       *postgres.Metrics
	installations *installation.Metrics
	seals         *reseal.Metrics
	ingest        *ingest.Metrics
	webhooks      *webhook.Metrics
	jobs          *jobs.Metrics
}

func newMetrics(r prometheus.Registerer) metrics {
	return metrics{
		http: httpapi.NewMetrics(r), keys: storekeys.NewMetrics(r), observations: observation.NewMetrics(r), catalog: postgres.NewMetrics(r),
		installations: installation.NewMetrics(r), seals: reseal.NewMetrics(r),
		ingest: ingest.NewMetrics(r), webhooks: webhook.NewMetrics(r), jobs: jobs.NewMetrics(r),
	}
}

// watchPools shows the pools; both may be nil where nothing is collected.
func watchPools(r prometheus.Registerer, pool *pgxpool.Pool, client goredis.UniversalClient) {
	r.MustRegister(pools.NewPostgres("control", map[string]*pgxpool.Pool{"control": pool}), pools.NewRedis(client))
}

// Run serves until a signal or the end of the context, and then drains: no new connections, requests in flight end, then
// the jobs in flight, then the pools.
func (a *App) Run(ctx context.Context) error {
	g := service.New(service.Config{Logger: a.logger})
	g.Add("stores", nil, func(context.Context) error {
		a.pool.Close()
		return a.redis.Close()
	})
	g.Add("operations port", a.admin.Start, a.admin.Stop)
	g.Add("tracing", nil, a.tracing.Stop)
	g.Add("sealed secrets", a.checkSeals, nil)
	g.Loop("jobs", a.runner.Run)
	g.Loop("key sweep", a.keys.Run)
	g.Loop("catalog figures", a.items.Run)
	g.Loop("census", a.census.Run)
	g.Loop("silence of shops", a.silent.Run)
	g.Add("internal surface", func(ctx context.Context) error { return a.server.start(ctx, g.Fail) }, a.server.stop)
	g.Add("drain", nil, func(context.Context) error {
		a.admin.SetDraining()
		return nil
	})
	return g.Run(ctx)
}

// checkSeals refuses to start without a key that stored secrets need. While PostgreSQL is away control starts, and is
// not ready before the check has passed.
func (a *App) checkSeals(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := a.seals.check(ctx)
	if errors.Is(err, errSealKeyMissing) {
		return err
	}
	if err != nil {
		a.logger.Warn("sealed secrets are not checked yet", "error", err.Error())
	}
	return nil
}

// Addr is the bound address of the internal surface, empty before it listens.
func (a *App) Addr() string { return a.server.bound() }

// AdminAddr is the bound address of the operations port, empty before it listens.
func (a *App) AdminAddr() string { return a.admin.Addr() }
