package access

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the figures of the package.
type Metrics struct {
	lookups      *prometheus.CounterVec
	fillFailures prometheus.Counter
	pollFailures *prometheus.CounterVec
	versionMoves prometheus.Counter
	panics       prometheus.Counter
}

// NewMetrics registers the figures.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_key_lookups_total",
			Help: "Storefront keys that were presented, by what answered: malformed, memory, cache, store, stale, unavailable."},
			[]string{"source"}),
		fillFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_key_cache_fill_failures_total",
			Help: "Grants that could not be copied into Redis."}),
		pollFailures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "storefront_edge_key_version_poll_failures_total",
			Help: "Polls of the key version that failed, by store."}, []string{"from"}),
		versionMoves: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_key_version_moves_total",
			Help: "Times that the key version was seen to move, which empties the memory."}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_edge_key_panics_total",
			Help: "Look-ups of keys that panicked; each failed. Every one is a defect."}),
	}
	r.MustRegister(m.lookups, m.fillFailures, m.pollFailures, m.versionMoves, m.panics)
	return m
}

// Watch registers the age of the last confirmation and the number of remembered keys.
func (g *Gate) Watch(r prometheus.Registerer) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "storefront_edge_key_cache_age_seconds",
			Help: "Time since PostgreSQL or Redis last confirmed the key version; -1 before the first time. Above 15 keys are answered 503."},
			func() float64 {
				age, ok := g.state.age(g.now())
				if !ok {
					return -1
				}
				return age.Seconds()
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "storefront_edge_key_cache_entries",
			Help: "Storefront keys in process memory."}, func() float64 { return float64(g.known.len()) }),
	)
}
