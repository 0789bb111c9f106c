package settings

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

type sample struct {
	Postgres
	Redis
	Telemetry
	Wait   time.Duration `envconfig:"WAIT" default:"3s" desc:"a wait"`
	Tokens []Secret      `envconfig:"TOKENS" desc:"a | list"`
	Need   string        `envconfig:"NEED" required:"true"`
}

func (s sample) Validate() []error {
	if s.Wait > time.Hour {
		return []error{Errorf("WAIT", "too long")}
	}
	return nil
}

func good(extra ...string) []string {
	return append([]string{"T_DATABASE_URL=postgres://u:p@h/d", "T_REDIS_ADDRS=a:1,b:2", "T_NEED=x",
		"OTHER_THING=1"}, extra...)
}

func TestLoadReadsValuesAndDefaults(t *testing.T) {
	t.Parallel()
	cfg := sample{}
	cfg.StatementTimeout = 2 * time.Second
	if err := Load("T", &cfg, good("T_LOG_LEVEL=warn", "T_TOKENS=a,b", "T_WAIT=")); err != nil {
		t.Fatal(err)
	}
	if cfg.DatabaseURL.Reveal() != "postgres://u:p@h/d" || len(cfg.RedisAddrs) != 2 ||
		cfg.Wait != 3*time.Second || cfg.MaxConns != 16 {
		t.Fatalf("got %+v", cfg)
	}
	if cfg.LogLevel != slog.LevelWarn || cfg.Tokens[1].Reveal() != "b" ||
		cfg.StatementTimeout != 2*time.Second {
		t.Fatalf("got %+v", cfg)
	}
}

func TestLoadReportsAllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	env := []string{"T_DATABASE_URL=", "T_WAIT=soon", "T_DATABASE_MAX_CONNS=many", "T_TYPO=1",
		"T_REDIS_TLS=perhaps", "REDIS_ADDRS=a:1", "NEED=unprefixed"}
	err := Load("T", &sample{}, env)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"T_DATABASE_URL: is required", "T_WAIT: cannot",
		"T_DATABASE_MAX_CONNS: cannot", "T_TYPO: unknown", "T_REDIS_TLS: cannot",
		"T_REDIS_ADDRS: is required", "T_NEED: is required"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestLoadValidatesFragmentsAndWhole(t *testing.T) {
	t.Parallel()
	err := Load("T", &sample{}, good("T_WAIT=2h", "T_ADMIN_LISTEN=nonsense", "T_DATABASE_MAX_CONNS=0",
		"T_REDIS_ADDRS=a"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"T_WAIT: too long", "T_ADMIN_LISTEN: must be host:port",
		"T_DATABASE_MAX_CONNS: must be 1", "T_REDIS_ADDRS: each"} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q does not occur exactly once in:\n%v", want, err)
		}
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	s := struct{ S Secret }{"hunter2"}
	j, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "s", s.S, "whole", s)
	for _, out := range []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %s %q %x", s, s, s.S, s.S, s.S),
		string(j), log.String()} {
		if strings.Contains(out, "hunter2") || strings.Contains(out, "68756e74657232") {
			t.Errorf("printed: %s", out)
		}
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	cfg := sample{}
	cfg.StatementTimeout = 2 * time.Second
	got := Reference("T", &cfg)
	for _, want := range []string{
		"| `T_DATABASE_URL` | secret |  | yes |", "| `T_WAIT` | duration | `3s` | no | a wait |", `a \| list`,
		"| `T_DATABASE_STATEMENT_TIMEOUT` | duration | `2s` |", "| `T_REDIS_ADDRS` | list of text |",
		"| `T_LOG_LEVEL` | log level | `INFO` |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestTraceSettings(t *testing.T) {
	t.Parallel()
	for _, sound := range []string{"T_TRACE_ENDPOINT=", "T_TRACE_ENDPOINT=http://collector:4318",
		"T_TRACE_ENDPOINT=https://otlp.example.com/base", "T_TRACE_RATIO=0", "T_TRACE_RATIO=1"} {
		if err := Load("T", &sample{}, good(sound)); err != nil {
			t.Errorf("%s: %v", sound, err)
		}
	}
	for _, bad := range []string{"T_TRACE_ENDPOINT=collector:4318", "T_TRACE_ENDPOINT=grpc://collector:4317",
		"T_TRACE_ENDPOINT=http://user:hunter2@collector", "T_TRACE_ENDPOINT=http://c/?key=hunter2",
		"T_TRACE_RATIO=1.1", "T_TRACE_RATIO=-1", "T_TRACE_RATIO=NaN"} {
		name, _, _ := strings.Cut(bad, "=")
		if err := Load("T", &sample{}, good(bad)); err == nil || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestKafkaSettings(t *testing.T) {
	t.Parallel()
	var cfg struct{ Kafka }
	load := func(environ ...string) error {
		return Load("T", &cfg, append([]string{"T_KAFKA_BROKERS=a:1"}, environ...))
	}
	for _, sasl := range []string{SASLPlain, SASLScram256, SASLScram512} {
		if err := load("T_KAFKA_TLS=true", "T_KAFKA_CA_FILE=/ca.crt", "T_KAFKA_SASL="+sasl,
			"T_KAFKA_USERNAME=u", "T_KAFKA_PASSWORD=p"); err != nil {
			t.Error(err)
		}
	}
	cfg.Kafka = Kafka{}
	if err := load("T_KAFKA_INSECURE=true", "T_KAFKA_SASL=PLAIN", "T_KAFKA_USERNAME=u",
		"T_KAFKA_PASSWORD=p"); err != nil {
		t.Error(err)
	}
	for says, environ := range map[string][]string{
		"T_KAFKA_SASL: must be": {"T_KAFKA_SASL=GSSAPI", "T_KAFKA_USERNAME=u", "T_KAFKA_PASSWORD=p"},
		"T_KAFKA_SASL: PLAIN":   {"T_KAFKA_SASL=PLAIN", "T_KAFKA_USERNAME=u", "T_KAFKA_PASSWORD=p"},
		"T_KAFKA_USERNAME: is":  {"T_KAFKA_SASL=PLAIN", "T_KAFKA_PASSWORD=p"},
		"T_KAFKA_PASSWORD: is":  {"T_KAFKA_SASL=PLAIN", "T_KAFKA_USERNAME=u"},
		"T_KAFKA_SASL: is":      {"T_KAFKA_PASSWORD=p"},
		"T_KAFKA_CA_FILE: ":     {"T_KAFKA_CA_FILE=/ca.crt"},

		"T_KAFKA_SIGNALS_TOPIC: must be 1 to 249":   {"T_KAFKA_SIGNALS_TOPIC=a/b"},
		"T_KAFKA_DECISIONS_TOPIC: must be 1 to 249": {"T_KAFKA_DECISIONS_TOPIC=.."},
		"T_KAFKA_DECISIONS_TOPIC: must differ":      {"T_KAFKA_DECISIONS_TOPIC=storefront_signals.v1"},
	} {
		cfg.Kafka = Kafka{}
		if err := load(environ...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", environ, err)
		}
	}
}

// A brace in the prefix would be the hash tag of every key, and a star would open an ACL's pattern.
func TestRedisPrefix(t *testing.T) {
	t.Parallel()
	var cfg struct{ Redis }
	for prefix, valid := range map[string]bool{"": true, "shop-1:": true, "eu:shop_1.a:": true,
		"{sf}:": false, "sf*": false, "sf[a]": false, "s f": false, strings.Repeat("a", 65): false} {
		cfg.Redis = Redis{}
		err := Load("T", &cfg, []string{"T_REDIS_ADDRS=a:1", "T_REDIS_PREFIX=" + prefix})
		if (err == nil) != valid || !valid && !strings.Contains(err.Error(), "T_REDIS_PREFIX: must be") {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

// A variable that cannot be read hides no error of another group and is named once.
func TestConversionAndValidationErrorsAreReportedTogether(t *testing.T) {
	t.Parallel()
	err := Load("T", &sample{}, []string{"T_DATABASE_URL=postgres://h/d", "T_REDIS_ADDRS=nonsense",
		"T_DATABASE_MAX_CONNS=many", "T_WAIT=2h", "T_ADMIN_LISTEN=nowhere", "T_NEED=x"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"4 error(s)", "T_REDIS_ADDRS: each", "T_DATABASE_MAX_CONNS: cannot",
		"T_WAIT: too long", "T_ADMIN_LISTEN: must"} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q does not occur exactly once in:\n%v", want, err)
		}
	}
}
