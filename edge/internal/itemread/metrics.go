package itemread

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"storefront.internal/shared/fault"
)

// source is where an answer came from; its text is a metric label.
type source uint8

const (
	sourceMemory source = iota
	sourceRedis
	sourcePostgres
	sourceStale
	sourceNone
	sources
)

func (s source) String() string {
	return [...]string{"memory", "redis", "postgres", "stale", "none"}[s]
}

// Metrics are the metrics of the package.
type Metrics struct {
	served       [sources]prometheus.Counter
	missing      [sources]prometheus.Counter
	behind       [sources]prometheus.Counter
	unavailable  prometheus.Counter
	panics       prometheus.Counter
	overBudget   prometheus.Counter
	busy         prometheus.Counter
	fillFailures prometheus.Counter
	unknownOwner prometheus.Counter
	unverified   prometheus.Counter
	staleness    prometheus.Histogram
}

// NewMetrics registers the metrics.
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
		"Items served, by source: memory, redis, postgres, stale (from memory past its time to live, "+
			"because no store answered).",
		sourceMemory, sourceRedis, sourcePostgres, sourceStale)
	bySource(&m.missing, "storefront_edge_item_misses_total",
		"Items answered 404, by the source that knew that they do not exist.", sourceMemory, sourceRedis,
		sourcePostgres)
	bySource(&m.behind, "storefront_edge_item_behind_total",
		"Versions ignored because a newer one was answered before, by source. From postgres: PostgreSQL "+
			"lost a version.",
		sourceRedis, sourcePostgres)
	m.staleness = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:                        "storefront_edge_item_stale_seconds",
		Help:                        "Age past their time to live of items served without a store.",
		Buckets:                     []float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600},
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	})
	r.MustRegister(m.staleness)
	m.panics = counter("storefront_edge_item_panics_total",
		"Look-ups of items that panicked; each failed. Every one is a defect.")
	m.unavailable = counter("storefront_edge_item_unavailable_total",
		"Items answered 503: no store answered, and memory held no copy.")
	m.overBudget = counter("storefront_edge_item_over_budget_total",
		"Look-ups refused because too many look-ups of the client or the key found nothing.")
	m.busy = counter("storefront_edge_item_lookups_busy_total",
		"Look-ups that failed because too many others were in flight at PostgreSQL.")
	m.fillFailures = counter("storefront_edge_item_fill_failures_total",
		"Items that could not be copied into Redis.")
	m.unverified = counter("storefront_edge_item_unproven_total",
		"Items served from Redis while PostgreSQL could not confirm that they are the newest.")
	m.unknownOwner = counter("storefront_edge_item_unjudged_total",
		"Recommended items served although no store could tell whether the connection has them.")
	return m
}

// observeStale observes for how many nanoseconds the time of an item that is served has been over.
func (m *Metrics) observeStale(d int64) {
	m.staleness.Observe(max(0, time.Duration(d).Seconds()))
}

// observe counts the outcome of a load.
func (m *Metrics) observe(a answer) {
	switch {
	case a.err == nil:
		m.served[a.from].Inc()
	case a.from != sourceNone:
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
	gauge("storefront_edge_item_memory_bytes",
		"Bytes of the items in memory, their compressed copies included.",
		func() float64 { _, bytes := s.memory.usage(); return float64(bytes) })
	gauge("storefront_edge_item_memory_entries", "Items in memory.",
		func() float64 { items, _ := s.memory.usage(); return float64(items) })
}
