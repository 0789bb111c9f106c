package poolmetrics

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Postgres collects the metrics of PostgreSQL pools, by name.
type Postgres struct {
	pools map[string]*pgxpool.Pool
	probe *probe

	up, conns, limit, acquires, waits, waitSeconds, cancelled, opened *prometheus.Desc
}

// NewPostgres returns the collector. The pool named first, which is one of pools, is used for the ping. A
// pool may be nil where nothing is collected.
func NewPostgres(first string, pools map[string]*pgxpool.Pool) *Postgres {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("storefront_postgres_"+name, help, labels, nil)
	}
	p := &Postgres{
		pools: pools,
		up:    desc("up", "1 when PostgreSQL answered a ping within a second."),
		conns: desc("pool_connections", "Connections of a pool by state: used, idle, opening.", "pool",
			"state"),
		limit:    desc("pool_max_connections", "Maximum number of connections of a pool.", "pool"),
		acquires: desc("pool_acquires_total", "Connections acquired from a pool.", "pool"),
		waits: desc("pool_waits_total",
			"Acquisitions that had to wait because no connection was idle.", "pool"),
		waitSeconds: desc("pool_wait_seconds_total", "Time spent on acquiring connections from a pool.",
			"pool"),
		cancelled: desc("pool_cancelled_total",
			"Acquisitions that were cancelled before a connection was free.", "pool"),
		opened: desc("pool_opened_total", "Connections that a pool opened.", "pool"),
	}
	if pool := pools[first]; pool != nil {
		p.probe = &probe{ping: pool.Ping}
	}
	return p
}

// Describe implements prometheus.Collector.
func (p *Postgres) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.up, p.conns, p.limit, p.acquires, p.waits, p.waitSeconds,
		p.cancelled, p.opened} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *Postgres) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if p.probe != nil {
		gauge(p.up, p.probe.value())
	}
	for name, pool := range p.pools {
		if pool == nil {
			continue
		}
		counter := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, name)
		}
		s := pool.Stat()
		gauge(p.conns, float64(s.AcquiredConns()), name, "used")
		gauge(p.conns, float64(s.IdleConns()), name, "idle")
		gauge(p.conns, float64(s.ConstructingConns()), name, "opening")
		gauge(p.limit, float64(s.MaxConns()), name)
		counter(p.acquires, float64(s.AcquireCount()))
		counter(p.waits, float64(s.EmptyAcquireCount()))
		counter(p.waitSeconds, s.AcquireDuration().Seconds())
		counter(p.cancelled, float64(s.CanceledAcquireCount()))
		counter(p.opened, float64(s.NewConnsCount()))
	}
}
