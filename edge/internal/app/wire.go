package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/edge/internal/access"
	"storefront.internal/edge/internal/engine"
	"storefront.internal/edge/internal/httpapi"
	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/itemread"
	"storefront.internal/edge/internal/kafka"
	"storefront.internal/edge/internal/overload"
	"storefront.internal/edge/internal/postgres"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/edge/internal/recommend"
	"storefront.internal/edge/internal/redis"
	"storefront.internal/edge/internal/redisbatch"
	"storefront.internal/edge/internal/sdkfiles"
	"storefront.internal/edge/internal/signalcheck"
	"storefront.internal/shared/clock"
	"storefront.internal/shared/heavyhitters"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/pg"
	"storefront.internal/shared/poolmetrics"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/servercert"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/tracing"
)

// backends are the clients of the stores. They connect at first use.
type backends struct {
	pool        *pgxpool.Pool // keys and the ledger
	pollPool    *pgxpool.Pool // the key version, which must not wait behind look-ups
	catalogPool *pgxpool.Pool // items
	redis       goredis.UniversalClient
	kafka       stream.Security
	tracing     *tracing.Tracing        // nil: none
	sdk         sdkfiles.Files          // nil: not served
	certificate *servercert.Certificate // nil: the public surface has no TLS
}

// openPools opens all pools of PostgreSQL, or none.
func (b *backends) openPools(ctx context.Context, s settings.Postgres) (err error) {
	for _, p := range []struct {
		pool  **pgxpool.Pool
		name  string
		conns int32
	}{
		{&b.pool, "storefront-edge", s.MaxConns},
		{&b.pollPool, "storefront-edge-poll", 1},
		{&b.catalogPool, "storefront-edge-catalog", maxCatalogConns},
	} {
		own := s
		own.MaxConns = min(s.MaxConns, p.conns)
		if *p.pool, err = pg.Open(ctx, own, p.name); err != nil {
			b.closePools()
			return err
		}
	}
	return nil
}

func (b *backends) closePools() {
	for _, pool := range []*pgxpool.Pool{b.catalogPool, b.pollPool, b.pool} {
		if pool != nil {
			pool.Close()
		}
	}
}

// parts are what the edge consists of.
type parts struct {
	keyResolver      *access.KeyResolver
	keyCache         *redis.Keys
	claimBatcher     *redisbatch.Batcher
	itemBatcher      *redisbatch.Batcher
	topics           *kafka.Topics
	signalProducer   *kafka.Signals
	decisionProducer *stream.Producer
	decisionRecorder *kafka.Decisions
	intake           *intake.Service
	itemCache        *redis.Items
	items            *itemread.Service
	engine           *engine.Client // nil when none is configured
	top              *heavyhitters.Tracker
	server           *httpapi.Server
}

// batcherConns is how many connections each batcher uses, for claims and for items.
const batcherConns = 2

// lookEvery is by how much a request may wait longer for Kafka than its deadline says.
const lookEvery = 100 * time.Millisecond

// maxCatalogConns bounds the look-ups of items in PostgreSQL that are in flight.
const maxCatalogConns = 8

