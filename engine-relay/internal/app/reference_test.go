package app

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"storefront.internal/shared/settings"
)

func TestReferencesAreUpToDate(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"../../CONFIG.md": ConfigReference(),
		"../../METRICS.md": MetricsReference()} {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is stale; run go generate ./internal/app", file)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	required := []string{
		"RELAY_DATABASE_URL=postgres://u:p@localhost/d",
		"RELAY_KAFKA_BROKERS=localhost:9092",
	}
	f := func(want string, environ ...string) {
		t.Helper()
		var cfg Config
		err := settings.Load(Prefix, &cfg, append(append([]string(nil), required...), environ...))
		switch {
		case want == "" && err != nil:
			t.Errorf("%v: %v", environ, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v: got %v, want %s", environ, err, want)
		}
	}
	f("")
	f("", "RELAY_ENGINE_URL=http://engine", "RELAY_ENGINE_TOKEN=t")
	f("RELAY_ENGINE_TOKEN", "RELAY_ENGINE_URL=http://engine")
	f("RELAY_ENGINE_URL", "RELAY_ENGINE_URL=engine", "RELAY_ENGINE_TOKEN=t")
	f("RELAY_SINK_WORKERS", "RELAY_SINK_WORKERS=9")
	f("RELAY_SINK_BATCH", "RELAY_SINK_BATCH=1")
	f("RELAY_PARTITION_DAYS", "RELAY_PARTITION_DAYS=1")
	f("RELAY_RETENTION_DAYS", "RELAY_RETENTION_DAYS=7")
	f("", "RELAY_RETENTION_DAYS=8", "RELAY_AUDIT_DAYS=0")
	f("RELAY_AUDIT_DAYS", "RELAY_AUDIT_DAYS=7")
	f("RELAY_BACKOFF_MAX", "RELAY_BACKOFF_MIN=2s", "RELAY_BACKOFF_MAX=1s")
	f("RELAY_LEASE", "RELAY_LEASE=-1s")
	f("RELAY_NOBODY_KNOWS", "RELAY_NOBODY_KNOWS=1")
}

func TestMain_commands(t *testing.T) {
	t.Parallel()
	f := func(code int, out string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := Main(t.Context(), args, nil, &stdout, &stderr); got != code ||
			!strings.Contains(stdout.String()+stderr.String(), out) {
			t.Errorf("%v: code %d, %s%s", args, got, stdout.String(), stderr.String())
		}
	}
	f(exitUsage, "engine-relay [serve]", "fly")
	f(exitOK, "RELAY_KAFKA_GROUP", "reference", "config")
	f(exitOK, "storefront_relay_sink_seconds", "reference", "metrics")
	f(exitFailed, "RELAY_DATABASE_URL", "serve")
}
