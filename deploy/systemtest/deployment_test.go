package systemtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
)

// deployment is a deployment of one scenario: a database, an engine, a consumer group and Redis keys of its
// own, a control, and as many edges and relays as the scenario starts.
type deployment struct {
	*stack.Deployment
	t        *testing.T
	name     string
	group    string
	engine   *checkedEngine
	api      client.Internal
	pool     *pgxpool.Pool // as superuser
	hasRelay bool          // a relay that delivers to the engine runs
	control  *stack.Process
	count    *atomic.Int64 // of the processes, for their names
	edges    *atomic.Int64
}

const readyWithin = 40 * time.Second

// newDeployment makes a deployment on the shared stores and starts its control. Its settings may be changed
// before that.
func newDeployment(t *testing.T, change ...func(*stack.Settings)) *deployment {
	t.Helper()
	x := newDatabase(t)
	for _, f := range change {
		f(&x.Settings)
	}
	skipBacklog(t, x)
	x.startControl()
	return x
}

// newDatabase makes a deployment without processes, with a database of its own.
func newDatabase(t *testing.T) *deployment {
	t.Helper()
	name := "st_" + randomHex(6)
	ctx := context.Background()
	check(t, stack.Exec(ctx, shared.server, "CREATE DATABASE "+name+" TEMPLATE "+shared.template))
	t.Cleanup(func() { check(t, stack.Exec(ctx, shared.server, "DROP DATABASE "+name+" WITH (FORCE)")) })
	url, err := stack.WithDatabase(shared.server, name)
	check(t, err)
	x := emptyDeployment(t, name, shared.settings(url))
	x.open()
	return x
}

func emptyDeployment(t *testing.T, name string, s stack.Settings) *deployment {
	t.Helper()
	logs := folder(t, shared.logs, name)
	x := &deployment{t: t, name: name, group: name, count: &atomic.Int64{}, edges: &atomic.Int64{}}
	x.Deployment = stack.New(t.Context(), stack.Config{Settings: s, LogDir: logs, Say: t.Logf})
	t.Cleanup(func() { check(t, x.Close(30*time.Second)) })
	return x
}

// open starts the engine and connects to the database.
func (x *deployment) open() {
	x.t.Helper()
	x.engine, x.Settings.EngineURL = newEngine(x.t, x.Settings.EngineSecret)
	pool, err := pgxpool.New(context.Background(), x.Settings.Database)
	check(x.t, err)
	x.t.Cleanup(pool.Close)
	x.pool = pool
}

// skipBacklog lets the relays' consumer group begin behind what other scenarios left in the shared topics.
func skipBacklog(t *testing.T, x *deployment) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	check(t, stack.SkipBacklog(ctx, x.Settings.KafkaBrokers, x.group))
}

func (x *deployment) startControl(more ...string) {
	x.t.Helper()
	p, err := x.Control(x.nextName("control"),
		append([]string{"CONTROL_REDIS_PREFIX=" + x.name + ":", "CONTROL_LOG_LEVEL=DEBUG"}, more...)...)
	check(x.t, err)
	x.start(p)
	x.api = x.Internal(p)
	x.control = p
	x.engine.ReadSnapshots(p.URL, x.Settings.EngineToken)
	x.t.Cleanup(x.checkSnapshots)
	x.t.Cleanup(x.checkJobs)
}

// controlAgain starts a control that was killed again.
func (x *deployment) controlAgain() {
	x.t.Helper()
	check(x.t, x.Start(context.Background(), readyWithin, x.control))
}

// edge starts an edge and waits until it is ready. Every second one writes version 2 of the records, as while
// a release is rolled out. More variables win over the ordinary ones.
func (x *deployment) edge(more ...string) *stack.Process {
	x.t.Helper()
	p, err := x.Edge(x.nextName("edge"), append([]string{
		fmt.Sprintf("EDGE_KAFKA_RECORD_VERSION=%d", 2-x.edges.Add(1)%2),
		"EDGE_REDIS_PREFIX=" + x.name + ":", "EDGE_ENGINE_DEADLINE=5s", "EDGE_LOG_LEVEL=DEBUG"}, more...)...)
	check(x.t, err)
	return x.start(p, more...)
}

// relay starts a relay with short back-offs and waits until it is ready.
func (x *deployment) relay(more ...string) *stack.Process {
	x.t.Helper()
	x.hasRelay = x.Settings.EngineURL != ""
	p, err := x.Relay(x.nextName("relay"),
		append([]string{"RELAY_KAFKA_GROUP=" + x.group, "RELAY_BACKOFF_MIN=50ms",
			"RELAY_BACKOFF_MAX=500ms", "RELAY_ENGINE_TIMEOUT=2s", "RELAY_LOG_LEVEL=DEBUG"}, more...)...)
	check(x.t, err)
	return x.start(p, more...)
}

func (x *deployment) nextName(program string) string { return fmt.Sprint(program, "-", x.count.Add(1)) }

// crash is the variable that arms a failpoint. A process with it runs the binaries that have failpoints.
func crash(point, mode string) string { return "CRASHPOINT=" + point + ":1:" + mode }

// start starts a process of the scenario. At the end of the test it is stopped, and its log and metrics must
// show no secret.
func (x *deployment) start(p *stack.Process, more ...string) *stack.Process {
	t := x.t
	t.Helper()
	doomed := len(more) > 0 && strings.HasPrefix(more[0], "CRASHPOINT=")
	if doomed {
		p.SetBinaries(shared.chaos)
	}
	log := x.LogPath(p.Name)
	t.Cleanup(func() {
		if p.Running() && !p.Paused() {
			checkMetrics(t, p)
		}
		check(t, p.Resume())
		x.stop(p)
		if t.Failed() {
			t.Logf("end of %s:\n%s", log, tailOf(log))
		}
		checkLog(t, log)
	})
	err := x.Start(context.Background(), readyWithin, p)
	// A process that is to crash may do so before it is ready: the topics are shared, and its first record
	// may be of another scenario.
	if crashed := doomed && (!p.Running() || p.Paused()); err != nil && !crashed {
		t.Fatalf("%v\n%s", err, tailOf(log))
	}
	return p
}

// stop ends a process in order.
func (x *deployment) stop(p *stack.Process) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	check(x.t, p.Stop(ctx))
}

// kill ends a process at once.
func kill(t *testing.T, p *stack.Process) {
	t.Helper()
	check(t, p.Kill(context.Background()))
}

// openLink opens a link of the test's own before an address.
func openLink(t *testing.T, upstream string) *link.Link {
	t.Helper()
	listen, err := project.ClaimAddress()
	check(t, err)
	set := link.NewSet()
	t.Cleanup(set.Close)
	l, err := set.Open(t.Name()+" "+listen, listen, upstream)
	check(t, err)
	return l
}

func tailOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}

// number asks the database for one number.
func (x *deployment) number(query string, args ...any) int {
	x.t.Helper()
	rows, err := x.pool.Query(context.Background(), query, args...)
	if err != nil {
		x.t.Fatalf("%s: %v", query, err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		x.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unavailable skips where what a scenario needs is not installed, and fails where it is required.
func unavailable(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("REQUIRE_REAL") == "1" {
		t.Fatalf("REQUIRE_REAL=1: %v", err)
	}
	t.Skipf("SKIPPED: it is not installed here: %v", err)
}

func port(t *testing.T) int {
	t.Helper()
	p, err := project.ClaimPort()
	check(t, err)
	return p
}

func folder(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	check(t, os.MkdirAll(path, 0o755))
	return path
}
