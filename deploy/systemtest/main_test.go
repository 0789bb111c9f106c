package systemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/shared/testkit"
)

// suite is what all scenarios share: built binaries, addresses of the stores, a migrated database to clone.
type suite struct {
	project      project.Project
	plain, chaos string // folders of binaries; the chaos ones have failpoints and the race detector
	server       string // PostgreSQL URL of the superuser
	template     string // name of the database that every deployment's is a copy of
	redis, kafka string
	keyset       string
	logs         string
}

var shared *suite

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "system tests:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	server, redis, kafka := os.Getenv("TEST_DATABASE_URL"), os.Getenv("TEST_REDIS_ADDR"),
		os.Getenv("TEST_KAFKA_BROKERS")
	if server == "" || redis == "" || kafka == "" {
		if os.Getenv("REQUIRE_REAL") == "1" {
			return 1, errors.New("TEST_DATABASE_URL, TEST_REDIS_ADDR and TEST_KAFKA_BROKERS are required: " +
				"use `make test`")
		}
		fmt.Fprintln(os.Stderr, "SKIPPED: the system tests need PostgreSQL, Redis and Kafka: use `make test`")
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "storefront-systemtest-")
	if err != nil {
		return 1, err
	}
	h := &suite{server: server, redis: redis, kafka: kafka, logs: filepath.Join(dir, "logs"),
		keyset: filepath.Join(dir, "keyset.json")}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if err := h.prepare(ctx, dir); err != nil {
		return 1, err
	}
	defer func() {
		err = errors.Join(err, stack.Exec(context.Background(), h.server, "DROP DATABASE "+h.template))
	}()
	shared = h
	testkit.OwnTransport()
	found := &leakDetector{next: http.DefaultClient.Transport}
	http.DefaultClient.Transport = found
	httpClient.Transport = &leakDetector{next: httpClient.Transport, report: found}
	code = m.Run()
	if err := found.err(); err != nil {
		return max(code, 1), err
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs of the processes:", h.logs)
		return code, nil
	}
	return code, os.RemoveAll(dir)
}

func (h *suite) prepare(ctx context.Context, dir string) (err error) {
	if h.project, err = project.Find(); err != nil {
		return err
	}
	if err := os.MkdirAll(h.logs, 0o755); err != nil {
		return err
	}
	h.plain, h.chaos = filepath.Join(dir, "plain"), filepath.Join(dir, "chaos")
	for folder, flags := range map[string][]string{h.plain: nil, h.chaos: {"-race", "-tags", "chaos"}} {
		if err := stack.Build(ctx, h.project, folder, flags, "edge", "control", "engine-relay"); err != nil {
			return err
		}
	}
	h.template = fmt.Sprintf("systemtest_%d", os.Getpid())
	url, err := stack.WithDatabase(h.server, h.template)
	if err != nil {
		return err
	}
	return h.settings(url).Prepare(ctx)
}

// settings are those of a deployment on the shared stores; scenarios change what they need.
func (h *suite) settings(database string) stack.Settings {
	return stack.Settings{
		Bin: h.plain, Database: database, RedisAddr: h.redis, KafkaBrokers: h.kafka,
		ErrorsBase:   "https://errors.example/",
		DecisionKeys: "k1:" + strings.Repeat("QUJD", 11), KeysetFile: h.keyset,
		ConnectorToken: canary + strings.Repeat("connector-", 4),
		BackendToken:   canary + strings.Repeat("backend-", 5),
		EngineToken:    canary + strings.Repeat("engine-", 5), Pepper: canary + strings.Repeat("pepper-", 5),
		EngineSecret: canary + "engine-secret-1",
	}
}

// soak is the full length under `make soak`, else the short one.
func soak(short, full int) int {
	if soaking() {
		return full
	}
	return short
}

func soaking() bool { return os.Getenv("SOAK") == "1" }
