package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

// proxy is a TCP proxy that can be cut: open connections break, and new ones are refused.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
	work  sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	k.work.Go(k.accept)
	t.Cleanup(func() {
		l.Close()
		k.set(true)
		k.work.Wait()
	})
	return k
}

func (k *proxy) addr() string { return k.listener.Addr().String() }

func (k *proxy) set(cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = cut
	for c := range k.conns {
		if cut {
			c.Close()
		}
	}
}

func (k *proxy) accept() {
	for {
		in, err := k.listener.Accept()
		if err != nil {
			return
		}
		k.work.Go(func() { k.serve(in) })
	}
}

func (k *proxy) serve(in net.Conn) {
	defer in.Close()
	k.mu.Lock()
	cut := k.cut
	k.mu.Unlock()
	if cut {
		return
	}
	out, err := net.Dial("tcp", k.target)
	if err != nil {
		return
	}
	defer out.Close()
	k.mu.Lock()
	k.conns[in], k.conns[out] = true, true
	cut = k.cut
	k.mu.Unlock()
	if !cut {
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(out, in); out.Close(); in.Close() })
		wg.Go(func() { _, _ = io.Copy(in, out); out.Close(); in.Close() })
		wg.Wait()
	}
	k.mu.Lock()
	delete(k.conns, in)
	delete(k.conns, out)
	k.mu.Unlock()
}

// edge is a running edge on real stores, each behind a proxy.
type edge struct {
	t        *testing.T
	app      *App
	cfg      Config
	owner    *pgxpool.Pool
	redis    *goredis.Client
	postgres *proxy
	cache    *proxy
	log      *testkit.Log
	stop     context.CancelFunc
	ended    chan error
}

// prepare makes the stores and the configuration; run starts the edge.
func prepare(t *testing.T) *edge {
	t.Helper()
	database := testkit.Postgres(t)
	u, err := url.Parse(testkit.PostgresAs(t, database, "storefront_edge"))
	if err != nil {
		t.Fatal(err)
	}
	redisAddr, prefix := testkit.Redis(t)
	e := &edge{t: t, owner: testkit.Pool(t, database),
		redis: goredis.NewClient(&goredis.Options{Addr: redisAddr}), log: &testkit.Log{},
		postgres: newProxy(t, u.Host), cache: newProxy(t, redisAddr)}
	t.Cleanup(func() { _ = e.redis.Close() })
	u.Host = e.postgres.addr()
	e.cfg = newConfig()
	env := []string{"EDGE_LISTEN=127.0.0.1:0", "EDGE_ADMIN_LISTEN=127.0.0.1:0",
		"EDGE_ERRORS_BASE=https://errors.example/", "EDGE_DATABASE_URL=" + u.String(),
		"EDGE_REDIS_ADDRS=" + e.cache.addr(), "EDGE_REDIS_PREFIX=" + prefix, "EDGE_KAFKA_BROKERS=" +
			strings.Join(testkit.Kafka(t), ","),
		"EDGE_DECISION_KEYS=k1:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
		"EDGE_DRAIN_DELAY=0s", "EDGE_LOG_LEVEL=DEBUG", "EDGE_LOG_SAMPLE=1"}
	if e.cfg, err = Load(env); err != nil {
		t.Fatal(err)
	}
	e.cfg.SignalsTopic, e.cfg.DecisionsTopic = testkit.Topic(t, 2), testkit.Topic(t, 1)
	return e
}

func (e *edge) run() *edge {
	e.t.Helper()
	var err error
	if e.app, err = New(e.t.Context(), e.cfg,
		slog.New(slog.NewJSONHandler(e.log, &slog.HandlerOptions{Level: slog.LevelDebug}))); err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.stop, e.ended = cancel, make(chan error, 1)
	go func() { e.ended <- e.app.Run(ctx) }()
	e.t.Cleanup(func() { e.end() })
	e.within(20*time.Second, "the edge is ready",
		func() bool { return e.get(e.app.AdminAddr(), "/readyz") == http.StatusOK })
	return e
}

// end stops the edge, once, and expects no error.
func (e *edge) end() {
	if e.stop == nil {
		return
	}
	e.stop()
	e.stop = nil
	if err := <-e.ended; err != nil {
		e.t.Errorf("run: %v\n%s", err, e.log)
	}
}

// within asks again until ok, at most for d.
func (e *edge) within(d time.Duration, what string, ok func() bool) {
	e.t.Helper()
	for end := time.Now().Add(d); !ok(); {
		if time.Now().After(end) {
			e.t.Fatalf("not within %s: %s\n%s", d, what, e.log)
		}
	}
}

func (e *edge) get(addr, path string) int {
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// post sends a body with the key, and reads the answer into a map.
func (e *edge) post(secret, operation, body string) (status int, answer map[string]any) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), "POST", "http://"+e.app.PublicAddr()+
		"/v1/connections/con_1/"+operation, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// lets returns the status of a recommendation request with the key: 200 when it opens the connection.
func (e *edge) lets(secret string) int {
	status, _ := e.post(secret, "recommendations", `{"placement":"home"}`)
	return status
}

// issue and revoke do what control does: commit, push, then publish the version.
func (e *edge) issue() (secret string) {
	e.t.Helper()
	secret = storekey.NewSecret()
	d := storekey.Digest([]byte(secret))
	id := "key_" + secret[4:12]
	e.exec(`INSERT INTO control.connections (connection_id, store_id, provider, external_store_id) VALUES ` +
		`('con_1', 'str_1', 'custom', '1') ON CONFLICT DO NOTHING`)
	e.exec(`INSERT INTO control.api_keys (api_key_id, connection_id, digest, scopes) VALUES ($1, 'con_1', `+
		`$2, '{catalog:read,recommendations:read,signals:write}')`, id, d[:])
	grant := fmt.Sprintf(`{"api_key_id":%q,"connection_id":"con_1","store_id":"str_1",`+
		`"scopes":["catalog:read","recommendations:read","signals:write"]}`, id)
	e.publish(d, grant)
	return secret
}

func (e *edge) revoke(secret string, push bool) {
	e.t.Helper()
	d := storekey.Digest([]byte(secret))
	e.exec(`UPDATE control.api_keys SET revoked_at = now() WHERE digest = $1`, d[:])
	if push {
		e.publish(d, "revoked")
		return
	}
	e.exec(`UPDATE control.key_version SET version = version + 1`)
}

func (e *edge) publish(d [32]byte, record string) {
	e.t.Helper()
	var version int64
	if err := e.owner.QueryRow(e.t.Context(),
		`UPDATE control.key_version SET version = version + 1 RETURNING version`).Scan(&version); err != nil {
		e.t.Fatal(err)
	}
	for name, value := range map[string]any{storekey.RecordName("", d): record,
		storekey.VersionName(""): version} {
		if err := e.redis.Set(e.t.Context(), e.cfg.RedisPrefix+name, value, time.Hour).Err(); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *edge) exec(sql string, args ...any) {
	e.t.Helper()
	if _, err := e.owner.Exec(e.t.Context(), sql, args...); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}
