package settings

import (
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"
)

// Postgres is the fragment of every service that reads or writes the database. A service that wants another statement time than ten seconds sets it before Load.
type Postgres struct {
	DatabaseURL      Secret        `envconfig:"DATABASE_URL" required:"true" desc:"PostgreSQL URL, with user and password"`
	MaxConns         int32         `envconfig:"DATABASE_MAX_CONNS" default:"16" desc:"most connections of this process"`
	StatementTimeout time.Duration `envconfig:"DATABASE_STATEMENT_TIMEOUT" desc:"longest a statement may run (10s when nothing is said)"`
	LockTimeout      time.Duration `envconfig:"DATABASE_LOCK_TIMEOUT" default:"5s" desc:"longest a statement waits for a lock"`
	IdleInTxTimeout  time.Duration `envconfig:"DATABASE_IDLE_IN_TX_TIMEOUT" default:"15s" desc:"longest a transaction may stand idle before the server ends it"`
}

// Validate implements the check that Load calls.
func (p Postgres) Validate() []error {
	var faults []error
	if p.MaxConns < 1 || p.MaxConns > 1000 {
		faults = append(faults, Faultf("DATABASE_MAX_CONNS", "must be 1 to 1000"))
	}
	faults = append(faults, notNegative("DATABASE_STATEMENT_TIMEOUT", p.StatementTimeout)...)
	faults = append(faults, notNegative("DATABASE_LOCK_TIMEOUT", p.LockTimeout)...)
	return append(faults, notNegative("DATABASE_IDLE_IN_TX_TIMEOUT", p.IdleInTxTimeout)...)
}

// Redis is the fragment of the services that use Redis: one address, or several of a cluster.
type Redis struct {
	RedisAddrs    []string `envconfig:"REDIS_ADDRS" required:"true" desc:"Redis addresses, host:port, separated by commas; several mean a cluster"`
	RedisUsername string   `envconfig:"REDIS_USERNAME" desc:"ACL user"`
	RedisPassword Secret   `envconfig:"REDIS_PASSWORD" desc:"password of the ACL user"`
	RedisTLS      bool     `envconfig:"REDIS_TLS" default:"false" desc:"connect with TLS"`
	RedisPrefix   string   `envconfig:"REDIS_PREFIX" default:"sf:" desc:"what every key begins with; the same for edge and control"`
}

// Validate implements the check that Load calls.
func (r Redis) Validate() []error { return Addresses("REDIS_ADDRS", r.RedisAddrs) }

// Kafka is the fragment of the services that use Kafka. The topic figures are used only when a topic does not exist yet.
type Kafka struct {
	KafkaBrokers      []string `envconfig:"KAFKA_BROKERS" required:"true" desc:"Kafka bootstrap addresses, host:port, separated by commas"`
	TopicPartitions   int      `envconfig:"KAFKA_TOPIC_PARTITIONS" default:"12" desc:"partitions of a topic that is made at start"`
	ReplicationFactor int      `envconfig:"KAFKA_REPLICATION_FACTOR" default:"-1" desc:"replicas of a topic that is made at start; -1 is the broker's default (production wants 3)"`
	KafkaTLS          bool     `envconfig:"KAFKA_TLS" default:"false" desc:"connect with TLS"`
	KafkaCAFile       string   `envconfig:"KAFKA_CA_FILE" desc:"PEM file of authorities that are trusted for Kafka beside the system's"`
	KafkaSASL         string   `envconfig:"KAFKA_SASL" desc:"mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: none. PLAIN shows the password to whoever listens, unless there is TLS"`
	KafkaUsername     string   `envconfig:"KAFKA_USERNAME" desc:"user; required with a mechanism"`
	KafkaPassword     Secret   `envconfig:"KAFKA_PASSWORD" desc:"password of the user; required with a mechanism"`
}

// The mechanisms of Kafka's KAFKA_SASL.
const (
	SASLPlain    = "PLAIN"
	SASLScram256 = "SCRAM-SHA-256"
	SASLScram512 = "SCRAM-SHA-512"
)

// Validate implements the check that Load calls.
func (k Kafka) Validate() []error {
	faults := Addresses("KAFKA_BROKERS", k.KafkaBrokers)
	if k.TopicPartitions < 1 || k.TopicPartitions > 1024 {
		faults = append(faults, Faultf("KAFKA_TOPIC_PARTITIONS", "must be 1 to 1024"))
	}
	if k.ReplicationFactor < 1 && k.ReplicationFactor != -1 {
		faults = append(faults, Faultf("KAFKA_REPLICATION_FACTOR", "must be at least 1, or -1"))
	}
	if k.KafkaCAFile != "" && !k.KafkaTLS {
		faults = append(faults, Faultf("KAFKA_CA_FILE", "needs KAFKA_TLS"))
	}
	switch k.KafkaSASL {
	case "":
		if k.KafkaUsername != "" || k.KafkaPassword != "" {
			faults = append(faults, Faultf("KAFKA_SASL", "is required with a user or a password"))
		}
	case SASLPlain, SASLScram256, SASLScram512:
		if k.KafkaUsername == "" {
			faults = append(faults, Faultf("KAFKA_USERNAME", "is required with KAFKA_SASL"))
		}
		if k.KafkaPassword == "" {
			faults = append(faults, Faultf("KAFKA_PASSWORD", "is required with KAFKA_SASL"))
		}
	default:
		faults = append(faults, Faultf("KAFKA_SASL", "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"))
	}
	return faults
}

// Telemetry is the fragment of every service: its operations port and its log.
type Telemetry struct {
	AdminListen string     `envconfig:"ADMIN_LISTEN" default:":9090" desc:"address of the operations port: /metrics /livez /readyz /version"`
	AdminPprof  bool       `envconfig:"ADMIN_PPROF" default:"false" desc:"serve /debug/pprof on the operations port"`
	LogLevel    slog.Level `envconfig:"LOG_LEVEL" default:"INFO" desc:"DEBUG, INFO, WARN or ERROR"`

	TraceEndpoint string  `envconfig:"TRACE_ENDPOINT" desc:"base URL of an OpenTelemetry collector (OTLP over HTTP, http://collector:4318), to which /v1/traces is added; empty: no tracing"`
	TraceRatio    float64 `envconfig:"TRACE_RATIO" default:"0.01" desc:"share of the requests that are traced, 0 to 1; one that comes with a traceparent follows its sender"`
}

// Validate implements the check that Load calls.
func (t Telemetry) Validate() []error {
	faults := Listen("ADMIN_LISTEN", t.AdminListen)
	if u, err := url.Parse(t.TraceEndpoint); t.TraceEndpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		faults = append(faults, Faultf("TRACE_ENDPOINT", "must be an http or https URL without credentials and query"))
	}
	if !(t.TraceRatio >= 0 && t.TraceRatio <= 1) {
		faults = append(faults, Faultf("TRACE_RATIO", "must be 0 to 1"))
	}
	return faults
}

// Listen checks that addr is host:port; the host may be empty. The variable is named without its prefix.
func Listen(variable, addr string) []error {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return []error{Faultf(variable, "must be host:port")}
	}
	return nil
}

// Addresses checks that each of a list is host:port with both parts.
func Addresses(variable string, addrs []string) []error {
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(strings.TrimSpace(addr))
		if err != nil || host == "" || port == "" {
			return []error{Faultf(variable, "each must be host:port")}
		}
	}
	return nil
}

func notNegative(variable string, d time.Duration) []error {
	if d < 0 {
		return []error{Faultf(variable, "must not be negative")}
	}
	return nil
}
