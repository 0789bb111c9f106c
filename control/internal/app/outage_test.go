package app

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/storekey"
	"storefront.internal/shared/testkit"
)

// proxy is a connection to Redis that can be cut.
type proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	go p.serve()
	t.Cleanup(func() {
		p.set(true)
		l.Close()
	})
	return p
}

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
		p.mu.Lock()
		if err != nil || p.cut {
			in.Close()
			if out != nil {
				out.Close()
			}
			p.mu.Unlock()
			continue
		}
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		go func() { io.Copy(out, in); out.Close() }() //nolint:errcheck // a cut connection is the purpose
		go func() { io.Copy(in, out); in.Close() }()  //nolint:errcheck // a cut connection is the purpose
	}
}

func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func TestRedisAwayDuringRevocation(t *testing.T) {
	t.Parallel()
	superURL := testkit.PostgresWith(t, river, jobs.Migrate)
	addr, prefix := testkit.Redis(t)
	p := newProxy(t, addr)
	b := startBundle(t, superURL, p.listener.Addr().String(), prefix)
	con, _ := b.connect("store-1")
	k, kept := b.issue(con), b.issue(con)
	b.awaitPublished()
	published := b.redisVersion()

	p.set(true)
	if a := b.call("DELETE", "/connections/"+con+"/api-keys/"+k.ID, backendToken, ""); a.status != 204 {
		t.Fatalf("revoke without Redis: %d %s", a.status, a.body)
	}
	fresh := b.issue(con) // 201 without Redis, too
	if b.version() != published+2 || b.redisVersion() != published || b.record(k.Secret) == "revoked" {
		t.Fatalf("while Redis is cut: versions %d, %d, record %q", b.version(), b.redisVersion(),
			b.record(k.Secret))
	}
	b.eventually("the sweep has tried and failed",
		func() bool { return strings.Contains(b.log.String(), "the key sweep fails") })
	if got := b.list(con); len(got) != 2 {
		t.Errorf("listed %+v", got)
	}

	p.set(false)
	b.awaitPublished()
	if b.record(k.Secret) != "revoked" || !strings.Contains(b.record(fresh.Secret), fresh.ID) ||
		!strings.Contains(b.record(kept.Secret), kept.ID) {
		t.Errorf("Redis holds %q, %q, %q", b.record(k.Secret), b.record(fresh.Secret), b.record(kept.Secret))
	}
	var args string
	b.scan(&args, `SELECT coalesce(string_agg(args::text || metadata::text || coalesce(array_to_string(errors, ''), ''), ''), '') FROM control.river_job`)
	for _, secret := range []string{k.Secret, fresh.Secret, kept.Secret} {
		if strings.Contains(args, secret) {
			t.Error("a job holds a secret")
		}
	}
}

func TestRedisForgetsEverything(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	con, _ := b.connect("store-1")
	revoked, live := b.issue(con), b.issue(con)
	stale := b.record(revoked.Secret)
	b.call("DELETE", "/connections/"+con+"/api-keys/"+revoked.ID, backendToken, "")
	// Redis becomes an older copy of itself: without the version and the revocation, but with the grant.
	old := []any{storekey.RecordName(b.cfg.RedisPrefix, storekey.Digest([]byte(revoked.Secret))), stale,
		storekey.VersionName(b.cfg.RedisPrefix), "1"}
	if err := b.redis.MSet(t.Context(), old...).Err(); err != nil {
		t.Fatal(err)
	}
	b.awaitPublished()
	if b.record(revoked.Secret) != "revoked" {
		t.Errorf("the version is trusted again while Redis holds %q", b.record(revoked.Secret))
	}
	if !strings.Contains(b.record(live.Secret), live.ID) {
		t.Errorf("the live key's record is %q", b.record(live.Secret))
	}
	if err := b.redis.Del(t.Context(), storekey.VersionName(b.cfg.RedisPrefix)).Err(); err != nil {
		t.Fatal(err)
	}
	b.awaitPublished()
}

func TestPostgresAway(t *testing.T) {
	t.Parallel()
	superURL := testkit.PostgresWith(t, river, jobs.Migrate)
	addr, prefix := testkit.Redis(t)
	closed := newProxy(t, addr)
	closed.set(true)
	b := startBundle(t, superURL, addr, prefix, func(c *Config) {
		c.DatabaseURL = settings.Secret("postgres://nobody:canary@" + closed.listener.Addr().String() +
			"/none?sslmode=disable")
	})
	a := b.call("GET", "/connections/con_1/api-keys", backendToken, "")
	if a.status != 503 || !strings.Contains(a.body, `"service_unavailable"`) ||
		strings.Contains(a.body, "canary") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if status, body := b.ready(b.app); status != 503 || strings.Contains(body, "canary") {
		t.Errorf("ready while PostgreSQL is away: %d %s", status, body)
	}
}
