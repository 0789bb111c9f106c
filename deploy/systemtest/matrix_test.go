package systemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
	"storefront.internal/shared/storekey"
)

// matrix is a deployment with a link before each dependency. The faults of the failure matrix happen to it
// one after the other, while every operation is called.
type matrix struct {
	*deployment
	public    *stack.Process            // the edge
	servers   map[string]*stack.Process // the dependencies
	shop      *storefront
	installed client.Installed
	decision  client.Decision
	read      string      // an item that the edge has in memory
	unread    chan string // items that no edge has read

	mu       sync.Mutex
	accepted int // signals
	serial   atomic.Int64
}

// newMatrix starts the deployment. Timeouts are the defaults.
func newMatrix(t *testing.T) *matrix {
	t.Helper()
	dir, err := os.MkdirTemp("", "storefront-matrix-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	ctx := t.Context()
	check(t, stack.Build(ctx, shared.project, shared.plain, nil, "deploy/demoengine", "deploy/fakeprovider"))
	s := shared.settings("")
	s.AppID, s.AppSecret = platformApp, platformSecret
	x := emptyDeployment(t, "st_"+randomHex(6), s)
	x.Config.Links = true
	unavailable(t, x.StartStores(ctx, stack.Stores{Project: shared.project, Dir: dir, KeepRedis: true,
		KafkaClients: []string{"edge", "relay"}}))
	check(t, x.Settings.Prepare(ctx))
	m := &matrix{deployment: x, unread: make(chan string, 2000)}
	m.startServices()
	m.pool, err = pgxpool.New(ctx, x.Settings.Database)
	check(t, err)
	t.Cleanup(m.pool.Close)
	m.fill()
	return m
}

func (m *matrix) startServices() {
	t := m.t
	t.Helper()
	engine, err := m.Engine("control")
	check(t, err)
	provider, err := m.Provider("control", "FAKEPROVIDER_THROTTLE=off", "FAKEPROVIDER_PRODUCTS=10",
		"FAKEPROVIDER_ORDERS=0")
	check(t, err)
	m.servers = map[string]*stack.Process{"redis": m.Redis, "kafka": m.Brokers[0], "postgres": m.Postgres,
		"engine": engine, "provider": provider}
	relay, err := m.Relay("relay", "RELAY_KAFKA_GROUP="+m.group)
	check(t, err)
	m.control, err = m.Control("control", "CONTROL_REDIS_PREFIX="+m.name+":")
	check(t, err)
	m.public, err = m.Edge("edge", "EDGE_REDIS_PREFIX="+m.name+":", "EDGE_ENGINE_DEADLINE=150ms")
	check(t, err)
	check(t, m.Start(context.Background(), readyWithin, engine, provider))
	for _, p := range []*stack.Process{m.control, relay, m.public} {
		m.start(p)
	}
	m.api = m.Internal(m.control)
	m.api.HTTP = httpClient
}

// fill makes what the operations are about: a custom connection with a catalog, and an installed shop.
func (m *matrix) fill() {
	t := m.t
	t.Helper()
	m.shop = m.newStorefront()
	m.moreItems(1)
	m.read = <-m.unread
	var err error
	m.installed, err = m.install(context.Background())
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	_, err = m.api.AwaitCatalog(ctx, m.installed.ConnectionID)
	check(t, err)
	eventually(t, 30*time.Second, "the engine recommends", func() error {
		d := m.shop.recommend(m.public)
		if m.decision = d; d.Source != "engine" {
			return fmt.Errorf("the source is %s", d.Source)
		}
		return nil
	})
}

// moreItems delivers n items that the edge has not read.
func (m *matrix) moreItems(n int) {
	m.t.Helper()
	var all []connector.Observation
	for range n {
		all = append(all, product("unread-"+randomHex(6), 1, "Unread"))
	}
	for _, r := range m.shop.deliverAccepted(all...) {
		select {
		case m.unread <- r.EntityID:
		default:
		}
	}
}

func (m *matrix) install(ctx context.Context) (client.Installed, error) {
	return m.api.OpenInstallation(ctx, client.Installation{Provider: client.ConnectorProvider,
		AppID: platformApp, ExternalStoreID: strconv.FormatInt(1_000_000+m.serial.Add(1), 10),
		AccessToken: "demo-" + randomHex(8), Profile: map[string]string{"language": "es", "currency": "ARS"}})
}

// operation is one way in which the service is called. Its word is the status, and more where that does not
// say all; a healthy deployment answers with usual.
type operation struct {
	name    string
	usual   string
	workers int
	pause   time.Duration
	call    func(m *matrix, ctx context.Context) string
}

// The operations of the matrix, by the names that the page has.
const (
	opNew     = "1, new signals"
	opOld     = "1, a signal 50 minutes old"
	opAdvice  = "E1"
	opItem    = "2, an item in memory"
	opUnread  = "2, an item never read"
	opDeliver = "4"
	opInstall = "5"
	opKey     = "6"
	opQueue   = "9"
	opWebhook = "12"
)

func operations() []operation {
	const often, seldom = 20 * time.Millisecond, 200 * time.Millisecond
	return []operation{
		{opNew, "202", 8, often, func(m *matrix, ctx context.Context) string {
			return m.record(ctx, cartBatch(m.decision, 5))
		}},
		{opOld, "202", 4, often, func(m *matrix, ctx context.Context) string {
			return m.record(ctx, lateSignal(m.decision))
		}},
		{opAdvice, "200 engine", 4, often, (*matrix).recommend},
		{opItem, "200", 2, often, func(m *matrix, ctx context.Context) string {
			return word(m.shop.at(m.public).GetItem(ctx, m.read, ""))
		}},
		{opUnread, "200", 1, seldom / 2, (*matrix).readNew},
		{opDeliver, "200", 1, seldom, (*matrix).deliverOne},
		{opInstall, "201", 1, 5 * seldom, func(m *matrix, ctx context.Context) string {
			_, err := m.install(ctx)
			return wordOf(err, "201")
		}},
		{opKey, "201", 1, seldom, func(m *matrix, ctx context.Context) string {
			_, err := m.api.IssueKey(ctx, m.installed.ConnectionID)
			return wordOf(err, "201")
		}},
		{opQueue, "200", 1, seldom, func(m *matrix, ctx context.Context) string {
			_, err := m.api.ViewQueue(ctx)
			return wordOf(err, "200")
		}},
		{opWebhook, "202", 2, seldom / 2, (*matrix).webhook},
	}
}

func (m *matrix) record(ctx context.Context, batch []client.Signal) string {
	r := m.shop.at(m.public).RecordSignals(ctx, batch)
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.OK() {
		m.accepted += len(batch)
	}
	return word(r)
}

// readNew reads an item that the edge has not read. One that could not be read is read again later.
func (m *matrix) readNew(ctx context.Context) string {
	select {
	case item := <-m.unread:
		w := word(m.shop.at(m.public).GetItem(ctx, item, ""))
		if w != "200" {
			m.unread <- item
		}
		return w
	default:
		return "no item is left"
	}
}

func (m *matrix) recommend(ctx context.Context) string {
	d, err := m.shop.at(m.public).Recommend(ctx, nil)
	return wordOf(err, "200 "+d.Source)
}

func (m *matrix) deliverOne(ctx context.Context) string {
	body := map[string]any{"observations": []any{product("new-"+randomHex(6), 1, "New")}}
	return word(client.Do(ctx, httpClient, client.Request{Method: http.MethodPost, Body: body,
		Token: m.shop.connector.Token,
		URL:   m.api.BaseURL + "/internal/v1/connections/" + m.shop.ConnectionID + "/observations"}))
}

func (m *matrix) webhook(ctx context.Context) string {
	body := fmt.Sprintf(`{"store_id":%d,"event":"product/updated","id":%d}`, 1_000_001, m.serial.Add(1))
	return word(m.api.DeliverWebhook(ctx, client.ConnectorProvider, m.installed.EndpointID, platformSecret,
		[]byte(body)))
}

// none is the word of a call that was not answered in time.
const none = "none"

func word(r client.Response) string {
	if r.Err != nil || r.Status == 0 {
		return none
	}
	return strconv.Itoa(r.Status)
}

func wordOf(err error, ok string) string {
	var status *client.StatusError
	switch {
	case err == nil:
		return ok
	case errors.As(err, &status):
		return strconv.Itoa(status.Status)
	default:
		return none
	}
}

// linksTo are the links before a dependency, one for each process that calls it.
func (m *matrix) linksTo(dependency string) (all []*link.Link) {
	for _, from := range []string{"edge", "relay", "control"} {
		if l := m.Link(from, dependency); l != nil {
			all = append(all, l)
		}
	}
	return all
}

// each does something to every link before a dependency.
func (m *matrix) each(dependency string, do func(*link.Link) error) {
	m.t.Helper()
	for _, l := range m.linksTo(dependency) {
		check(m.t, do(l))
	}
}

// warmClaims makes Redis count as one that has remembered for longer than a claim lives, as if the hour after
// forgetClaims were over.
func (m *matrix) warmClaims() {
	m.t.Helper()
	ctx := context.Background()
	redisClient := redis.NewClient(&redis.Options{Addr: m.Settings.RedisAddr})
	defer func() { _ = redisClient.Close() }()
	const epochTTL = 100 * 365 * 24 * time.Hour // as the edge sets it
	check(m.t, redisClient.Set(ctx, m.name+":claims:epoch", "1", epochTTL-2*time.Hour).Err())
}

// awaitKeys waits until Redis has the last change of the keys, so that a cell has one fault: without it, an
// edge needs PostgreSQL to know whether a key was revoked.
func (m *matrix) awaitKeys() {
	m.t.Helper()
	redisClient := redis.NewClient(&redis.Options{Addr: m.Settings.RedisAddr})
	defer func() { _ = redisClient.Close() }()
	eventually(m.t, 20*time.Second, "Redis has the version of the keys", func() error {
		have, err := redisClient.Get(context.Background(), storekey.VersionName(m.name+":")).Int()
		if want := m.number("SELECT version::int FROM control.key_version"); err == nil && have != want {
			err = fmt.Errorf("it has %d of %d", have, want)
		}
		return err
	})
	time.Sleep(2 * time.Second) // until the edge has seen it
}
