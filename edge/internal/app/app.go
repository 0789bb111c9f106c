// Package app wires the edge: it is the only package that knows every concrete type, and it owns the order in
// which the parts start and stop.
//
// An edge starts whatever store is down: without Redis or Kafka it answers signals with 503, without
// PostgreSQL it accepts the keys that Redis holds. So it is ready as soon as it listens, which it does once
// its producers are connected to Kafka, or three seconds later. It stops in the direction of the data: it is
// not ready and every answer closes its connection, it accepts no new connections, running requests end,
// records are flushed, and then the clients of the stores are closed.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"storefront.internal/edge/internal/redisbatch"
	"storefront.internal/edge/internal/sdkfiles"
	"storefront.internal/shared/backoff"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/servercert"
	"storefront.internal/shared/service"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// warmTimeout bounds how long a start waits for Kafka and Redis.
const warmTimeout = 3 * time.Second

// The deadlines of a stop.
const (
	drainTimeout = 15 * time.Second // running requests
	flushTimeout = 5 * time.Second  // records and claims, after them
	stopTimeout  = time.Minute      // everything, the delay included
)

// App is a wired edge.
type App struct {
	cfg      Config
	log      *slog.Logger
	backends backends
	parts    parts
	admin    *telemetry.Admin
	group    *service.Group

	mu     sync.Mutex
	public net.Listener // nil before the start
}

// New wires the edge. Nothing is connected or bound before Run.
func New(ctx context.Context, cfg Config, log *slog.Logger) (*App, error) {
	keyring, err := decisionid.ParseKeyring(cfg.DecisionKeys.Reveal())
	if err != nil {
		return nil, err
	}
	cfg = cfg.withMemoryLimit(debug.SetMemoryLimit(-1)) // -1 only reads it
	a := &App{cfg: cfg, log: log, group: service.New(service.Config{Logger: log, StopTimeout: stopTimeout})}
	if a.backends.kafka, err = stream.NewSecurity(cfg.Kafka); err != nil {
		return nil, fmt.Errorf("%s_%w", Prefix, err)
	}
	if a.backends.certificate, err = servercert.Load(servercert.Config{Files: cfg.ServerTLS, Logger: log,
		Now: time.Now}); err != nil {
		return nil, fmt.Errorf("%s_%w", Prefix, err)
	}
	if cfg.SDK {
		if a.backends.sdk, err = sdkfiles.Load(); err != nil {
			return nil, fmt.Errorf("files of the browser SDK: %w", err)
		}
	}
	if err = a.backends.openPools(ctx, cfg.Postgres); err != nil {
		return nil, err
	}
	pg.WarnOfTransport(cfg.Postgres, log)
	a.backends.redis = redisbatch.NewClient(cfg.Redis, redisbatch.Timeout)
	a.backends.tracing = tracing.New(tracing.Config{Endpoint: cfg.TraceEndpoint, Ratio: cfg.TraceRatio,
		Service: "edge", Version: telemetry.Version(), Logger: log})
	registry := telemetry.NewRegistry("edge")
	a.parts = wire(cfg, keyring, a.backends, registry, log)
	a.admin = telemetry.NewAdmin(telemetry.AdminConfig{Listen: cfg.AdminListen, Gatherer: registry,
		Logger:  log,
		Service: "edge", Pprof: cfg.AdminPprof, Top: a.parts.top})
	a.admin.AddCheck("listening", a.checkListening)
	a.admin.AddCheck("schema", a.checkSchema)
	a.assemble()
	return a, nil
}

