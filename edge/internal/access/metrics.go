package access

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the metrics of the package. The first six are the series of one counter, by source.
type Metrics struct {
	malformed, memory, cache, store, stale, unavailable prometheus.Counter

	fillFailures prometheus.Counter
	pollFailures *prometheus.CounterVec
	changes      prometheus.Counter
	emptied      prometheus.Counter
	panics       prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	lookups := counter("storefront_edge_key_lookups_total", "Storefront keys that were presented, by what "+
		"answered: malformed, memory, cache, store, stale, unavailable. Look-ups that keep a used key in "+
		"memory count too.", "source")
	m := &Metrics{
		malformed: lookups.WithLabelValues("malformed"), memory: lookups.WithLabelValues("memory"),
		cache: lookups.WithLabelValues("cache"), store: lookups.WithLabelValues("store"),
		stale: lookups.WithLabelValues("stale"), unavailable: lookups.WithLabelValues("unavailable"),
		fillFailures: counter("storefront_edge_key_cache_fill_failures_total",
			"Grants that could not be copied into Redis.").WithLabelValues(),
		pollFailures: counter("storefront_edge_key_version_poll_failures_total",
			"Polls of the key version that failed, by store.", "from"),
		changes: counter("storefront_edge_key_changes_total",
			"Changes of keys that were seen; each ends the memory of one key.").WithLabelValues(),
		emptied: counter("storefront_edge_key_memory_emptied_total",
			"Times that all keys left the memory, because it was not known which ones changed: at the "+
				"start, after PostgreSQL was restored or Redis failed over, and beside a control of the "+
				"previous release.").WithLabelValues(),
		panics: counter("storefront_edge_key_panics_total",
			"Look-ups of keys that panicked; each failed. Every one is a defect.").WithLabelValues(),
	}
	for _, store := range []string{"store", "cache"} { // a panel shows them before the first failure
		m.pollFailures.WithLabelValues(store)
	}
	return m
}

// Watch registers the age of the last confirmation and the number of remembered keys.
func (r *KeyResolver) Watch(registry prometheus.Registerer) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "storefront_edge_key_cache_age_seconds",
			Help: "Time since PostgreSQL or Redis last confirmed the key version; -1 before the first " +
				"time. Above 15 keys are answered 503."},
			func() float64 {
				age, ok := r.freshness.age(r.cfg.Now())
				if !ok {
					return -1
				}
				return age.Seconds()
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "storefront_edge_key_cache_entries",
			Help: "Storefront keys in process memory."}, func() float64 { return float64(r.grants.Len()) }),
	)
}
