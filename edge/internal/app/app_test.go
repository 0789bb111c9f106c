package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/storekey"
)

func TestDecisionThenSignals(t *testing.T) {
	t.Parallel()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[],"engine_ids":{"r":"1"}}`) // there is no catalog here
	}))
	defer engine.Close()
	e := prepare(t)
	e.cfg.EngineURL, e.cfg.EngineToken, e.cfg.EngineDeadline = engine.URL, "t", 5*time.Second
	e.run()
	secret := e.issue()
	status, decision := e.post(secret, "recommendations", `{"placement":"home"}`)
	if status != 200 || decision["source"] != "engine" {
		t.Fatalf("%d %v", status, decision)
	}
	batch := fmt.Sprintf(`{"signals":[{"signal_id":"sig_1","type":"click","occurred_at":%q,"decision_id":%q,"item_id":"itm_1"},
		{"signal_id":"sig_2","type":"impression","occurred_at":%[1]q,"decision_id":"dec_unknown"}]}`, time.Now().UTC().Format(time.RFC3339), decision["decision_id"])
	for _, want := range []string{"accepted", "duplicate"} {
		status, answer := e.post(secret, "storefront-signals", batch)
		if status != 202 {
			t.Fatalf("%d %v\n%s", status, answer, e.log)
		}
		results := answer["results"].([]any)
		first, second := results[0].(map[string]any), results[1].(map[string]any)
		if first["status"] != want || second["status"] != "rejected" ||
			second["reason"] != "unknown_decision" {
			t.Errorf("%v, want %s", results, want)
		}
	}
	e.end()
	if log := e.log.String(); strings.Contains(log, secret) ||
		strings.Contains(log, e.cfg.DatabaseURL.Reveal()) ||
		strings.Contains(log, e.cfg.DecisionKeys.Reveal()) {
		t.Error("the log holds a secret")
	}
}

func TestRevokedKeyIsRefusedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		push bool
		cut  func(e *edge)
	}{
		"all is well":         {true, func(*edge) {}},
		"not in Redis":        {false, func(*edge) {}},
		"Redis cut off":       {false, func(e *edge) { e.cache.set(true) }},
		"PostgreSQL cut off":  {true, func(e *edge) { e.postgres.set(true) }},
		"Redis lost all keys": {false, func(e *edge) { e.forget() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := prepare(t).run()
			secret := e.issue()
			e.within(2*time.Second, "a new key is good", func() bool { return e.lets(secret) == 200 })
			tc.cut(e)
			// a 503 is possible until the edge has polled the version that issue raised from both stores
			e.within(3*time.Second, "the key works before the revocation",
				func() bool { return e.lets(secret) == 200 })
			e.revoke(secret, tc.push)
			// 2 s, and a busy machine
			e.within(3*time.Second, "the key is refused", func() bool { return e.lets(secret) == 401 })
		})
	}
}

func (e *edge) forget() {
	e.t.Helper()
	names, err := e.redis.Keys(e.t.Context(), e.cfg.RedisPrefix+"key*").Result()
	if err == nil && len(names) > 0 {
		err = e.redis.Del(e.t.Context(), names...).Err()
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// While PostgreSQL is down, the keys that Redis holds work, also those that this edge never saw.
func TestKeysOfRedisOutliveAnOutageOfPostgreSQL(t *testing.T) {
	t.Parallel()
	e := prepare(t).run()
	seen, fresh := e.issue(), e.issue()
	e.within(2*time.Second, "a new key is good", func() bool { return e.lets(seen) == 200 })
	e.postgres.set(true)
	e.within(5*time.Second, "a key that only Redis holds works", func() bool { return e.lets(fresh) == 200 })
	if status := e.lets(seen); status != 200 {
		t.Errorf("status %d", status)
	}
	if status := e.lets(storekey.NewSecret()); status != 503 {
		t.Errorf("an unknown key got %d, want 503: no store can tell", status)
	}
	if status := e.lets("spk_malformed"); status != 401 {
		t.Errorf("a malformed key got %d", status)
	}
	if status := e.get(e.app.AdminAddr(), "/readyz"); status != 200 {
		t.Errorf("readiness %d", status)
	}
}

func TestStartsWithNothingBehindIt(t *testing.T) {
	t.Parallel()
	e := prepare(t)
	e.postgres.set(true)
	e.cache.set(true)
	e.cfg.KafkaBrokers = []string{"127.0.0.1:1"}
	secret := e.issue()
	e.run()
	if status := e.get(e.app.PublicAddr(), "/healthz"); status != 200 {
		t.Errorf("health %d", status)
	}
	if !strings.Contains(e.log.String(), "Kafka does not answer yet") {
		t.Error("the edge did not try to connect to Kafka before it was ready")
	}
	status, problem := e.post(secret, "storefront-signals", `{"signals":[]}`)
	if status != 503 || problem["code"] != "signals_unavailable" {
		t.Errorf("%d %v", status, problem)
	}
	e.postgres.set(false)
	e.within(20*time.Second, "the key is good once PostgreSQL is there",
		func() bool { return e.lets(secret) == 200 })
	signal := fmt.Sprintf(`{"signals":[{"signal_id":"sig_1","type":"impression","occurred_at":%q,`+
		`"decision_id":"dec_x"}]}`, time.Now().UTC().Format(time.RFC3339))
	// rejected: no store is needed
	if status, answer := e.post(secret, "storefront-signals", signal); status != 202 {
		t.Errorf("%d %v", status, answer)
	}
}

func TestEndClosesThePort(t *testing.T) {
	t.Parallel()
	e := prepare(t).run()
	public, admin := e.app.PublicAddr(), e.app.AdminAddr()
	e.end()
	for _, addr := range []string{public, admin} {
		if status := e.get(addr, "/healthz"); status != 0 {
			t.Errorf("%s still answers %d", addr, status)
		}
	}
}

func TestErrorsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	_, err := Load([]string{"EDGE_ERRORS_BASE=https://e.example",
		"EDGE_DATABASE_URL=postgres://u:canary@h/d", "EDGE_REDIS_ADDRS=r:1", "EDGE_KAFKA_BROKERS=k:1",
		"EDGE_DECISION_KEYS=k1:canary", "EDGE_RATE_PER_KEY=0", "EDGE_RATE_BURST=0", "EDGE_REPLICAS=0",
		"EDGE_ENGINE_URL=ftp://x", "EDGE_ENGINE_DEADLINE=1h",
		"EDGE_MAX_IN_FLIGHT=0", "EDGE_LISTEN=x"})
	if err == nil {
		t.Fatal("no fault")
	}
	for _, name := range []string{"ERRORS_BASE", "DECISION_KEYS", "RATE_PER_KEY", "RATE_BURST", "REPLICAS",
		"ENGINE_URL", "ENGINE_TOKEN", "ENGINE_DEADLINE", "MAX_IN_FLIGHT", "LISTEN"} {
		if !strings.Contains(err.Error(), "EDGE_"+name+":") {
			t.Errorf("EDGE_%s is not named in %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error shows a secret: %v", err)
	}
	_, err = Load([]string{"EDGE_TRUSTED_PROXIES=10.0.0.0/8,nonsense", "EDGE_UNKNOWN=1"})
	for _, name := range []string{"EDGE_TRUSTED_PROXIES", "EDGE_UNKNOWN", "EDGE_DATABASE_URL"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in %v", name, err)
		}
	}
}

func TestListsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := newConfig()
	env := []string{"EDGE_ERRORS_BASE=https://e.example/", "EDGE_DATABASE_URL=postgres://u@h/d",
		"EDGE_REDIS_ADDRS=r:1,r:2", "EDGE_KAFKA_BROKERS=k:1",
		"EDGE_DECISION_KEYS=k1:" + strings.Repeat("AAAA", 11), "EDGE_TRUSTED_PROXIES=10.0.0.0/8,fd00::/8",
		"EDGE_REPLICAS=4"}
	if err := settings.Load(Prefix, &c, env); err != nil {
		t.Fatal(err)
	}
	if len(c.TrustedProxies) != 2 || c.TrustedProxies[1].String() != "fd00::/8" ||
		c.StatementTimeout != 2*time.Second {
		t.Errorf("%+v", c)
	}
	if l := c.rateLimits(); l.PerKey.PerSecond != 1250 || l.PerKey.Burst != 250 ||
		l.PerAddress.PerSecond != 25 {
		t.Errorf("%+v", l)
	}
}

// The generated references are those of this build; `make generate` writes them.
func TestReferences(t *testing.T) {
	t.Parallel()
	for file, args := range map[string][]string{"CONFIG.md": {"reference", "config"},
		"METRICS.md": {"reference", "metrics"}} {
		var out, errs strings.Builder
		if code := Main(t.Context(), args, nil, &out, &errs); code != exitOK {
			t.Fatalf("%v: exit %d: %s", args, code, errs.String())
		}
		want, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("%s is stale: run make generate", file)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{{[]string{"nonsense"}, exitUsage, "edge [serve]"},
		{[]string{"serve"}, exitFailed, "EDGE_DATABASE_URL: is required"},
		{nil, exitFailed, "EDGE_KAFKA_BROKERS"}} {
		var errs strings.Builder
		if code := Main(t.Context(), slices.Clone(tc.args), nil, io.Discard, &errs); code != tc.code ||
			!strings.Contains(errs.String(), tc.says) {
			t.Errorf("%v: exit %d: %s", tc.args, code, errs.String())
		}
	}
}
