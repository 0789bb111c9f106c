package poolmetrics

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"storefront.internal/shared/pg"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// gather returns the value of each series by name and label values.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

func TestPostgresPools(t *testing.T) {
	t.Parallel()
	pool := testkit.Pool(t, testkit.PostgresEmpty(t))
	held, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	got := gather(t, NewPostgres("a", map[string]*pgxpool.Pool{"a": pool, "none": nil}))
	if got["storefront_postgres_up"] != 1 || got["storefront_postgres_pool_connections a used"] < 1 ||
		got["storefront_postgres_pool_acquires_total a"] < 1 ||
		got["storefront_postgres_pool_max_connections a"] < 1 {
		t.Errorf("%v", got)
	}
	away, err := pg.Open(t.Context(), settings.Postgres{DatabaseURL: "postgres://u:p@127.0.0.1:1/d"}, "t")
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	if got := gather(t, NewPostgres("b",
		map[string]*pgxpool.Pool{"b": away})); got["storefront_postgres_up"] != 0 || len(got) < 5 {
		t.Errorf("away: %v", got)
	}
}

func TestRedisPool(t *testing.T) {
	t.Parallel()
	addr, _ := testkit.Redis(t)
	f := func(addr string, up float64, series int) {
		t.Helper()
		client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}, MaxRetries: -1})
		defer func() { _ = client.Close() }()
		got := gather(t, NewRedis(client))
		if v, shown := got["storefront_redis_up"]; !shown || v != up || len(got) != series {
			t.Errorf("%s: %v", addr, got)
		}
		if up == 1 && got["storefront_redis_memory_used_bytes"] < 1000 {
			t.Errorf("%s: %v", addr, got)
		}
	}
	f(addr, 1, 12)
	f("127.0.0.1:1", 0, 9)
}

// TestCollectorsWithoutAPoolOnlyDescribe: the metrics reference is generated without a store.
func TestCollectorsWithoutAPoolOnlyDescribe(t *testing.T) {
	t.Parallel()
	for _, c := range []prometheus.Collector{NewRedis(nil),
		NewPostgres("a", map[string]*pgxpool.Pool{"a": nil})} {
		if got := gather(t, c); len(got) != 0 {
			t.Errorf("%v", got)
		}
	}
}
