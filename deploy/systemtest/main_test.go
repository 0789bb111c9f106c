package systemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/services"
)

// house is what all scenarios share: built binaries, addresses of the backing services, a migrated database to clone.
type house struct {
	project      project.Project
	plain, chaos string // folders of binaries; chaos ones have crash points and the race detector
	server       string // PostgreSQL URL of the superuser
	template     string
	redis, kafka string
	keyset       string
	logs         string
}

var shared *house

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "system tests:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	server, redis, kafka := os.Getenv("TEST_DATABASE_URL"), os.Getenv("TEST_REDIS_ADDR"), os.Getenv("TEST_KAFKA_BROKERS")
	if server == "" || redis == "" || kafka == "" {
		if os.Getenv("REQUIRE_REAL") == "1" {
			return 1, errors.New("TEST_DATABASE_URL, TEST_REDIS_ADDR and TEST_KAFKA_BROKERS are required: use `make test`")
		}
		fmt.Fprintln(os.Stderr, "SKIPPED: the system tests need PostgreSQL, Redis and Kafka: use `make test`")
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "storefront-systemtest-")
	if err != nil {
		return 1, err
	}
	h := &house{server: server, redis: redis, kafka: kafka, logs: filepath.Join(dir, "logs"), keyset: filepath.Join(dir, "keyset.json")}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if err := h.prepare(ctx, dir); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, h.exec(context.Background(), "DROP DATABASE "+h.template)) }()
	shared = h
	told := &tattler{next: http.DefaultTransport}
	http.DefaultClient.Transport = told // of package services
	wire.Transport = &tattler{next: wire.Transport, report: told}
	code = m.Run()
	if err := told.err(); err != nil {
		return max(code, 1), err
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs of the processes:", h.logs)
		return code, nil
	}
	return code, os.RemoveAll(dir)
}

func (h *house) prepare(ctx context.Context, dir string) (err error) {
	if h.project, err = project.Find(); err != nil {
		return err
	}
	if err := os.MkdirAll(h.logs, 0o755); err != nil {
		return err
	}
	if h.plain, err = h.build(ctx, filepath.Join(dir, "plain")); err != nil {
		return err
	}
	if h.chaos, err = h.build(ctx, filepath.Join(dir, "chaos"), "-race", "-tags", "chaos"); err != nil {
		return err
	}
	h.template = fmt.Sprintf("systemtest_%d", os.Getpid())
	if err := h.exec(ctx, "CREATE DATABASE "+h.template); err != nil {
		return err
	}
	return h.migrate(ctx, h.server, h.template)
}

func (h *house) build(ctx context.Context, dir string, flags ...string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	args := append(append([]string{"build"}, flags...), "-o", dir+"/",
		"storefront.internal/edge", "storefront.internal/control", "storefront.internal/engine-relay")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = h.project.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return dir, nil
}

// migrate brings a database to the present schema by the real command, and makes the login roles.
func (h *house) migrate(ctx context.Context, server, database string) error {
	url, err := services.WithDatabase(server, database)
	if err != nil {
		return err
	}
	s := h.settings(url)
	if err := s.EnsureKeyset(ctx); err != nil {
		return err
	}
	if _, err := s.Once(ctx, s.Migrate(), "migrate", "up"); err != nil {
		return err
	}
	return services.EnsureLogins(ctx, url, "")
}

func (h *house) exec(ctx context.Context, sql string) error {
	c, err := pgx.Connect(ctx, h.server)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, sql)
	return errors.Join(err, c.Close(ctx))
}

// settings of a deployment on the shared backing services; tests change what they need.
func (h *house) settings(database string) services.Settings {
	return services.Settings{
		Bin: h.plain, Database: database, RedisAddr: h.redis, KafkaBrokers: h.kafka, ErrorsBase: "https://errors.example/",
		DecisionKeys: "k1:" + strings.Repeat("QUJD", 11), KeysetFile: h.keyset,
		ConnectorToken: canary + strings.Repeat("connector-", 4), BackendToken: canary + strings.Repeat("backend-", 5),
		EngineToken: canary + strings.Repeat("engine-", 5), Pepper: canary + strings.Repeat("pepper-", 5), EngineSecret: canary + "engine-secret-1",
	}
}

// soak picks the full length under `make soak`.
func soak(short, full int) int {
	if soaking() {
		return full
	}
	return short
}

func soaking() bool { return os.Getenv("SOAK") == "1" }
