package consumer

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of consuming.
type metrics struct {
	commitFailures prometheus.Counter
	halted         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, oldest func() float64) *metrics {
	m := &metrics{
		commitFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storefront_relay_offset_commit_failures_total",
			Help: "Offset commits that failed. The records are read again and still stored once.",
		}),
		halted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "storefront_relay_halted_partitions",
			Help: "Partitions whose next record has a newer schema version; " +
				"they wait for a newer relay. Alert above 0.",
		}),
	}
	reg.MustRegister(m.commitFailures, m.halted, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "storefront_relay_oldest_held_seconds",
		Help: "Age of the oldest record that this relay has read and not stored; 0 when there is none. " +
			"Alert at 24 h.",
	}, oldest))
	return m
}
