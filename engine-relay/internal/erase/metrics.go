package erase

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the figures of erasures.
type Metrics struct {
	pending, oldest     prometheus.Gauge
	completed, failures prometheus.Counter
	crowded             prometheus.Counter
}

// NewMetrics registers the metrics of erasures.
func NewMetrics(r prometheus.Registerer) *Metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "storefront_relay_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "storefront_relay_" + name, Help: help})
	}
	m := &Metrics{
		pending: gauge("erasures_pending", "Erasures that were requested and are not completed."),
		oldest: gauge("erasure_oldest_seconds",
			"Age of the oldest erasure that is not completed; 0 when there is none. Alert at an hour."),
		completed: counter("erasures_completed_total", "Erasures that this relay completed."),
		failures: counter("erasure_failures_total",
			"Attempts to execute erasures that failed; they are tried again."),
		crowded: counter("erasure_crowded_orders_total",
			"Redacted orders that purchases of more than three visitors name; the first three are erased."),
	}
	r.MustRegister(m.pending, m.oldest, m.completed, m.failures, m.crowded)
	return m
}
