package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/bench/limit"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// deployment is the deployment of one benchmark: a database, a consumer group and Redis keys of its own, and
// a control; the rest is started as needed.
type deployment struct {
	*stack.Deployment
	b         *testing.B
	name      string
	control   node
	api       client.Internal
	db        *pgx.Conn // as superuser; nil until it is used
	processes int
}

const readyWithin = 40 * time.Second

func newDeployment(b *testing.B) *deployment {
	b.Helper()
	s := emptyDeployment(b)
	s.prepare()
	return s
}

// emptyDeployment is a deployment without a database and without processes.
func emptyDeployment(b *testing.B) *deployment {
	b.Helper()
	rows.begin(b)
	server, redis, kafka := os.Getenv("TEST_DATABASE_URL"), os.Getenv("TEST_REDIS_ADDR"),
		os.Getenv("TEST_KAFKA_BROKERS")
	if server == "" || redis == "" || kafka == "" {
		b.Skip("SKIPPED: needs PostgreSQL, Redis and Kafka: use `make bench`")
	}
	p, err := project.Find()
	check(b, err)
	name := "bench_" + random(6)
	url, err := stack.WithDatabase(server, name)
	check(b, err)
	s := &deployment{b: b, name: name,
		Deployment: stack.New(b.Context(), stack.Config{Say: b.Logf, Settings: stack.Settings{
			Bin: p.Bin(), Database: url, RedisAddr: redis, KafkaBrokers: kafka,
			ErrorsBase:     "https://errors.example/",
			DecisionKeys:   "k1:" + strings.Repeat("QUJD", 11),
			KeysetFile:     filepath.Join(b.TempDir(), "keyset.json"),
			ConnectorToken: random(20), BackendToken: random(20), EngineToken: random(20), Pepper: random(20),
		}})}
	b.Cleanup(func() { dropDatabase(b, url) })
	b.Cleanup(func() { check(b, s.Close(30*time.Second)) })
	return s
}

// prepare makes the database and starts control, with more settings.
func (s *deployment) prepare(more ...string) {
	s.b.Helper()
	ctx := context.Background()
	check(s.b, s.Settings.Prepare(ctx))
	check(s.b, stack.SkipBacklog(ctx, s.Settings.KafkaBrokers, s.name))
	s.control = s.start(s.Control("control",
		append([]string{"CONTROL_REDIS_PREFIX=" + s.name + ":", "CONTROL_ADMIN_PPROF=true"}, more...)...))
	s.api = s.Internal(s.control.Process)
}

// node is a process that is measured.
type node struct {
	*stack.Process
	address string // host:port of its listener
}

// cpu is the processor time that the process has used.
func (n node) cpu(b *testing.B) time.Duration {
	b.Helper()
	return cpuOf(b, n.Pid())
}

// start starts a process that was added to the deployment.
func (s *deployment) start(p *stack.Process, err error) node {
	s.b.Helper()
	check(s.b, err)
	check(s.b, s.Start(context.Background(), readyWithin, p))
	return node{p, strings.TrimPrefix(p.URL, "http://")}
}

// nextName names a process.
func (s *deployment) nextName(program string) string {
	s.processes++
	return program + "-" + string(rune('a'+s.processes))
}

// relay starts a relay.
func (s *deployment) relay(more ...string) node {
	s.b.Helper()
	return s.start(s.Relay(s.nextName("relay"),
		append([]string{"RELAY_KAFKA_GROUP=" + s.name, "RELAY_ADMIN_PPROF=true"}, more...)...))
}

// edge starts an edge.
func (s *deployment) edge(more ...string) node {
	s.b.Helper()
	return s.start(s.addEdge(more))
}

func (s *deployment) addEdge(more []string) (*stack.Process, error) {
	return s.Edge(s.nextName("edge"),
		append([]string{"EDGE_REDIS_PREFIX=" + s.name + ":", "EDGE_ADMIN_PPROF=true"}, more...)...)
}

// baseEdge starts the edge of another commit to compare with: `make bench-compare` sets BENCH_BASE to its
// binaries.
func (s *deployment) baseEdge(more ...string) (n node, found bool) {
	s.b.Helper()
	bin := os.Getenv("BENCH_BASE")
	if bin == "" {
		return node{}, false
	}
	p, err := s.addEdge(more)
	check(s.b, err)
	p.SetBinaries(bin)
	p.SetEnv(s.newSettings(bin)...)
	return s.start(p, nil), true
}

// newSettings returns the settings of today's edge that the other commit's does not know and would refuse.
func (s *deployment) newSettings(bin string) (names []string) {
	s.b.Helper()
	p, err := project.Find()
	check(s.b, err)
	documented := regexp.MustCompile(`EDGE_[A-Z_]+`)
	before, err := os.ReadFile(filepath.Join(filepath.Dir(bin), "edge", "CONFIG.md"))
	check(s.b, err)
	now, err := os.ReadFile(filepath.Join(p.Root, "edge", "CONFIG.md"))
	check(s.b, err)
	known := documented.FindAllString(string(before), -1)
	for _, name := range documented.FindAllString(string(now), -1) {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}

// static starts the bare handler.
func (s *deployment) static(body []byte) node {
	s.b.Helper()
	path := filepath.Join(s.b.TempDir(), "body")
	check(s.b, os.WriteFile(path, body, 0o600))
	return s.limit(limit.Static, limit.Body+"="+path)
}

// limit starts one of the programs that the services are compared with: this test binary, which acts as the
// program.
func (s *deployment) limit(name string, env ...string) node {
	s.b.Helper()
	self, err := os.Executable()
	check(s.b, err)
	settings := s.Settings
	settings.Bin = filepath.Dir(self)
	return s.start(s.Add(stack.Program{Name: s.nextName(name), Binary: filepath.Base(self),
		Settings: settings, NoAdmin: true,
		Env: func(_ stack.Settings, a stack.Address) []string {
			return append([]string{limit.Program + "=" + name, limit.Listen + "=" + a.Listen}, env...)
		}}))
}

// stop ends a process in order.
func stop(b *testing.B, n node) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	check(b, n.Stop(ctx))
}

// dropDatabase drops the database of a URL.
func dropDatabase(b *testing.B, url string) {
	b.Helper()
	cfg, err := pgx.ParseConfig(url)
	check(b, err)
	server, err := stack.WithDatabase(url, "postgres")
	check(b, err)
	check(b, stack.Exec(context.Background(), server, "DROP DATABASE IF EXISTS "+cfg.Database+
		" WITH (FORCE)"))
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
func (s *deployment) number(query string, args ...any) (n int) {
	s.b.Helper()
	ctx := context.Background()
	if s.db == nil {
		var err error
		s.db, err = pgx.Connect(ctx, s.Settings.Database)
		check(s.b, err)
		s.b.Cleanup(func() { _ = s.db.Close(ctx) })
	}
	check(s.b, s.db.QueryRow(ctx, query, args...).Scan(&n))
	return n
}
