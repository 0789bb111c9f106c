package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/bench/limit"
	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/services"
)

// stack is one deployment: a database and Redis keys of its own, and a control; the rest is started as needed.
type stack struct {
	b        *testing.B
	name     string
	settings services.Settings
	control  node
	api      services.Internal
	db       *pgx.Conn // the superuser, when it was asked something
}

func newStack(b *testing.B, change ...func(*services.Settings)) *stack {
	b.Helper()
	rows.begin(b)
	server, redis, kafka := os.Getenv("TEST_DATABASE_URL"), os.Getenv("TEST_REDIS_ADDR"), os.Getenv("TEST_KAFKA_BROKERS")
	if server == "" || redis == "" || kafka == "" {
		b.Skip("SKIPPED: needs PostgreSQL, Redis and Kafka: use `make bench`")
	}
	p, err := project.Find()
	check(b, err)
	name := "bench_" + random(6)
	ctx := context.Background()
	check(b, services.EnsureDatabase(ctx, server, name))
	b.Cleanup(func() { drop(b, server, name) })
	url, err := services.WithDatabase(server, name)
	check(b, err)
	s := &stack{b: b, name: name, settings: services.Settings{
		Bin: p.Bin(), Database: url, RedisAddr: redis, KafkaBrokers: kafka, ErrorsBase: "https://errors.example/",
		DecisionKeys: "k1:" + strings.Repeat("QUJD", 11), KeysetFile: filepath.Join(b.TempDir(), "keyset.json"),
		ConnectorToken: random(20), BackendToken: random(20), EngineToken: random(20), Pepper: random(20),
	}}
	for _, f := range change {
		f(&s.settings)
	}
	check(b, s.settings.EnsureKeyset(ctx))
	_, err = s.settings.Once(ctx, s.settings.Migrate(), "migrate", "up")
	check(b, err)
	check(b, services.EnsureLogins(ctx, url, ""))
	check(b, services.SkipBacklog(ctx, kafka, name))
	s.control = s.start("control", func(listen, admin string) []string {
		return append(s.settings.Control(listen, admin), "CONTROL_REDIS_PREFIX="+name+":", "CONTROL_ADMIN_PPROF=true")
	})
	s.api = services.Internal{BaseURL: "http://" + s.control.address, ConnectorToken: s.settings.ConnectorToken, BackendToken: s.settings.BackendToken}
	return s
}

// relay starts a relay.
func (s *stack) relay(extra ...string) node {
	s.b.Helper()
	return s.start("engine-relay", func(_, admin string) []string {
		return append(append(s.settings.Relay(admin), "RELAY_KAFKA_GROUP="+s.name, "RELAY_ADMIN_PPROF=true"), extra...)
	})
}

// node is a running process that listens.
type node struct {
	*process.Process
	address, admin string
}

// cpu is the processor time that the process has used.
func (n node) cpu(b *testing.B) time.Duration {
	b.Helper()
	return cpuOf(b, n.Pid())
}

// baseEdge starts the edge of the commit that this one is compared with, when there is one: `make bench-compare`.
func (s *stack) baseEdge(extra ...string) (n node, found bool) {
	s.b.Helper()
	bin := os.Getenv("BENCH_BASE")
	if bin == "" {
		return node{}, false
	}
	base := *s
	base.settings.Bin = bin
	return base.edge(extra...), true
}

// edge starts an edge.
func (s *stack) edge(extra ...string) node {
	s.b.Helper()
	return s.start("edge", func(listen, admin string) []string {
		return append(append(s.settings.Edge(listen, admin), "EDGE_REDIS_PREFIX="+s.name+":", "EDGE_ADMIN_PPROF=true"), extra...)
	})
}

func (s *stack) start(name string, env func(listen, admin string) []string) node {
	s.b.Helper()
	listen, admin := free(s.b), free(s.b)
	p, err := s.settings.Start(name, env(listen, admin), io.Discard)
	check(s.b, err)
	s.b.Cleanup(func() { stop(s.b, p) })
	check(s.b, services.Ready(context.Background(), p, admin, 40*time.Second))
	return node{p, listen, admin}
}

// static starts the bare handler.
func (s *stack) static(body []byte) node {
	s.b.Helper()
	path := filepath.Join(s.b.TempDir(), "body")
	check(s.b, os.WriteFile(path, body, 0o600))
	return s.limit(limit.Static, limit.Body+"="+path)
}

// limit starts one of the programs that the services are measured against.
func (s *stack) limit(name string, env ...string) node {
	s.b.Helper()
	listen := free(s.b)
	p, err := process.Start(process.Spec{
		Name: name, Path: os.Args[0], Env: append(append(os.Environ(), limit.Program+"="+name, limit.Listen+"="+listen), env...),
	})
	check(s.b, err)
	s.b.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(s.b, p.WaitReady(ctx, func(context.Context) error {
		c, err := net.Dial("tcp", listen)
		if err != nil {
			return err
		}
		return c.Close()
	}))
	return node{p, listen, ""}
}

func stop(b *testing.B, p *process.Process) {
	if err := p.Stop(syscall.SIGTERM, 30*time.Second); err != nil {
		b.Error(err)
	}
}

func drop(b *testing.B, server, name string) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, server)
	check(b, err)
	_, err = c.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	check(b, err)
	check(b, c.Close(ctx))
}

func free(b *testing.B) string {
	b.Helper()
	port, err := project.FreePort()
	check(b, err)
	return project.Loopback(port)
}

func random(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// number asks the database for one number.
func (s *stack) number(query string, args ...any) (n int) {
	s.b.Helper()
	ctx := context.Background()
	if s.db == nil {
		var err error
		s.db, err = pgx.Connect(ctx, s.settings.Database)
		check(s.b, err)
		s.b.Cleanup(func() { _ = s.db.Close(ctx) })
	}
	check(s.b, s.db.QueryRow(ctx, query, args...).Scan(&n))
	return n
}