// wire puts the parts together. It connects to nothing and starts nothing.
func wire(cfg Config, keyring *decisionid.Keyring, b backends, r prometheus.Registerer,
	log *slog.Logger) (p parts) {
	p.keyCache = redis.NewKeys(b.redis, cfg.RedisPrefix)
	p.keyResolver = access.New(access.Config{
		Store: postgres.NewKeys(b.pool, b.pollPool), Cache: p.keyCache,
		Now: clock.Now, Logger: log, Metrics: access.NewMetrics(r),
	})
	p.keyResolver.Watch(r)
	p.topics = &kafka.Topics{Settings: cfg.Kafka, Security: b.kafka,
		Names: []string{cfg.SignalsTopic, cfg.DecisionsTopic}, Logger: log}
	p.signalProducer = kafka.NewSignals(producerConfig(cfg, b.kafka, cfg.SignalsTopic, r), cfg.groups())
	p.decisionProducer = stream.NewProducer(producerConfig(cfg, b.kafka, cfg.DecisionsTopic, r))
	p.decisionRecorder = kafka.NewDecisions(p.decisionProducer, log, r)
	p.claimBatcher = redisbatch.NewBatcher(b.redis, batcherConns, redisbatch.Timeout)
	p.itemBatcher = redisbatch.NewBatcher(b.redis, batcherConns, redisbatch.Timeout)
	p.intake = intake.New(intake.Config{
		Claims:   redis.NewClaims(p.claimBatcher, cfg.RedisPrefix, cfg.Clustered()),
		Producer: p.signalProducer, Ledger: postgres.NewLedger(b.pool), Decisions: keyring,
		Compact: cfg.RecordVersion == 2,
		Quota:   cfg.claimQuota(), Now: clock.Now, Logger: log, Metrics: intake.NewMetrics(r),
	})
	items := postgres.NewItems(b.catalogPool)
	p.itemCache = redis.NewItems(b.redis, p.itemBatcher, cfg.RedisPrefix)
	p.items = itemread.New(itemread.Config{
		Store: items, Cache: p.itemCache, Misses: ratelimit.New(cfg.misses()),
		TTL: cfg.ItemTTL, MaxBytes: cfg.ItemMemoryBytes, MaxLookups: maxCatalogConns,
		Now: clock.Now, Logger: log, Metrics: itemread.NewMetrics(r),
	})
	p.items.Watch(r)
	recommendConfig := recommend.Config{
		Fallback: recommend.NewSellableItems(items, clock.Now), Catalog: p.items, Documents: p.items,
		Minter:   keyring,
		Recorder: p.decisionRecorder, Deadline: cfg.EngineDeadline,
		Now: clock.Now, Logger: log, Metrics: recommend.NewMetrics(r),
	}
	if cfg.EngineURL != "" { // a nil *Client in the interface would count as an engine
		p.engine = engine.New(cfg.EngineURL, cfg.EngineToken)
		recommendConfig.Engine = p.engine
	}
	recommendations := recommend.New(recommendConfig)
	recommendations.Watch(r)
	p.top = heavyhitters.New(clock.Now, httpapi.Loads()...)
	p.top.Register(r, "storefront_edge_top_connection_share")
	p.server = httpapi.New(httpapi.Config{
		Top:  p.top,
		Keys: p.keyResolver, Signals: p.intake, SignalCheck: signalcheck.New(keyring),
		Recommendations: recommendations, Items: p.items, SDK: b.sdk,
		RateLimiter: ratelimit.New(cfg.rateLimits()), Problems: problem.New(cfg.ErrorsBase),
		Tracing: b.tracing, TLS: b.certificate.TLS(),
		Now: clock.Now, Logger: log, Metrics: httpapi.NewMetrics(r),
		TrustedProxies: cfg.TrustedProxies, Beacon: cfg.Beacon, LogSample: cfg.LogSample,
		ItemTTL:        cfg.ItemTTL,
		MaxBodyBytes:   cfg.MaxBodyBytes,
		MaxConnections: cfg.MaxConnections, MaxConnectionsPerAddress: cfg.MaxConnectionsPerAddress,
		AuthFailures: cfg.authFailures(),
		WorkLimits: overload.Config{MaxInFlight: cfg.MaxInFlight, MaxBytes: cfg.MaxBodyBytes,
			MaxWait: cfg.MaxWait},
		ReadLimits: overload.Config{MaxInFlight: cfg.MaxReads, MaxWait: cfg.MaxWait},
	})
	p.server.Watch(r)
	servercert.Register(r, b.certificate)
	pools := map[string]*pgxpool.Pool{"edge": b.pool, "edge-poll": b.pollPool, "edge-catalog": b.catalogPool}
	r.MustRegister(poolmetrics.NewRedis(b.redis), poolmetrics.NewPostgres("edge-poll", pools))
	return p
}

func producerConfig(cfg Config, security stream.Security, topic string,
	r prometheus.Registerer) stream.ProducerConfig {
	return stream.ProducerConfig{Brokers: cfg.KafkaBrokers, Security: security, Topic: topic,
		ClientID: "storefront-edge", Compression: stream.Codec(cfg.Compression), Registerer: r,
		LookEvery: lookEvery}
}
