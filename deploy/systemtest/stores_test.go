package systemtest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"storefront.internal/deploy/local/backing"
	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/postgres"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/redis"
	"storefront.internal/deploy/local/services"
)

// stores are a PostgreSQL, a Redis and a Kafka of one test's own, which it may kill and start again on the same ports.
type stores struct {
	t        *testing.T
	pgConfig postgres.Config
	pg       *postgres.Server
	reConfig redis.Config
	redis    *redis.Server
	kaConfig kafka.Config
	kafka    *kafka.Broker
}

func newStores(t *testing.T) *stores {
	t.Helper()
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "storefront-stores-") // not below the test's own, which PostgreSQL's user cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	bin, _, err := backing.PostgresBinaries(ctx, shared.project, t.Logf)
	check(t, err)
	home, err := postgres.Home(filepath.Join(dir, "postgres"))
	check(t, err)
	libs, err := kafka.Fetch(ctx, filepath.Join(shared.project.Cache(), "kafka"))
	unavailable(t, err)
	server, found := redis.Find()
	if !found {
		unavailable(t, os.ErrNotExist)
	}
	s := &stores{
		t:        t,
		pgConfig: postgres.Config{Bin: bin, Dir: home, Port: port(t), Log: io.Discard},
		reConfig: redis.Config{Path: server, Dir: folder(t, dir, "redis"), Port: port(t), Log: io.Discard},
		kaConfig: kafka.Config{Libs: libs, Dir: folder(t, dir, "kafka"), Port: port(t), ControllerPort: port(t), Log: io.Discard},
	}
	s.startPostgres()
	t.Cleanup(func() { _ = s.pg.Close() })
	s.startRedis()
	t.Cleanup(func() { _ = s.redis.Close() })
	s.startKafka()
	t.Cleanup(func() { _ = s.kafka.Close() })
	return s
}

func (s *stores) startPostgres() {
	s.t.Helper()
	var err error
	s.pg, err = postgres.Start(context.Background(), s.pgConfig)
	check(s.t, err)
}

func (s *stores) startRedis() {
	s.t.Helper()
	var err error
	s.redis, err = redis.Start(context.Background(), s.reConfig)
	check(s.t, err)
}

func (s *stores) startKafka() {
	s.t.Helper()
	var err error
	s.kafka, err = kafka.Start(context.Background(), s.kaConfig)
	check(s.t, err)
}

// topology is a deployment on these stores.
func (s *stores) topology() *topology {
	s.t.Helper()
	ctx := context.Background()
	server := s.pg.URL("postgres")
	check(s.t, services.EnsureDatabase(ctx, server, "storefront"))
	check(s.t, shared.migrate(ctx, server, "storefront"))
	x := &topology{t: s.t, name: "st_" + randomHex(6), settings: shared.settings(s.pg.URL("storefront")), group: "private"}
	x.settings.RedisAddr, x.settings.KafkaBrokers = s.redis.Addr(), s.kafka.Addr()
	x.open()
	x.startControl()
	return x
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unavailable skips where what a scenario needs cannot be had, and fails where it is required.
func unavailable(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("REQUIRE_REAL") == "1" {
		t.Fatalf("REQUIRE_REAL=1: %v", err)
	}
	t.Skipf("SKIPPED: needs what is not here: %v", err)
}

func port(t *testing.T) int {
	t.Helper()
	p, err := project.FreePort()
	check(t, err)
	return p
}

func folder(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	check(t, os.MkdirAll(path, 0o755))
	return path
}
