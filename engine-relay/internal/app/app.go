// Package app wires engine-relay: it is the only package that knows every concrete type, and it owns the order in which
// parts start and stop. It refuses to hold rules.
package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/engine-relay/internal/consume"
	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/engine-relay/internal/erase"
	"storefront.internal/engine-relay/internal/postgres"
	"storefront.internal/engine-relay/internal/record"
	"storefront.internal/engine-relay/internal/upkeep"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/pools"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// App is a relay that is wired and not yet running.
type App struct {
	cfg      Config
	logger   *slog.Logger
	pool     *pgxpool.Pool
	engine   *engine.Client // nil when none is configured
	admin    *telemetry.Admin
	tracing  *tracing.Tracing // nil: none
	security stream.Security
	works    works
	halted   atomic.Pointer[error] // why nothing is read any more
}

// New wires the relay. Nothing is connected or bound before Run.
func New(ctx context.Context, cfg Config, logger *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, logger: logger}
	var err error
	if cfg.EngineURL != "" {
		a.engine, err = engine.New(engine.Config{URL: cfg.EngineURL, Token: cfg.EngineToken.Reveal(), Timeout: cfg.EngineTimeout, Conns: cfg.Workers})
		if err != nil {
			return nil, err
		}
	}
	if a.security, err = stream.NewSecurity(cfg.Kafka); err != nil {
		return nil, fmt.Errorf("%s_%w", Prefix, err)
	}
	if a.pool, err = pg.Open(ctx, cfg.Postgres, "storefront-relay"); err != nil {
		return nil, err
	}
	a.tracing = tracing.Open(tracing.Config{Endpoint: cfg.TraceEndpoint, Ratio: cfg.TraceRatio, Service: "engine-relay", Version: telemetry.Version(), Logger: logger})
	registry := telemetry.NewRegistry("engine-relay")
	a.works = wire(cfg, a.pool, a.engine, a.tracing, a.security, registry, logger)
	a.admin = telemetry.NewAdmin(telemetry.AdminConfig{
		Listen: cfg.AdminListen, Gatherer: registry, Logger: logger, Service: "engine-relay", Pprof: cfg.AdminPprof,
	})
	a.readiness()
	return a, nil
}

// works are the parts that do something: keep up, forget, deliver, consume.
type works struct {
	upkeep   *upkeep.Upkeep
	eraser   *erase.Eraser
	worker   *deliver.Worker
	recorder *record.Recorder
	consume  *consume.Consumer
	stream   *stream.Consumer
	lag      *stream.Lag
}

func wire(cfg Config, pool *pgxpool.Pool, client *engine.Client, tracer *tracing.Tracing, security stream.Security, registry prometheus.Registerer, logger *slog.Logger) works {
	store := postgres.New(pool)
	signals, decisions := cfg.topics()
	w := works{upkeep: upkeep.New(upkeep.Config{
		Store: store, Logger: logger, Registerer: registry, DaysAhead: cfg.PartitionDays,
		Retention: time.Duration(cfg.RetentionDays) * 24 * time.Hour,
	})}
	queue, id := deliveries.NewStore(pool), uuid.NewString()
	w.eraser = erase.New(erase.Config{
		Store: postgres.NewErasures(pool), Queue: queue, RelayID: id, Logger: logger, Metrics: erase.NewMetrics(registry),
	})
	delivery := deliver.Config{
		Store: queue, RelayID: id, Logger: logger, Registerer: registry, Workers: cfg.Workers,
		Timeout: cfg.EngineTimeout, Lease: cfg.Lease, DecisionWait: cfg.DecisionWait, DeadAttempts: cfg.DeadAttempts, DeadAfter: cfg.DeadAfter,
		Backoff: deliver.Backoff{Min: cfg.BackoffMin, Max: cfg.BackoffMax},
	}
	if client != nil { // a nil *Client in the interface would count as an engine
		delivery.Engine = client
	}
	recorder := record.Config{Store: store, Logger: logger, Metrics: record.NewMetrics(registry)}
	if tracer != nil {
		recorder.Traced = func(began time.Time, traces []string) { tracer.Stored("store signals", began, traces) }
	}
	delivery.Traced = func(ctx context.Context, kind deliveries.Kind, traces []string) (context.Context, func(error)) {
		return tracer.Call(ctx, "deliver "+kind.String()+"s", traces)
	}
	w.worker = deliver.New(delivery)
	recorder.Queued = w.worker.Nudge
	w.recorder = record.New(recorder)
	w.consume = consume.New(consume.Config{
		Recorder: w.recorder, Logger: logger, Registerer: registry, Decisions: decisions, Workers: cfg.SinkWorkers,
		BatchSize: cfg.SinkBatch, Linger: sinkLinger, Grace: sinkGrace,
	})
	w.stream = stream.NewConsumer(stream.ConsumerConfig{
		Brokers: cfg.KafkaBrokers, Security: security, Group: cfg.KafkaGroup, Topics: []string{signals, decisions}, Registerer: registry, Logger: logger,
		ClientID: "storefront-relay", AcceptLoss: cfg.AcceptLoss,
	})
	w.lag = stream.NewLag(stream.LagConfig{
		Brokers: cfg.KafkaBrokers, Security: security, Group: cfg.KafkaGroup, Topics: []string{signals, decisions}, Registerer: registry, Logger: logger, ClientID: "storefront-relay-lag",
	})
	registry.MustRegister(pools.NewPostgres("relay", map[string]*pgxpool.Pool{"relay": pool}))
	return w
}

// sinkLinger is what a transaction waits for more to store: with it, a relay at a moderate rate needs a part of the processor time.
const sinkLinger = 50 * time.Millisecond

// sinkGrace is how long a transaction may go on after its partitions went to another relay, or after the stop.
const sinkGrace = 3 * time.Second
