package app

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/stream"
)

// Prefix starts every variable of edge.
const Prefix = "EDGE"

// Config is edge's configuration; CONFIG.md is generated from its tags.
type Config struct {
	Listen     string `envconfig:"LISTEN" default:":8080" desc:"address of the public surface"`
	ErrorsBase string `envconfig:"ERRORS_BASE" required:"true" desc:"prefix of a problem's type, an absolute URL that ends with a slash"`
	settings.Postgres
	settings.Redis
	settings.Kafka
	settings.Telemetry
	settings.ServerTLS
	Compression   string          `envconfig:"KAFKA_COMPRESSION" default:"snappy" desc:"compression of Kafka records: none, snappy, lz4 or zstd"`
	Keyed         bool            `envconfig:"KAFKA_KEYED" default:"false" desc:"write the signals of a connection to one group of partitions while its leader answers, by 64 buckets of connections, so that the transactions of several relays touch different connections; one producer for each of KAFKA_TOPIC_PARTITIONS, at most 64, instead of one for all"`
	RecordVersion int             `envconfig:"KAFKA_RECORD_VERSION" default:"1" desc:"form in which signals are written to Kafka: 1, or 2, which is a half to two thirds shorter because what the signals of a request have in common stands once; 2 only when no relay is older than this release"`
	DecisionKeys  settings.Secret `envconfig:"DECISION_KEYS" required:"true" desc:"keys of Decision ids, kid:base64[,kid:base64…]; the first signs new ids, all verify; the same for every edge, and kept as long as Decisions are"`

	RatePerKey          float64        `envconfig:"RATE_PER_KEY" default:"5000" desc:"signals and reads a second of one storefront key, over all replicas"`
	RatePerAddress      float64        `envconfig:"RATE_PER_ADDRESS" default:"100" desc:"signals and reads a second of one storefront key and client address (IPv6: /64; the networks of a /48 together get eight times as much), over all replicas"`
	RateBurst           int            `envconfig:"RATE_BURST" default:"1000" desc:"tokens that a full bucket of either kind holds, over all replicas"`
	AuthFailures        float64        `envconfig:"AUTH_FAILURES" default:"10" desc:"requests with a wrong storefront key a second of one client address, over all replicas; above it, only keys that memory or Redis know are accepted and the others answered 429; malformed keys do not count; 0: no limit"`
	ClaimsPerConnection int            `envconfig:"CLAIMS_PER_CONNECTION" default:"4000000" desc:"claims of one connection that may live in Redis at once, over all replicas: one for each signal of the last hour, of 200 to 500 bytes; a batch beyond it is answered 429; choose it so that one connection cannot fill Redis; 0: no limit"`
	Replicas            int            `envconfig:"REPLICAS" default:"1" desc:"number of edges among which the rates are divided"`
	TrustedProxies      []netip.Prefix `envconfig:"TRUSTED_PROXIES" desc:"networks (CIDR) of the proxies whose X-Forwarded-For is trusted, separated by commas; empty: none"`
	Beacon              bool           `envconfig:"BEACON" default:"true" desc:"accept signals as text/plain with ?key= from pages that unload"`
	SDK                 bool           `envconfig:"SDK" default:"false" desc:"serve the browser SDK at /v1/sdk/<version>/<file>, to every origin and without a key"`

	EngineURL      string          `envconfig:"ENGINE_URL" desc:"base URL of the engine; empty: every recommendation is the fallback"`
	EngineToken    settings.Secret `envconfig:"ENGINE_TOKEN" desc:"bearer token for the engine; required with the URL"`
	EngineDeadline time.Duration   `envconfig:"ENGINE_DEADLINE" default:"150ms" desc:"longest wait for the engine before the fallback answers"`

	ItemTTL              time.Duration `envconfig:"ITEM_TTL" default:"5s" desc:"how long an item is served from process memory without asking a store, and how long clients may cache it"`
	ItemMemoryBytes      int64         `envconfig:"ITEM_MEMORY_BYTES" default:"67108864" desc:"bytes of process memory for items"`
	ItemMissesPerKey     float64       `envconfig:"ITEM_MISSES_PER_KEY" default:"200" desc:"look-ups of items that do not exist a second of one storefront key, over all replicas; above it, an item that no cache holds is answered 429"`
	ItemMissesPerAddress float64       `envconfig:"ITEM_MISSES_PER_ADDRESS" default:"20" desc:"the same of one storefront key and client address"`

	MaxInFlight              int           `envconfig:"MAX_IN_FLIGHT" default:"256" desc:"requests in flight at once, without catalog reads; as many may wait, highest priority first, and more are answered 503"`
	MaxWait                  time.Duration `envconfig:"MAX_WAIT" default:"50ms" desc:"longest wait of a request for a permit before it is answered 503"`
	MaxReads                 int           `envconfig:"MAX_READS" default:"1024" desc:"catalog reads in flight at once; as many may wait, and more are answered 503"`
	MaxBodyBytes             int           `envconfig:"MAX_BODY_BYTES" default:"0" desc:"bytes of the bodies that are read, waiting or in flight, as declared (256 KiB for a chunked one; up to 4 KiB are not counted); a request above it is answered 503 before its body is read, and the last quarter of what waits is kept for batches with sales; 0: a quarter of GOMEMLIMIT, at most 256 MiB, and 64 MiB without GOMEMLIMIT"`
	MaxConnections           int           `envconfig:"MAX_CONNECTIONS" default:"0" desc:"connections that may be open; more are answered 503, and above three quarters idle ones end after 5s instead of 60s; 0: 4096, but at most a third of GOMEMLIMIT at 32 KiB each"`
	MaxConnectionsPerAddress int           `envconfig:"MAX_CONNECTIONS_PER_ADDRESS" default:"512" desc:"connections that one peer address (IPv6: /64) that is no trusted proxy may have open; more are answered 429, and their bodies may take a quarter of MAX_BODY_BYTES; a balancer that hides the clients' addresses belongs into TRUSTED_PROXIES; 0: no limit"`
	LogSample                int           `envconfig:"LOG_SAMPLE" default:"100" desc:"one in so many successful requests is logged; 0: none. Failed requests do not count: for each operation, status and error code up to ten a second (4xx) or one a second (5xx) are logged, and similar_not_logged in the next line is the number of those left out"`
	DrainDelay               time.Duration `envconfig:"DRAIN_DELAY" default:"3s" desc:"time at a stop between not ready and accepting no more connections"`
}

