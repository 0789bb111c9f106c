package erase

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the figures of erasures.
type Metrics struct {
	pending, oldest     prometheus.Gauge
	completed, failures prometheus.Counter
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		pending: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_erasures_pending",
			Help: "Erasures of shoppers that were asked for and are not completed."}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_erasure_oldest_seconds",
			Help: "Age of the oldest erasure that is not completed; 0 when there is none. Alert on an hour."}),
		completed: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_relay_erasures_completed_total",
			Help: "Erasures that this relay completed."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_relay_erasure_failures_total",
			Help: "Attempts of erasures that failed and are tried again."}),
	}
	r.MustRegister(m.pending, m.oldest, m.completed, m.failures)
	return m
}
