package poolmetrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Redis collects the metrics of the pool of a Redis client. For a cluster they are the sum over its nodes,
// and one node that answers counts as up.
type Redis struct {
	client redis.UniversalClient
	probe  *probe

	up, conns, hits, misses, timeouts, waits, waitSeconds, stale *prometheus.Desc
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
	}
	if client != nil {
		r.probe = &probe{ping: func(ctx context.Context) error { return client.Ping(ctx).Err() }}
	}
	return r
}

// Describe implements prometheus.Collector.
func (r *Redis) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{r.up, r.conns, r.hits, r.misses, r.timeouts, r.waits, r.waitSeconds,
		r.stale} {
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
	gauge(r.up, r.probe.value())
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