// newConfig returns the defaults of edge where they differ from those of a fragment.
func newConfig() Config {
	return Config{Postgres: settings.Postgres{StatementTimeout: 2 * time.Second}}
}

// Load reads the configuration from the environment, and reports all its errors at once.
func Load(environ []string) (Config, error) {
	c := newConfig()
	err := settings.Load(Prefix, &c, environ)
	return c, err
}

// Validate is called by settings.Load.
func (c *Config) Validate() []error {
	var errs []error
	check := func(ok bool, variable, reason string) {
		if !ok {
			errs = append(errs, settings.Errorf(variable, "%s", reason))
		}
	}
	errs = append(errs, settings.Listen("LISTEN", c.Listen)...)
	check(absoluteURL(c.ErrorsBase) && strings.HasSuffix(c.ErrorsBase, "/"), "ERRORS_BASE",
		"must be an absolute URL that ends with a slash")
	if _, err := decisionid.ParseKeyring(c.DecisionKeys.Reveal()); err != nil {
		errs = append(errs, settings.Errorf("DECISION_KEYS", "%v", err))
	}
	check(stream.Codec(c.Compression).Known(), "KAFKA_COMPRESSION", "must be none, snappy, lz4 or zstd")
	check(rate(c.RatePerKey), "RATE_PER_KEY", "must be more than 0 and at most 1000000000")
	check(rate(c.RatePerAddress), "RATE_PER_ADDRESS", "must be more than 0 and at most 1000000000")
	check(c.RateBurst >= 1 && c.RateBurst <= 1e9, "RATE_BURST", "must be 1 to 1000000000")
	check(c.AuthFailures == 0 || rate(c.AuthFailures), "AUTH_FAILURES", "must be 0 to 1000000000")
	check(c.ClaimsPerConnection >= 0 && c.ClaimsPerConnection <= 1e9, "CLAIMS_PER_CONNECTION",
		"must be 0 to 1000000000")
	check(c.Replicas >= 1 && c.Replicas <= 10_000, "REPLICAS", "must be 1 to 10000")
	check(c.RecordVersion == 1 || c.RecordVersion == 2, "KAFKA_RECORD_VERSION", "must be 1 or 2")
	check(c.EngineURL == "" || absoluteURL(c.EngineURL), "ENGINE_URL",
		"must be an absolute http or https URL")
	check(c.EngineURL == "" || c.EngineToken != "", "ENGINE_TOKEN", "is required with the URL")
	check(c.EngineDeadline > 0 && c.EngineDeadline <= 5*time.Second, "ENGINE_DEADLINE",
		"must be more than 0 and at most 5s")
	check(c.ItemTTL >= time.Second && c.ItemTTL <= time.Minute, "ITEM_TTL", "must be 1s to 1m")
	check(c.ItemMemoryBytes >= 1<<20, "ITEM_MEMORY_BYTES", "must be at least 1048576")
	check(rate(c.ItemMissesPerKey), "ITEM_MISSES_PER_KEY", "must be more than 0 and at most 1000000000")
	check(rate(c.ItemMissesPerAddress), "ITEM_MISSES_PER_ADDRESS",
		"must be more than 0 and at most 1000000000")
	check(c.MaxReads >= 1, "MAX_READS", "must be at least 1")
	check(c.MaxInFlight >= 1, "MAX_IN_FLIGHT", "must be at least 1")
	check(c.MaxWait > 0 && c.MaxWait <= 2*time.Second, "MAX_WAIT", "must be more than 0 and at most 2s")
	check(c.MaxBodyBytes == 0 || c.MaxBodyBytes >= 1<<20, "MAX_BODY_BYTES", "must be 0 or at least 1048576")
	check(c.MaxConnections == 0 || c.MaxConnections >= 16 && c.MaxConnections <= 1_000_000, "MAX_CONNECTIONS",
		"must be 0 or 16 to 1000000")
	check(c.MaxConnectionsPerAddress >= 0, "MAX_CONNECTIONS_PER_ADDRESS", "must not be negative")
	check(c.LogSample >= 0, "LOG_SAMPLE", "must not be negative")
	check(c.DrainDelay >= 0 && c.DrainDelay <= time.Minute, "DRAIN_DELAY", "must be 0s to 1m")
	return errs
}

