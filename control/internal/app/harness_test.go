package app

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/control/internal/seal"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

// The canaries: none of them may appear in a log line or a metric.
const (
	connectorToken = "canary-connector-token-0123456789abcdef"
	backendToken   = "canary-backend-token-0123456789abcdefgh"
	engineToken    = "canary-engine-token-0123456789abcdefghi"
	appSecret      = "canary-app-secret"
	accessToken    = "canary-access-token"
	pepper         = "canary-pepper-0123456789abcdefghijklmnop"
)

// bundle is a running control with real PostgreSQL and Redis, under the role of production.
type bundle struct {
	t      *testing.T
	app    *App
	cfg    Config
	db     *pgxpool.Pool // a superuser's
	redis  *goredis.Client
	log    *testkit.Log
	keyset string
}

// river names the migrations that jobs.Migrate adds to the template of test databases.
const river = "river0510"

func newBundle(t *testing.T, change ...func(*Config)) *bundle {
	t.Helper()
	superURL := testkit.PostgresWith(t, river, jobs.Migrate)
	addr, prefix := testkit.Redis(t)
	return startBundle(t, superURL, addr, prefix, change...)
}

func startBundle(t *testing.T, superURL, redisAddr, prefix string, change ...func(*Config)) *bundle {
	t.Helper()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	var cfg Config
	err = settings.Load(Prefix, &cfg, []string{
		"CONTROL_DATABASE_URL=" + testkit.PostgresAs(t, superURL, "storefront_control"),
		"CONTROL_DATABASE_MAX_CONNS=8",
		"CONTROL_REDIS_ADDRS=" + redisAddr, "CONTROL_REDIS_PREFIX=" + prefix,
		"CONTROL_LISTEN=127.0.0.1:0", "CONTROL_ADMIN_LISTEN=127.0.0.1:0", "CONTROL_LOG_LEVEL=DEBUG",
		"CONTROL_ERRORS_BASE=https://errors.test/", "CONTROL_KEYSET=" + string(keyset),
		"CONTROL_CONNECTOR_TOKENS=tiendanube:" + connectorToken, "CONTROL_BACKEND_TOKENS=" + backendToken,
		"CONTROL_APP_SECRETS=tiendanube/app-1:" + appSecret + ",tiendanube/app-2:" + appSecret +
			"-2,shopify/app-1:" + appSecret,
		"CONTROL_WEBHOOK_URL=https://hooks.test/in", "CONTROL_PRODUCTION=false",
		"CONTROL_PROVIDER_NETWORKS=127.0.0.1/32",
		"CONTROL_PROVIDER_URLS=tiendanube=http://127.0.0.1:1/{store},shopify=http://127.0.0.1:1/{store}," +
			"woocommerce=http://127.0.0.1:1/{store}",
		"CONTROL_ENGINE_TOKENS=" + engineToken, "CONTROL_CONNECTOR_PEPPER=" + pepper,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&cfg)
	}
	b := &bundle{t: t, cfg: cfg, log: &testkit.Log{}, keyset: string(keyset), db: testkit.Pool(t, superURL)}
	b.redis = goredis.NewClient(&goredis.Options{Addr: testRedis(t)})
	t.Cleanup(func() { _ = b.redis.Close() })
	b.app = b.run(cfg)
	return b
}

func testRedis(t *testing.T) string {
	t.Helper()
	addr, _ := testkit.Redis(t)
	return addr
}

// run starts a control and stops it when the test ends.
func (b *bundle) run(cfg Config) *App {
	b.t.Helper()
	// without redaction
	logger := slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := New(b.t.Context(), cfg, logger)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("run: %v", err)
		}
	})
	b.eventually("the internal surface listens", func() bool { return a.Addr() != "" })
	return a
}

// eventually waits for what another goroutine or process does; its bound only ends a failed test.
func (b *bundle) eventually(what string, done func() bool) {
	b.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("never happened: %s\n%s", what, b.log)
		}
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

func (b *bundle) call(method, path, token, body string) answer {
	return b.callOn(b.app, method, path, token, body)
}

func (b *bundle) callOn(a *App, method, path, token, body string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+a.Addr()+"/internal/v1"+path,
		strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
		return answer{}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(raw)}
}

// connect creates a custom connection.
func (b *bundle) connect(external string) (connectionID, token string) {
	b.t.Helper()
	var got struct {
		ConnectionID string `json:"connection_id"`
		Token        string
	}
	a := b.call("POST", "/connections", connectorToken, `{"external_store_id":"`+external+`"}`)
	if a.status != 201 {
		b.t.Fatalf("create connection: %d %s", a.status, a.body)
	}
	a.decode(b.t, &got)
	return got.ConnectionID, got.Token
}

type key struct {
	ID        string `json:"api_key_id"`
	Scopes    []string
	RevokedAt *string `json:"revoked_at"`
	Secret    string
}

func (b *bundle) issue(connectionID string) key {
	b.t.Helper()
	var k key
	a := b.call("POST", "/connections/"+connectionID+"/api-keys", backendToken, "")
	if a.status != 201 {
		b.t.Errorf("issue key: %d %s", a.status, a.body)
		return k
	}
	a.decode(b.t, &k)
	return k
}

func (b *bundle) list(connectionID string) []key {
	b.t.Helper()
	var got struct{ Keys []key }
	b.call("GET", "/connections/"+connectionID+"/api-keys", backendToken, "").decode(b.t, &got)
	return got.Keys
}

func digestOf(secret string) string {
	digest := storekey.Digest([]byte(secret))
	return hex.EncodeToString(digest[:])
}

// ready calls the readiness check of the operations port.
func (b *bundle) ready(a *App) (status int, body string) {
	b.t.Helper()
	return b.admin(a, "/readyz?verbose")
}

func (b *bundle) admin(a *App, path string) (status int, body string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", "http://"+a.AdminAddr()+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// record is the record of a secret in Redis.
func (b *bundle) record(secret string) string {
	b.t.Helper()
	got, err := b.redis.Get(b.t.Context(), storekey.RecordName(b.cfg.RedisPrefix,
		storekey.Digest([]byte(secret)))).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		b.t.Fatal(err)
	}
	return got
}

func (b *bundle) redisVersion() int64 {
	b.t.Helper()
	got, err := b.redis.Get(b.t.Context(), storekey.VersionName(b.cfg.RedisPrefix)).Int64()
	if err != nil && !errors.Is(err, goredis.Nil) {
		b.t.Fatal(err)
	}
	return got
}

// awaitPublished waits until Redis has all changes of keys. On a busy machine a push takes longer than an
// answer waits for it, and the sweep repeats it.
func (b *bundle) awaitPublished() {
	b.t.Helper()
	b.eventually("Redis has all changes of keys", func() bool { return b.redisVersion() == b.version() })
}

func (b *bundle) version() (v int64) {
	b.t.Helper()
	b.scan(&v, `SELECT version FROM control.key_version`)
	return v
}

func (b *bundle) scan(into any, sql string, args ...any) {
	b.t.Helper()
	if err := b.db.QueryRow(b.t.Context(), sql, args...).Scan(into); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}
