package itemread

import (
	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
)

// source is what told of an item. It is a metric label.
type source uint8

const (
	fromMemory source = iota
	fromRedis
	fromPostgres
	fromLate
	fromNowhere
	sources
)

func (s source) String() string {
	return [...]string{"memory", "redis", "postgres", "stale", "none"}[s]
}

// Metrics are the figures of the package.
type Metrics struct {
	served       [sources]prometheus.Counter
	missing      [sources]prometheus.Counter
	behind       [sources]prometheus.Counter
	unavailable  prometheus.Counter
	panics       prometheus.Counter
	overBudget   prometheus.Counter
	busy         prometheus.Counter
	fillFailures prometheus.Counter
	unjudged     prometheus.Counter
	unproven     prometheus.Counter
}

// NewMetrics registers the figures.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{}
	bySource := func(to *[sources]prometheus.Counter, name, help string, known ...source) {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"source"})
		r.MustRegister(v)
		for _, s := range known {
			to[s] = v.WithLabelValues(s.String())
		}
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	bySource(&m.served, "storefront_edge_item_reads_total",
		"Items that were served, by source: memory, redis, postgres, stale (a copy in memory past its life, because no store answered).",
		fromMemory, fromRedis, fromPostgres, fromLate)
	bySource(&m.missing, "storefront_edge_item_misses_total", "Items that were answered 404, by what told that they do not exist.",
		fromMemory, fromRedis, fromPostgres)
	bySource(&m.behind, "storefront_edge_item_behind_total",
		"Versions that were passed over because a newer one had been answered, by source. From postgres: it went back.", fromRedis, fromPostgres)
	m.panics = counter("storefront_edge_item_panics_total", "Look-ups of items that panicked; each failed. Every one is a defect.")
	m.unavailable = counter("storefront_edge_item_unavailable_total", "Items that were answered 503: no store told, and memory held no copy.")
	m.overBudget = counter("storefront_edge_item_over_budget_total", "Look-ups that were refused because the client or the key had found nothing too often.")
	m.busy = counter("storefront_edge_item_lookups_busy_total", "Look-ups that got no turn at PostgreSQL in time.")
	m.fillFailures = counter("storefront_edge_item_fill_failures_total", "Items that could not be copied into Redis.")
	m.unproven = counter("storefront_edge_item_unproven_total",
		"Items that were served from Redis while PostgreSQL could not be asked whether they are the newest.")
	m.unjudged = counter("storefront_edge_item_unjudged_total", "Recommended items that no store could be asked about; they were served.")
	return m
}

// observe counts what a load came to.
func (m *Metrics) observe(a answer) {
	switch {
	case a.err == nil:
		m.served[a.from].Inc()
	case a.from != fromNowhere:
		m.missing[a.from].Inc()
	case fault.Is(a.err, fault.ServiceUnavailable):
		m.unavailable.Inc()
	}
}

// Watch registers the size of the memory.
func (s *Service) Watch(r prometheus.Registerer) {
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	gauge("storefront_edge_item_memory_bytes", "Bytes that copies of items may take of memory, their compressed form included.",
		func() float64 { return float64(s.memory.docs.bytes.Load()) })
	gauge("storefront_edge_item_memory_entries", "Items of which memory holds a copy.",
		func() float64 { return float64(s.memory.docs.count.Load()) })
}