// assemble adds the parts in the order of their start; they stop in reverse.
func (a *App) assemble() {
	a.group.Add("operations port", a.admin.Start, a.admin.Stop)
	a.group.Add("tracing", nil, a.backends.tracing.Stop)
	a.group.Add("PostgreSQL", nil, closer(a.backends.closePools))
	a.group.Add("Redis", nil, func(context.Context) error {
		a.parts.claimBatcher.Close()
		a.parts.itemBatcher.Close()
		return a.backends.redis.Close()
	})
	a.group.AddLoop("topics", a.parts.topics.Run)
	a.group.AddLoop("key version", a.parts.keyResolver.Run)
	a.group.AddLoop("key hints", func(ctx context.Context) error {
		return a.parts.keyCache.Hints(ctx, a.parts.keyResolver.PollNow)
	})
	a.group.AddLoop("item hints", func(ctx context.Context) error {
		return a.parts.itemCache.Hints(ctx, a.parts.items.Changed)
	})
	a.group.Add("Kafka", a.warm, a.flush)
	if a.parts.engine != nil {
		a.group.Add("engine", nil, closer(a.parts.engine.Close))
	}
	a.group.Add("public surface", a.listen, a.drain)
}

func closer(f func()) func(context.Context) error {
	return func(context.Context) error {
		f()
		return nil
	}
}

// Run serves until the context or a signal ends it, drains, and returns nil when all parts stopped without an
// error.
func (a *App) Run(ctx context.Context) error { return a.group.Run(ctx) }

// PublicAddr is the bound address of the public surface, empty before it listens.
func (a *App) PublicAddr() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.public == nil {
		return ""
	}
	return a.public.Addr().String()
}

// AdminAddr is the bound address of the operations port.
func (a *App) AdminAddr() string { return a.admin.Addr() }

func (a *App) listen(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("public surface: %w", err)
	}
	a.mu.Lock()
	a.public = l
	a.mu.Unlock()
	go func() {
		if err := a.parts.server.Serve(l); err != nil {
			a.group.Fail(fmt.Errorf("public surface: %w", err))
		}
	}()
	return nil
}

// warm connects the producers and the batchers, so that the first requests do not wait for it. Without Kafka
// or Redis the edge starts all the same.
func (a *App) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, connect := range []func(context.Context) error{a.parts.signalProducer.Warm,
		a.parts.decisionProducer.Warm} {
		all.Go(func() {
			if err := connect(ctx); err != nil {
				a.log.Warn("Kafka does not answer yet", slog.Any("error", err))
			}
		})
	}
	for _, b := range []*redisbatch.Batcher{a.parts.claimBatcher, a.parts.itemBatcher} {
		all.Go(func() {
			if err := b.Warm(ctx); err != nil {
				a.log.Warn("Redis does not answer yet", slog.Any("error", err))
			}
		})
	}
	all.Go(func() { a.backends.redis.Ping(ctx) }) // keys are read by the client itself
	all.Wait()
	return nil
}

// drain lets balancers see that the edge is not ready, then accepts no more requests and waits for the
// running ones.
func (a *App) drain(ctx context.Context) error {
	a.admin.SetDraining()
	a.parts.server.StartDraining()
	_ = backoff.Sleep(ctx, a.cfg.DrainDelay) // an early end of ctx ends the delay
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	return a.parts.server.Shutdown(ctx)
}

// flush waits for what requests left in flight: Decisions, claims and records.
func (a *App) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	err := a.parts.decisionRecorder.Close(ctx)
	a.parts.items.Close(ctx)
	a.parts.intake.Close(ctx)
	return errors.Join(err, a.parts.signalProducer.Close(ctx), a.parts.decisionProducer.Close(ctx))
}

func (a *App) checkListening(context.Context) error {
	if a.PublicAddr() == "" {
		return errors.New("the public surface does not listen yet")
	}
	return nil
}

// checkSchema fails on a schema that is older than this binary's. A database that is down does not make the
// edge not ready: all edges would leave the balancer at once, although they still accept the keys that Redis
// holds.
func (a *App) checkSchema(ctx context.Context) error {
	current, want, err := migrations.Version(ctx, a.backends.pool)
	if err == nil && current < want {
		return fmt.Errorf("the schema's version is %d, this binary needs %d: run control migrate up",
			current, want)
	}
	return nil
}
