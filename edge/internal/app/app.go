// Package app wires edge: it is the only package that knows every concrete type, and it owns the order in which parts
// start and stop. It refuses to hold rules.
//
// An edge starts whatever is away: without Redis or Kafka it answers 503 to signals, without PostgreSQL it lets in the
// keys that Redis knows. So it is ready as soon as it listens. It drains in the direction of the data: not ready and
// each answer closes its connection, no new connections, running requests end, records are flushed, and only then the stores are let go.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"storefront.internal/edge/internal/redis"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/pg/migrations"
	"storefront.internal/shared/service"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/telemetry"
	"storefront.internal/shared/tracing"
)

// The deadlines of a stop.
const (
	drainTimeout = 15 * time.Second // running requests
	flushTimeout = 5 * time.Second  // records and registers, after them
	stopTimeout  = time.Minute      // everything, the delay included
)

// App is an edge that is wired and not yet running.
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
	a := &App{cfg: cfg, log: log, group: service.New(service.Config{Logger: log, StopTimeout: stopTimeout})}
	if a.backends.kafka, err = stream.NewSecurity(cfg.Kafka); err != nil {
		return nil, fmt.Errorf("%s_%w", Prefix, err)
	}
	if a.backends.pool, err = pg.Open(ctx, cfg.Postgres, "storefront-edge"); err != nil {
		return nil, err
	}
	if a.backends.poll, err = pg.Open(ctx, atMost(1, cfg.Postgres), "storefront-edge-poll"); err != nil {
		return nil, err
	}
	if a.backends.catalog, err = pg.Open(ctx, atMost(maxCatalogConns, cfg.Postgres), "storefront-edge-catalog"); err != nil {
		return nil, err
	}
	a.backends.redis = redis.NewClient(cfg.Redis)
	a.backends.tracing = tracing.Open(tracing.Config{Endpoint: cfg.TraceEndpoint, Ratio: cfg.TraceRatio, Service: "edge", Version: telemetry.Version(), Logger: log})
	registry := telemetry.NewRegistry("edge")
	a.parts = wire(cfg, keyring, a.backends, registry, log)
	a.admin = telemetry.NewAdmin(telemetry.AdminConfig{Listen: cfg.AdminListen, Gatherer: registry, Logger: log, Service: "edge", Pprof: cfg.AdminPprof})
	a.admin.Add("listening", a.checkListening)
	a.admin.Add("schema", a.checkSchema)
	a.assemble()
	return a, nil
}

func atMost(conns int32, s settings.Postgres) settings.Postgres {
	s.MaxConns = min(s.MaxConns, conns)
	return s
}

// assemble adds the parts in the order of their start; they stop in reverse.
func (a *App) assemble() {
	a.group.Add("operations port", a.admin.Start, a.admin.Stop)
	a.group.Add("tracing", nil, a.backends.tracing.Stop)
	a.group.Add("PostgreSQL", nil, closer(func() {
		a.backends.catalog.Close()
		a.backends.poll.Close()
		a.backends.pool.Close()
	}))
	a.group.Add("Redis", nil, func(context.Context) error {
		a.parts.claims.Close()
		a.parts.copies.Close()
		return a.backends.redis.Close()
	})
	a.group.Loop("topics", a.parts.topics.Run)
	a.group.Loop("key version", a.parts.gate.Run)
	a.group.Loop("key hints", func(ctx context.Context) error { return a.parts.cache.Hints(ctx, a.parts.gate.Nudge) })
	a.group.Loop("item hints", func(ctx context.Context) error { return a.parts.shared.Hints(ctx, a.parts.items.Changed) })
	a.group.Add("Kafka", nil, a.flush)
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

// Run serves until the context ends or a signal asks for the end, drains, and returns nil when all ended in order.
func (a *App) Run(ctx context.Context) error { return a.group.Run(ctx) }

// PublicAddr and AdminAddr are the bound addresses while the edge runs.
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
		if err := a.parts.public.Serve(l); err != nil {
			a.group.Fail(fmt.Errorf("public surface: %w", err))
		}
	}()
	return nil
}

// drain lets balancers see first that the edge is not ready, then takes no more and lets running requests end.
func (a *App) drain(ctx context.Context) error {
	a.admin.SetDraining()
	a.parts.public.Leave()
	select {
	case <-time.After(a.cfg.DrainDelay):
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	return a.parts.public.Shutdown(ctx)
}

// flush waits for what requests left under way: Decisions, registers of claims, and records.
func (a *App) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	err := a.parts.decisions.Close(ctx)
	a.parts.items.Close(ctx)
	a.parts.intake.Close(ctx)
	return errors.Join(err, a.parts.signals.Close(ctx), a.parts.records.Close(ctx))
}

func (a *App) checkListening(context.Context) error {
	if a.PublicAddr() == "" {
		return errors.New("the public surface does not listen yet")
	}
	return nil
}

// checkSchema fails on a schema that is older than this binary's. A database that is away is no reason to be not ready:
// all edges would leave at once, and keys that Redis knows would not be served.
func (a *App) checkSchema(ctx context.Context) error {
	current, want, err := migrations.VersionOf(ctx, a.backends.pool)
	if err == nil && current < want {
		return fmt.Errorf("the schema's version is %d, this binary needs %d: run control migrate up", current, want)
	}
	return nil
}
