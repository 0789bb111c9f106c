// Package app wires engine-relay. It alone knows the concrete type of every part, and it owns the order in
// which parts start and stop.
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

	"storefront.internal/engine-relay/internal/deliver"
	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/engine-relay/internal/erase"
	"storefront.internal/engine-relay/internal/postgres"
	"storefront.internal/engine-relay/internal/sink"
	"storefront.internal/engine-relay/internal/sink/consumer"
	"storefront.internal/engine-relay/internal/upkeep"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/clock"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/heavyhitters"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/poolmetrics"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// App is a wired relay; Run runs it.
type App struct {
	cfg      Config
	logger   *slog.Logger
	pool     *pgxpool.Pool
	engine   *engine.Client // nil when none is configured
	admin    *telemetry.Admin
	tracing  *tracing.Tracing // nil when it is off
	security stream.Security
	parts    parts
	halted   atomic.Pointer[error] // why the sink is halted

	sinkHalted prometheus.Gauge
}

// New wires the relay. It connects to nothing; Run does.
func New(ctx context.Context, cfg Config, logger *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, logger: logger}
	var err error
	if cfg.EngineURL != "" {
		a.engine, err = engine.New(engine.Config{
			URL: cfg.EngineURL, Token: cfg.EngineToken.Reveal(),
			Timeout: cfg.EngineTimeout, Conns: cfg.Workers,
		})
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
	pg.WarnOfTransport(cfg.Postgres, logger)
	a.tracing = tracing.New(tracing.Config{
		Endpoint: cfg.TraceEndpoint, Ratio: cfg.TraceRatio,
		Service: "engine-relay", Version: telemetry.Version(), Logger: logger,
	})
	registry := telemetry.NewRegistry("engine-relay")
	a.parts = a.wire(registry)
	a.admin = telemetry.NewAdmin(telemetry.AdminConfig{
		Listen: cfg.AdminListen, Gatherer: registry, Logger: logger,
		Service: "engine-relay", Pprof: cfg.AdminPprof, Top: a.parts.top,
	})
	a.readiness()
	return a, nil
}

// parts are the services of the relay.
type parts struct {
	upkeep   *upkeep.Upkeep
	eraser   *erase.Eraser
	worker   *deliver.Worker
	top      *heavyhitters.Tracker
	sink     *sink.Writer
	replayer *sink.Replayer
	consumer *consumer.Consumer
	stream   *stream.Consumer
	lag      *stream.Lag
}

func (a *App) wire(registry prometheus.Registerer) parts {
	cfg, logger := a.cfg, a.logger
	store, queue, relayID := postgres.New(a.pool), deliveries.NewStore(a.pool), uuid.NewString()
	a.sinkHalted = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "storefront_relay_sink_halted",
		Help: "1 while the sink stores nothing because Kafka no longer has the next records. Alert above 0.",
	})
	registry.MustRegister(a.sinkHalted)
	var p parts
	p.upkeep = upkeep.New(upkeep.Config{
		Store: store, Logger: logger, Registerer: registry, DaysAhead: cfg.PartitionDays,
		Retention: days(cfg.RetentionDays), AuditRetention: days(cfg.AuditDays),
	})
	p.eraser = erase.New(erase.Config{
		Store: postgres.NewErasures(a.pool), Queue: queue, RelayID: relayID, Logger: logger,
		Metrics: erase.NewMetrics(registry),
	})
	p.top = heavyhitters.New(clock.Now, deliver.Loads()...)
	p.top.Register(registry, "storefront_engine_top_connection_share")
	delivery := deliver.Config{
		Top:   p.top,
		Store: queue, RelayID: relayID, Logger: logger, Registerer: registry, Workers: cfg.Workers,
		Timeout: cfg.EngineTimeout, Lease: cfg.Lease, DecisionWait: cfg.DecisionWait,
		DeadAttempts: cfg.DeadAttempts, DeadAfter: cfg.DeadAfter,
		Backoff: backoff.Policy{Min: cfg.BackoffMin, Max: cfg.BackoffMax},
		Traced: func(ctx context.Context, k deliveries.Kind, traces []string) (context.Context, func(error)) {
			return a.tracing.StartClient(ctx, "deliver "+k.String()+"s", cfg.EngineURL, traces)
		},
	}
	if !cfg.EngineMixed {
		delivery.BatchLanes = 1
	}
	if a.engine != nil { // a nil *Client in the interface would count as an engine
		delivery.Engine = a.engine
	}
	p.worker = deliver.New(delivery)
	writer := sink.Config{
		Store: store, Logger: logger, Metrics: sink.NewMetrics(registry), Queued: p.worker.Nudge,
	}
	if a.tracing != nil {
		writer.Traced = func(began time.Time, traces []string) {
			a.tracing.RecordConsumer("store signals", began, traces)
		}
	}
	p.sink = sink.New(writer)
	signals, decisions := cfg.SignalsTopic, cfg.DecisionsTopic
	p.replayer = sink.NewReplayer(sink.ReplayerConfig{Store: store, Writer: p.sink, Decisions: decisions,
		Logger: logger})
	p.consumer = consumer.New(consumer.Config{
		Writer: p.sink, Offsets: store, Logger: logger, Registerer: registry, Signals: signals,
		Decisions: decisions, Workers: cfg.SinkWorkers, BatchSize: cfg.SinkBatch, Linger: sinkLinger,
		Grace: sinkGrace,
	})
	topics := []string{signals, decisions}
	p.stream = stream.NewConsumer(stream.ConsumerConfig{
		Brokers: cfg.KafkaBrokers, Security: a.security, Group: cfg.KafkaGroup, Topics: topics,
		Registerer: registry, Logger: logger, ClientID: "storefront-relay", AcceptLoss: cfg.AcceptLoss,
		Begin: p.consumer.Begin,
	})
	p.lag = stream.NewLag(stream.LagConfig{
		Brokers: cfg.KafkaBrokers, Security: a.security, Group: cfg.KafkaGroup, Topics: topics,
		Registerer: registry, Logger: logger, ClientID: "storefront-relay-lag",
	})
	registry.MustRegister(poolmetrics.NewPostgres("relay", map[string]*pgxpool.Pool{"relay": a.pool}))
	return p
}

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

const (
	// sinkLinger is how long a transaction waits for more records. It saves most of the processor time at a
	// moderate rate.
	sinkLinger = 50 * time.Millisecond
	// sinkGrace is how long a transaction may go on after the stop, or after another relay got its
	// partitions.
	sinkGrace = 3 * time.Second
)
