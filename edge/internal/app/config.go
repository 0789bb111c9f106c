package app

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"storefront.internal/edge/internal/ratelimit"
	"storefront.internal/shared/ident/decisionid"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/stream"
)

// Prefix starts every variable of edge.
const Prefix = "EDGE"

// Config is edge's configuration; CONFIG.md is made from its tags.
type Config struct {
	Listen     string `envconfig:"LISTEN" default:":8080" desc:"address of the public surface"`
	ErrorsBase string `envconfig:"ERRORS_BASE" required:"true" desc:"prefix of a problem's type, an absolute URL that ends with a slash"`
	settings.Postgres
	settings.Redis
	settings.Kafka
	settings.Telemetry
	Compression  string          `envconfig:"KAFKA_COMPRESSION" default:"snappy" desc:"how records are compressed on their way to Kafka: none, snappy, lz4 or zstd"`
	DecisionKeys settings.Secret `envconfig:"DECISION_KEYS" required:"true" desc:"keys of Decision ids, kid:base64[,kid:base64…]; the first mints, all verify; the same for every edge, and kept as long as Decisions are"`

	RatePerKey     float64        `envconfig:"RATE_PER_KEY" default:"5000" desc:"signals and reads a second of one storefront key, over all replicas"`
	RatePerAddress float64        `envconfig:"RATE_PER_ADDRESS" default:"100" desc:"signals and reads a second of one storefront key and client address, over all replicas"`
	RateBurst      int            `envconfig:"RATE_BURST" default:"1000" desc:"most tokens that a bucket of either kind holds, over all replicas"`
	AuthFailures   float64        `envconfig:"AUTH_FAILURES" default:"10" desc:"requests with a wrong storefront key a second of one client address, over all replicas; above, only keys that need no look-up are taken and the others answered 429; 0: no limit"`
	Replicas       int            `envconfig:"REPLICAS" default:"1" desc:"number of edges among which the rates are divided"`
	TrustedProxies []netip.Prefix `envconfig:"TRUSTED_PROXIES" desc:"networks (CIDR) of the proxies whose X-Forwarded-For is believed, separated by commas; empty: none"`
	Beacon         bool           `envconfig:"BEACON" default:"true" desc:"operation 1 takes text/plain with ?key= from pages that unload"`

	EngineURL      string          `envconfig:"ENGINE_URL" desc:"base URL of the engine; empty: recommendations are fallbacks"`
	EngineToken    settings.Secret `envconfig:"ENGINE_TOKEN" desc:"bearer token for the engine; required with the URL"`
	EngineDeadline time.Duration   `envconfig:"ENGINE_DEADLINE" default:"150ms" desc:"longest wait for the engine before the fallback answers"`

	ItemTTL              time.Duration `envconfig:"ITEM_TTL" default:"5s" desc:"longest an item is served from process memory without asking, and what clients may keep it for"`
	ItemMemoryBytes      int64         `envconfig:"ITEM_MEMORY_BYTES" default:"67108864" desc:"most bytes of process memory for copies of items"`
	ItemMissesPerKey     float64       `envconfig:"ITEM_MISSES_PER_KEY" default:"200" desc:"look-ups of items that do not exist a second of one storefront key, over all replicas; above, what is in no cache is answered 429"`
	ItemMissesPerAddress float64       `envconfig:"ITEM_MISSES_PER_ADDRESS" default:"20" desc:"the same of one storefront key and client address"`

	MaxInFlight  int           `envconfig:"MAX_IN_FLIGHT" default:"256" desc:"requests in work at once, without reads of the catalog; as many wait for a turn, the dearest first, and more are answered 503"`
	MaxWait      time.Duration `envconfig:"MAX_WAIT" default:"50ms" desc:"longest a request waits for its turn before it is answered 503; one that would wait longer is refused at once"`
	MaxReads     int           `envconfig:"MAX_READS" default:"1024" desc:"reads of the catalog in work at once; as many wait, and more are answered 503"`
	MaxBodyBytes int           `envconfig:"MAX_BODY_BYTES" default:"67108864" desc:"bytes of bodies in work or waiting; more are answered 503, and the last quarter is kept for sales"`
	LogSample    int           `envconfig:"LOG_SAMPLE" default:"100" desc:"one request in so many is logged; failures (5xx) always are; 0: only those"`
	DrainDelay   time.Duration `envconfig:"DRAIN_DELAY" default:"3s" desc:"time between being not ready and accepting no more, at a stop"`

	// Topics are the contract's with engine-relay; only tests have their own.
	SignalsTopic   string `ignored:"true"`
	DecisionsTopic string `ignored:"true"`
}

// newConfig is a configuration whose defaults are edge's own where they differ from a fragment's.
func newConfig() Config {
	return Config{Postgres: settings.Postgres{StatementTimeout: 2 * time.Second},
		SignalsTopic: stream.TopicSignals, DecisionsTopic: stream.TopicDecisions}
}

