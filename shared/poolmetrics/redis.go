package poolmetrics

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Redis collects the metrics of the pool of a Redis client. For a cluster they are the sum over its nodes,
// and one node that answers counts as up.
type Redis struct {
	client redis.UniversalClient
	probe  *probe

	up, conns, hits, misses, timeouts, waits, waitSeconds, stale, memory, maxMemory,
	evicted *prometheus.Desc
}

// NewRedis returns the collector; the client may be nil where nothing is collected.
func NewRedis(client redis.UniversalClient) *Redis {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("storefront_redis_"+name, help, labels, nil)
	}
	r := &Redis{
		client:      client,
		up:          desc("up", "1 when Redis answered a ping within a second."),
		conns:       desc("pool_connections", "Connections of the pool by state: used, idle.", "state"),
		hits:        desc("pool_hits_total", "Acquisitions that took an idle connection."),
		misses:      desc("pool_misses_total", "Acquisitions that opened a connection."),
		timeouts:    desc("pool_timeouts_total", "Acquisitions that timed out."),
		waits:       desc("pool_waits_total", "Acquisitions that had to wait."),
		waitSeconds: desc("pool_wait_seconds_total", "Time spent on waiting for connections."),
		stale: desc("pool_stale_total",
			"Connections that were closed because they were broken or too old."),
		memory: desc("memory_used_bytes",
			"Memory that Redis uses, of a cluster the fullest master; absent when INFO is not allowed."),
		maxMemory: desc("memory_max_bytes", "Its maxmemory; 0: no limit."),
		evicted: desc("evicted_keys_total",
			"Keys that Redis removed because its memory was full, of a cluster the sum over its masters; "+
				"absent when INFO is not allowed. Above 0, its maxmemory-policy is not noeviction."),
	}
	if client != nil {
		r.probe = &probe{ping: func(ctx context.Context) error { return client.Ping(ctx).Err() }}
	}
	return r
}

// Describe implements prometheus.Collector.
func (r *Redis) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{r.up, r.conns, r.hits, r.misses, r.timeouts, r.waits, r.waitSeconds,
		r.stale, r.memory, r.maxMemory, r.evicted} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (r *Redis) Collect(ch chan<- prometheus.Metric) {
	if r.client == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	up := r.probe.value()
	gauge(r.up, up)
	if up == 1 {
		if m, ok := r.readMemory(); ok {
			gauge(r.memory, m.used)
			gauge(r.maxMemory, m.max)
			counter(r.evicted, m.evicted)
		}
	}
	s := r.client.PoolStats()
	gauge(r.conns, float64(s.TotalConns)-float64(s.IdleConns), "used")
	gauge(r.conns, float64(s.IdleConns), "idle")
	counter(r.hits, float64(s.Hits))
	counter(r.misses, float64(s.Misses))
	counter(r.timeouts, float64(s.Timeouts))
	counter(r.waits, float64(s.WaitCount))
	counter(r.waitSeconds, float64(s.WaitDurationNs)/1e9)
	counter(r.stale, float64(s.StaleConns))
}

// memory is what a server uses, and its limit, in bytes, and how many keys it evicted.
type memory struct{ used, max, evicted float64 }

// readMemory asks the server, or every master of a cluster.
func (r *Redis) readMemory() (fullest memory, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	var mu sync.Mutex
	ask := func(ctx context.Context, c redis.Cmdable) error {
		text, err := c.Info(ctx, "memory").Result()
		if err != nil {
			return err
		}
		stats, err := c.Info(ctx, "stats").Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		m := parseMemory(text + stats)
		m.evicted += fullest.evicted
		if ok && m.used <= fullest.used {
			m.used, m.max = fullest.used, fullest.max
		}
		fullest, ok = m, true
		return nil
	}
	if cluster, is := r.client.(*redis.ClusterClient); is {
		_ = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			return ask(ctx, master)
		})
	} else {
		_ = ask(ctx, r.client) // without an answer there is no figure
	}
	return fullest, ok
}

// parseMemory reads the replies to INFO memory and INFO stats.
func parseMemory(info string) (m memory) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "used_memory":
			m.used = n
		case name == "maxmemory":
			m.max = n
		case name == "evicted_keys":
			m.evicted = n
		}
	}
	return m
}
