package systemtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/services"
)

// topology is one deployment: a database, an engine, a consumer group and Redis keys of its own, a control, and as many edges
// and relays as a scenario starts.
type topology struct {
	t        *testing.T
	name     string
	settings services.Settings
	group    string
	engine   *door
	api      services.Internal
	pool     *pgxpool.Pool // the superuser's view of the database
	tells    bool          // a relay runs that tells the engine
	control  *node
}

// node is a running service.
type node struct {
	*process.Process
	url, admin string
}

// newTopology makes a deployment on the shared backing services, control included. Its settings may be changed before that.
func newTopology(t *testing.T, change ...func(*services.Settings)) *topology {
	t.Helper()
	name := "st_" + randomHex(6)
	sql(t, "CREATE DATABASE "+name+" TEMPLATE "+shared.template)
	t.Cleanup(func() { sql(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	url, err := services.WithDatabase(shared.server, name)
	if err != nil {
		t.Fatal(err)
	}
	x := &topology{t: t, name: name, settings: shared.settings(url), group: name}
	for _, f := range change {
		f(&x.settings)
	}
	x.open()
	skipBacklog(t, x.settings.KafkaBrokers, x.group)
	x.startControl()
	return x
}

// open makes the engine and the superuser's pool.
func (x *topology) open() {
	t := x.t
	t.Helper()
	x.engine, x.settings.EngineURL = newDoor(t, x.settings.EngineSecret)
	pool, err := pgxpool.New(context.Background(), x.settings.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	x.pool = pool
}

func (x *topology) startControl() *node {
	x.t.Helper()
	n := x.start("control", x.settings.Bin, func(listen, admin string) []string {
		return append(x.settings.Control(listen, admin), "CONTROL_REDIS_PREFIX="+x.name+":", "CONTROL_LOG_LEVEL=DEBUG")
	})
	x.api = services.Internal{BaseURL: n.url, ConnectorToken: x.settings.ConnectorToken, BackendToken: x.settings.BackendToken}
	x.control = n
	x.engine.ReadSnapshots(n.url, x.settings.EngineToken)
	x.t.Cleanup(x.soundSnapshots)
	x.t.Cleanup(x.keepsJobs)
	return n
}

// edge starts an edge and waits until it is ready. Extra variables win over the ordinary ones.
func (x *topology) edge(extra ...string) *node {
	x.t.Helper()
	return x.start("edge", x.binaries(extra), func(listen, admin string) []string {
		return append(append(x.settings.Edge(listen, admin), "EDGE_REDIS_PREFIX="+x.name+":", "EDGE_ENGINE_DEADLINE=5s", "EDGE_LOG_LEVEL=DEBUG"), extra...)
	})
}

// relay starts a relay that waits little, and waits until it is ready.
func (x *topology) relay(extra ...string) *node {
	x.t.Helper()
	x.tells = x.settings.EngineURL != ""
	return x.start("engine-relay", x.binaries(extra), func(_, admin string) []string {
		env := append(x.settings.Relay(admin), "RELAY_KAFKA_GROUP="+x.group, "RELAY_BACKOFF_MIN=50ms", "RELAY_BACKOFF_MAX=500ms",
			"RELAY_ENGINE_TIMEOUT=2s", "RELAY_LOG_LEVEL=DEBUG")
		return append(env, extra...)
	})
}

// crash is the variable that arms a crash point; it makes a node run the chaos binaries.
func crash(point, mode string) string { return "CRASHPOINT=" + point + ":1:" + mode }

func (x *topology) binaries(extra []string) string {
	for _, v := range extra {
		if len(v) > 11 && v[:11] == "CRASHPOINT=" {
			return shared.chaos
		}
	}
	return x.settings.Bin
}

func (x *topology) start(name, bin string, env func(listen, admin string) []string) *node {
	x.t.Helper()
	listen, admin := x.address(), x.address()
	log := x.log(name)
	settings := x.settings
	settings.Bin = bin
	p, err := settings.Start(name, env(listen, admin), log)
	if err != nil {
		x.t.Fatal(err)
	}
	n := &node{Process: p, url: "http://" + listen, admin: admin}
	x.t.Cleanup(func() {
		if n.Running() && n.stopped() != nil {
			keepsMetrics(x.t, n)
		}
		n.end(x.t, log.Name())
		keepsLog(x.t, log.Name())
	})
	err = services.Ready(context.Background(), p, admin, 40*time.Second)
	// One that is to crash may do so before it is ready: the topics are everybody's, and so is the first record.
	if crashed := bin == shared.chaos && (n.dead() == nil || n.stopped() == nil); err != nil && !crashed {
		x.t.Fatalf("%v\n%s", err, tailOf(log.Name()))
	}
	return n
}

// end stops a node in the ordinary way and shows its log when the test failed.
func (n *node) end(t *testing.T, log string) {
	t.Helper()
	_ = n.Signal(syscall.SIGCONT)
	if err := n.Stop(syscall.SIGTERM, 30*time.Second); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("end of %s:\n%s", log, tailOf(log))
	}
}

func (x *topology) address() string {
	port, err := project.FreePort()
	if err != nil {
		x.t.Fatal(err)
	}
	return project.Loopback(port)
}

func (x *topology) log(name string) *os.File {
	f, err := os.Create(filepath.Join(shared.logs, fmt.Sprintf("%s-%s-%s.log", x.name, name, randomHex(2))))
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = f.Close() })
	return f
}

func tailOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}

func sql(t *testing.T, statement string) {
	t.Helper()
	if err := shared.exec(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// number asks the database for one number.
func (x *topology) number(query string, args ...any) int {
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