func rate(r float64) bool { return r > 0 && r <= 1e9 }

func absoluteURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// quota is this replica's share of a quota.
func (c *Config) quota(perSecond float64, burst int) ratelimit.Quota {
	return ratelimit.Quota{PerSecond: perSecond, Burst: max(1, burst)}.Share(c.Replicas)
}

func (c *Config) rateLimits() ratelimit.Config {
	return ratelimit.Config{PerKey: c.quota(c.RatePerKey, c.RateBurst),
		PerAddress: c.quota(c.RatePerAddress, c.RateBurst)}
}

// authFailures allows a burst of 5 seconds' worth.
func (c *Config) authFailures() ratelimit.Quota {
	return c.quota(c.AuthFailures, int(5*c.AuthFailures))
}

// groups is the number of groups of partitions by which signals are keyed; one: they are not.
func (c *Config) groups() int {
	if !c.Keyed {
		return 1
	}
	return c.TopicPartitions
}

// claimQuota bounds the claims of each connection; nil: no bound.
func (c *Config) claimQuota() *ratelimit.Limiter {
	if c.ClaimsPerConnection == 0 {
		return nil
	}
	return ratelimit.New(ratelimit.Config{PerKey: intake.ClaimQuota(c.ClaimsPerConnection).Share(c.Replicas)})
}

// misses limits look-ups that find nothing; it allows a burst of 3 seconds' worth.
func (c *Config) misses() ratelimit.Config {
	return ratelimit.Config{PerKey: c.quota(c.ItemMissesPerKey, int(3*c.ItemMissesPerKey)),
		PerAddress: c.quota(c.ItemMissesPerAddress, int(3*c.ItemMissesPerAddress))}
}
