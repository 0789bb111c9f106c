package settings

import (
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Postgres is the fragment of the services that use the database. A service that needs another statement
// timeout than ten seconds sets it before Load.
type Postgres struct {
	DatabaseURL      Secret        `envconfig:"DATABASE_URL" required:"true" desc:"PostgreSQL URL, with user and password"`
	MaxConns         int32         `envconfig:"DATABASE_MAX_CONNS" default:"16" desc:"maximum number of connections of the main pool; the edge opens 9 more beside it (1 to poll key versions, 8 to read the catalog), control 1 more (to see whether PostgreSQL answers)"`
	StatementTimeout time.Duration `envconfig:"DATABASE_STATEMENT_TIMEOUT" desc:"maximum run time of a statement (10s when not set)"`
	LockTimeout      time.Duration `envconfig:"DATABASE_LOCK_TIMEOUT" default:"5s" desc:"maximum time a statement waits for a lock"`
	IdleInTxTimeout  time.Duration `envconfig:"DATABASE_IDLE_IN_TX_TIMEOUT" default:"15s" desc:"maximum time a transaction may be idle before the server ends it"`
}

// Validate implements the check that Load calls.
func (p Postgres) Validate() []error {
	var errs []error
	if p.MaxConns < 1 || p.MaxConns > 1000 {
		errs = append(errs, Errorf("DATABASE_MAX_CONNS", "must be 1 to 1000"))
	}
	errs = append(errs, notNegative("DATABASE_STATEMENT_TIMEOUT", p.StatementTimeout)...)
	errs = append(errs, notNegative("DATABASE_LOCK_TIMEOUT", p.LockTimeout)...)
	return append(errs, notNegative("DATABASE_IDLE_IN_TX_TIMEOUT", p.IdleInTxTimeout)...)
}

// Redis is the fragment of the services that use Redis: one server, or a cluster.
type Redis struct {
	RedisAddrs    []string `envconfig:"REDIS_ADDRS" required:"true" desc:"Redis addresses, host:port, separated by commas; more than one means a cluster"`
	RedisCluster  bool     `envconfig:"REDIS_CLUSTER" default:"false" desc:"the address is the one endpoint of a cluster, as managed services have it; the same for edge and control"`
	RedisUsername string   `envconfig:"REDIS_USERNAME" desc:"ACL user"`
	RedisPassword Secret   `envconfig:"REDIS_PASSWORD" desc:"password of the ACL user"`
	RedisTLS      bool     `envconfig:"REDIS_TLS" default:"false" desc:"connect with TLS"`
	RedisPrefix   string   `envconfig:"REDIS_PREFIX" default:"sf:" desc:"prefix of all keys and channels, 1 to 64 characters of A-Z a-z 0-9 . _ - and :; the same for edge and control; releases that share a Redis need different ones"`
}

// Clustered reports whether the addresses are those of a cluster.
func (r Redis) Clustered() bool { return r.RedisCluster || len(r.RedisAddrs) > 1 }

// Validate implements the check that Load calls.
func (r Redis) Validate() []error {
	errs := Addresses("REDIS_ADDRS", r.RedisAddrs)
	if !redisPrefix.MatchString(r.RedisPrefix) {
		errs = append(errs, Errorf("REDIS_PREFIX", "must be 1 to 64 characters of A-Z a-z 0-9 . _ - and :"))
	}
	return errs
}

// redisPrefix excludes braces, which would be the hash tag of every key in a cluster, and what has a meaning
// in the patterns of an ACL.
var redisPrefix = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// Kafka is the fragment of the services that use Kafka. The settings of topics are used only when a topic
// does not exist yet.
type Kafka struct {
	KafkaBrokers      []string `envconfig:"KAFKA_BROKERS" required:"true" desc:"Kafka bootstrap addresses, host:port, separated by commas"`
	SignalsTopic      string   `envconfig:"KAFKA_SIGNALS_TOPIC" default:"storefront.signals.v1" desc:"topic of signals, the same for edge and relay; releases that share a Kafka need different ones"`
	DecisionsTopic    string   `envconfig:"KAFKA_DECISIONS_TOPIC" default:"storefront.decisions.v1" desc:"topic of Decisions, the same for edge and relay; releases that share a Kafka need different ones"`
	TopicPartitions   int      `envconfig:"KAFKA_TOPIC_PARTITIONS" default:"12" desc:"partitions of a topic that is created at start"`
	ReplicationFactor int      `envconfig:"KAFKA_REPLICATION_FACTOR" default:"-1" desc:"replicas of a topic that is created at start; -1 is the broker's default (use 3 in production)"`
	KafkaTLS          bool     `envconfig:"KAFKA_TLS" default:"false" desc:"connect with TLS"`
	KafkaCAFile       string   `envconfig:"KAFKA_CA_FILE" desc:"PEM file of certificate authorities that are trusted for Kafka in addition to those of the system"`
	KafkaSASL         string   `envconfig:"KAFKA_SASL" desc:"mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: none. PLAIN sends the password, so it needs KAFKA_TLS"`
	KafkaUsername     string   `envconfig:"KAFKA_USERNAME" desc:"SASL user; required with KAFKA_SASL"`
	KafkaPassword     Secret   `envconfig:"KAFKA_PASSWORD" desc:"SASL password; required with KAFKA_SASL"`
	KafkaInsecure     bool     `envconfig:"KAFKA_INSECURE" default:"false" desc:"accept PLAIN without TLS, by which the password can be read from the traffic"`
}

// The values of KAFKA_SASL.
const (
	SASLPlain    = "PLAIN"
	SASLScram256 = "SCRAM-SHA-256"
	SASLScram512 = "SCRAM-SHA-512"
)

// Validate implements the check that Load calls.
func (k Kafka) Validate() []error {
	errs := append(Addresses("KAFKA_BROKERS", k.KafkaBrokers), k.validateTopics()...)
	if k.TopicPartitions < 1 || k.TopicPartitions > 1024 {
		errs = append(errs, Errorf("KAFKA_TOPIC_PARTITIONS", "must be 1 to 1024"))
	}
	if k.ReplicationFactor < 1 && k.ReplicationFactor != -1 {
		errs = append(errs, Errorf("KAFKA_REPLICATION_FACTOR", "must be at least 1, or -1"))
	}
	if k.KafkaCAFile != "" && !k.KafkaTLS {
		errs = append(errs, Errorf("KAFKA_CA_FILE", "needs KAFKA_TLS"))
	}
	switch k.KafkaSASL {
	case "":
		if k.KafkaUsername != "" || k.KafkaPassword != "" {
			errs = append(errs, Errorf("KAFKA_SASL", "is required with a user or a password"))
		}
	case SASLPlain, SASLScram256, SASLScram512:
		if k.KafkaUsername == "" {
			errs = append(errs, Errorf("KAFKA_USERNAME", "is required with KAFKA_SASL"))
		}
		if k.KafkaPassword == "" {
			errs = append(errs, Errorf("KAFKA_PASSWORD", "is required with KAFKA_SASL"))
		}
		if k.KafkaSASL == SASLPlain && !k.KafkaTLS && !k.KafkaInsecure {
			errs = append(errs, Errorf("KAFKA_SASL",
				"PLAIN needs KAFKA_TLS, or KAFKA_INSECURE=true to send the password in clear text"))
		}
	default:
		errs = append(errs, Errorf("KAFKA_SASL", "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"))
	}
	return errs
}

func (k Kafka) validateTopics() []error {
	var errs []error
	for variable, name := range map[string]string{"KAFKA_SIGNALS_TOPIC": k.SignalsTopic,
		"KAFKA_DECISIONS_TOPIC": k.DecisionsTopic} {
		if !topicName.MatchString(name) || name == "." || name == ".." {
			errs = append(errs, Errorf(variable, "must be 1 to 249 characters of A-Z a-z 0-9 . _ -"))
		}
	}
	if strings.ReplaceAll(k.SignalsTopic, ".", "_") == strings.ReplaceAll(k.DecisionsTopic, ".", "_") {
		errs = append(errs, Errorf("KAFKA_DECISIONS_TOPIC",
			"must differ from KAFKA_SIGNALS_TOPIC in more than . and _, which are one in Kafka's metrics"))
	}
	return errs
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// Operations is the fragment of all processes: the operations port and the log.
type Operations struct {
	AdminListen string     `envconfig:"ADMIN_LISTEN" default:":9090" desc:"address of the operations port: /metrics /livez /readyz /version, and of edge and relay /debug/top"`
	AdminPprof  bool       `envconfig:"ADMIN_PPROF" default:"false" desc:"serve /debug/pprof on the operations port"`
	LogLevel    slog.Level `envconfig:"LOG_LEVEL" default:"INFO" desc:"DEBUG, INFO, WARN or ERROR"`
}

// Validate implements the check that Load calls.
func (o Operations) Validate() []error { return Listen("ADMIN_LISTEN", o.AdminListen) }

// Telemetry is the fragment of all services: Operations and tracing.
type Telemetry struct {
	Operations
	TraceEndpoint string  `envconfig:"TRACE_ENDPOINT" desc:"base URL of an OpenTelemetry collector (OTLP over HTTP in JSON, not gRPC: http://collector:4318), to which /v1/traces is added; empty: no tracing. OTEL_RESOURCE_ATTRIBUTES adds attributes of the process"`
	TraceRatio    float64 `envconfig:"TRACE_RATIO" default:"0.01" desc:"share of the requests that are traced, 0 to 1; a request with a traceparent continues that trace, and keeps its sender's decision except at the edge, where strangers send it"`
}

// Validate implements the check that Load calls.
func (t Telemetry) Validate() []error {
	var errs []error
	if u, err := url.Parse(t.TraceEndpoint); t.TraceEndpoint != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "") {
		errs = append(errs, Errorf("TRACE_ENDPOINT",
			"must be an http or https URL without credentials and query"))
	}
	if !(t.TraceRatio >= 0 && t.TraceRatio <= 1) {
		errs = append(errs, Errorf("TRACE_RATIO", "must be 0 to 1"))
	}
	return errs
}

// ServerTLS is the fragment of the services whose HTTP listener can have TLS.
type ServerTLS struct {
	CertFile string `envconfig:"TLS_CERT_FILE" desc:"PEM file with the certificate of the HTTP listener, and those of its intermediate authorities behind it; with TLS_KEY_FILE the listener speaks TLS (1.2 or newer) and nothing else. Both files are read again within ten seconds after a change, and a pair that cannot be used leaves the old one in service. The operations port has no TLS"`
	KeyFile  string `envconfig:"TLS_KEY_FILE" desc:"PEM file with the private key of that certificate"`
}

// Enabled reports whether the listener has TLS.
func (s ServerTLS) Enabled() bool { return s.CertFile != "" }

// Validate implements the check that Load calls.
func (s ServerTLS) Validate() []error {
	if (s.CertFile == "") == (s.KeyFile == "") {
		return nil
	}
	return []error{Errorf("TLS_CERT_FILE", "and TLS_KEY_FILE are set together or not at all")}
}

// Listen checks that addr is host:port; the host may be empty. The variable is named without its prefix.
func Listen(variable, addr string) []error {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return []error{Errorf(variable, "must be host:port")}
	}
	return nil
}

// Addresses checks that each of a list is host:port with both parts.
func Addresses(variable string, addrs []string) []error {
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(strings.TrimSpace(addr))
		if err != nil || host == "" || port == "" {
			return []error{Errorf(variable, "each must be host:port")}
		}
	}
	return nil
}

func notNegative(variable string, d time.Duration) []error {
	if d < 0 {
		return []error{Errorf(variable, "must not be negative")}
	}
	return nil
}