// Load reads the configuration from the environment, and tells all its faults at once.
func Load(environ []string) (Config, error) {
	c := newConfig()
	err := settings.LoadFrom(Prefix, &c, environ)
	return c, err
}

// Validate implements the check that settings.Load calls.
func (c *Config) Validate() []error {
	var faults []error
	check := func(ok bool, variable, reason string) {
		if !ok {
			faults = append(faults, settings.Faultf(variable, "%s", reason))
		}
	}
	faults = append(faults, settings.Listen("LISTEN", c.Listen)...)
	check(absoluteURL(c.ErrorsBase) && strings.HasSuffix(c.ErrorsBase, "/"), "ERRORS_BASE", "must be an absolute URL that ends with a slash")
	if _, err := decisionid.ParseKeyring(c.DecisionKeys.Reveal()); err != nil {
		faults = append(faults, settings.Faultf("DECISION_KEYS", "%v", err))
	}
	check(stream.Codec(c.Compression).Known(), "KAFKA_COMPRESSION", "must be none, snappy, lz4 or zstd")
	check(rate(c.RatePerKey), "RATE_PER_KEY", "must be more than 0 and at most 1000000000")
	check(rate(c.RatePerAddress), "RATE_PER_ADDRESS", "must be more than 0 and at most 1000000000")
	check(c.RateBurst >= 1 && c.RateBurst <= 1e9, "RATE_BURST", "must be 1 to 1000000000")
	check(c.AuthFailures == 0 || rate(c.AuthFailures), "AUTH_FAILURES", "must be 0 to 1000000000")
	check(c.Replicas >= 1 && c.Replicas <= 10_000, "REPLICAS", "must be 1 to 10000")
	check(c.EngineURL == "" || absoluteURL(c.EngineURL), "ENGINE_URL", "must be an absolute http or https URL")
	check(c.EngineURL == "" || c.EngineToken != "", "ENGINE_TOKEN", "is required with the URL")
	check(c.EngineDeadline > 0 && c.EngineDeadline <= 5*time.Second, "ENGINE_DEADLINE", "must be more than 0 and at most 5s")
	check(c.ItemTTL >= time.Second && c.ItemTTL <= time.Minute, "ITEM_TTL", "must be 1s to 1m")
	check(c.ItemMemoryBytes >= 1<<20, "ITEM_MEMORY_BYTES", "must be at least 1048576")
	check(rate(c.ItemMissesPerKey), "ITEM_MISSES_PER_KEY", "must be more than 0 and at most 1000000000")
	check(rate(c.ItemMissesPerAddress), "ITEM_MISSES_PER_ADDRESS", "must be more than 0 and at most 1000000000")
	check(c.MaxReads >= 1, "MAX_READS", "must be at least 1")
	check(c.MaxInFlight >= 1, "MAX_IN_FLIGHT", "must be at least 1")
	check(c.MaxWait > 0 && c.MaxWait <= 2*time.Second, "MAX_WAIT", "must be more than 0 and at most 2s")
	check(c.MaxBodyBytes >= 1<<20, "MAX_BODY_BYTES", "must be at least 1048576")
	check(c.LogSample >= 0, "LOG_SAMPLE", "must not be negative")
	check(c.DrainDelay >= 0 && c.DrainDelay <= time.Minute, "DRAIN_DELAY", "must be 0s to 1m")
	return faults
}

func rate(r float64) bool { return r > 0 && r <= 1e9 }

func absoluteURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// limits are this replica's shares of the quotas.
func (c *Config) limits() ratelimit.Config {
	share := func(perSecond float64) ratelimit.Quota {
		return ratelimit.Quota{PerSecond: perSecond, Burst: c.RateBurst}.Share(c.Replicas)
	}
	return ratelimit.Config{PerKey: share(c.RatePerKey), PerAddress: share(c.RatePerAddress)}
}

// failures is this replica's share of the wrong keys that an address may present: some seconds of them at once.
func (c *Config) failures() ratelimit.Quota {
	const atOnce = 5 // seconds
	return ratelimit.Quota{PerSecond: c.AuthFailures, Burst: max(1, int(atOnce*c.AuthFailures))}.Share(c.Replicas)
}

// misses are this replica's shares of the budgets for look-ups that find nothing: some seconds of them at once.
func (c *Config) misses() ratelimit.Config {
	const atOnce = 3 // seconds
	share := func(perSecond float64) ratelimit.Quota {
		return ratelimit.Quota{PerSecond: perSecond, Burst: max(1, int(atOnce*perSecond))}.Share(c.Replicas)
	}
	return ratelimit.Config{PerKey: share(c.ItemMissesPerKey), PerAddress: share(c.ItemMissesPerAddress)}
}
