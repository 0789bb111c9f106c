package app

import (
	"log/slog"

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
	"storefront.internal/shared/crashpoint"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/pools"
	"storefront.internal/shared/problem"
	"storefront.internal/shared/stream"
	"storefront.internal/shared/tracing"
)

// backends are the clients of what stands behind the edge. None has connected yet.
type backends struct {
	pool    *pgxpool.Pool // look-ups
	poll    *pgxpool.Pool // the key version
	catalog *pgxpool.Pool // items
	redis   goredis.UniversalClient
	kafka   stream.Security
	tracing *tracing.Tracing // nil: none
}

// parts are what the edge is made of.
type parts struct {
	gate      *access.Gate
	cache     *redis.Keys
	claims    *redis.Pipeline
	copies    *redis.Pipeline // of items
	topics    *kafka.Topics
	signals   *stream.Producer
	records   *stream.Producer
	decisions *kafka.Decisions
	intake    *intake.Service
	shared    *redis.Items
	items     *itemread.Service
	engine    *engine.Client // nil when none is configured
	public    *httpapi.Server
}

// flights is how many pipelines are under way at once: of claims, and of items.
const flights = 2

// maxCatalogConns is how many look-ups of items PostgreSQL gets at once.
const maxCatalogConns = 8

// wire puts the parts together. It connects to nothing and starts nothing.
func wire(cfg Config, keyring *decisionid.Keyring, b backends, r prometheus.Registerer, log *slog.Logger) parts {
	var p parts
	p.cache = redis.NewKeys(b.redis, cfg.RedisPrefix)
	p.gate = access.New(access.Config{Store: postgres.NewKeys(b.pool, b.poll), Cache: p.cache, Now: crashpoint.Now, Logger: log, Metrics: access.NewMetrics(r)})
	p.gate.Watch(r)
	p.topics = &kafka.Topics{Settings: cfg.Kafka, Security: b.kafka, Names: []string{cfg.SignalsTopic, cfg.DecisionsTopic}, Logger: log}
	p.signals = producer(cfg, b.kafka, cfg.SignalsTopic, r)
	p.records = producer(cfg, b.kafka, cfg.DecisionsTopic, r)
	p.decisions = kafka.NewDecisions(p.records, log, r)
	p.claims, p.copies = redis.NewPipeline(b.redis, flights), redis.NewPipeline(b.redis, flights)
	p.intake = intake.New(intake.Config{
		Claims:   redis.NewClaims(p.claims, cfg.RedisPrefix, len(cfg.RedisAddrs) > 1),
		Producer: p.signals, Ledger: postgres.NewLedger(b.pool), Decisions: keyring, Metrics: intake.NewMetrics(r), Logger: log, Now: crashpoint.Now,
	})
	stored := postgres.NewItems(b.catalog)
	p.shared = redis.NewItems(b.redis, p.copies, cfg.RedisPrefix)
	p.items = itemread.New(itemread.Config{Store: stored, Cache: p.shared, Misses: ratelimit.New(cfg.misses()), Now: crashpoint.Now, Logger: log,
		Metrics: itemread.NewMetrics(r), TTL: cfg.ItemTTL, MaxBytes: cfg.ItemMemoryBytes, MaxLookups: maxCatalogConns})
	p.items.Watch(r)
	recommendations := recommend.Config{Fallback: recommend.NewSellables(stored, crashpoint.Now), Catalog: p.items, Minter: keyring, Recorder: p.decisions, Metrics: recommend.NewMetrics(r), Logger: log, Now: crashpoint.Now,
		Deadline: cfg.EngineDeadline}
	if cfg.EngineURL != "" { // a nil *Client in the interface would count as an engine
		p.engine = engine.New(cfg.EngineURL, cfg.EngineToken)
		recommendations.Engine = p.engine
	}
	service := recommend.New(recommendations)
	service.Watch(r)
	p.public = httpapi.New(httpapi.Config{
		Keys: p.gate, Signals: p.intake, Recommendations: service, Items: p.items, Limiter: ratelimit.New(cfg.limits()),
		Problems: problem.New(cfg.ErrorsBase), Metrics: httpapi.NewMetrics(r), Logger: log, Tracing: b.tracing, Now: crashpoint.Now,
		TrustedProxies: cfg.TrustedProxies, Beacon: cfg.Beacon, LogSample: cfg.LogSample, ItemTTL: cfg.ItemTTL, Failures: cfg.failures(),
		Work:  overload.Config{MaxInFlight: cfg.MaxInFlight, MaxBytes: cfg.MaxBodyBytes, Patience: cfg.MaxWait},
		Reads: overload.Config{MaxInFlight: cfg.MaxReads, Patience: cfg.MaxWait},
	})
	p.public.Watch(r)
	r.MustRegister(pools.NewRedis(b.redis),
		pools.NewPostgres("edge-poll", map[string]*pgxpool.Pool{"edge": b.pool, "edge-poll": b.poll, "edge-catalog": b.catalog}))
	return p
}

func producer(cfg Config, security stream.Security, topic string, r prometheus.Registerer) *stream.Producer {
	return stream.NewProducer(stream.ProducerConfig{Brokers: cfg.KafkaBrokers, Security: security, Topic: topic, ClientID: "storefront-edge", Compression: stream.Codec(cfg.Compression), Registerer: r})
}
